"""Parser of GCIDE: the 1913 Webster dictionary with later additions, in the dictd layout.

An article starts in the first column: headword, pronunciation, part of speech, etymology. Its
definitions are blocks set apart by blank lines and indented by 3 or 6, quotations by 9 or more. A
source tag such as [1913 Webster] follows the text that it speaks of.
"""

import gzip
import re
import unicodedata
import zlib
from collections.abc import Iterator
from pathlib import Path

from steps.shared.runtime import InputError

# GCIDE writes letters outside ASCII as an accent and a letter in brackets, or as a name.
_NAMED = {
    "ae": "ae", "AE": "AE", "oe": "oe", "OE": "OE", "=ae": "ae", "'ae": "ae", "eth": "th",
    "thorn": "th", "th": "th", "imac": "i", "aum": "a", "add": "a", "asl": "a", "udd": "u",
    "ng": "ng", "=oo": "oo", "oo^": "oo", "deg": " degrees", "frac": "/", "yogh": "gh",
    "alpha": "alpha", "beta": "beta", "gamma": "gamma", "delta": "delta", "pi": "pi",
}  # fmt: skip
_LETTER = re.compile(
    r"\[(?:(=?[a-zA-Z]{2,5}|'ae|oo\^)|[^\w\s]{1,2}([a-zA-Z])|([a-z]|[A-Z](?=[^\w\s.]))[^\w\s.]?)\]"
)
_PARENS = r"\((?:[^()]|\([^()]*\))*\)"
_BRACKETS = r"\[(?:[^\[\]]|\[[^\[\]]*\])*\]"
_SQUARE, _ROUND = re.compile(r"[\[\]]"), re.compile(r"[()]")
_HEAD_LINE = re.compile(r"([^\\\n]+?),? \\")
_HEAD_MORE = re.compile(
    rf"(?:\s*(?:{_BRACKETS}|\((?=[A-Z-]|[^()]*[\[\]=*\"^`?]){_PARENS[2:]}|\{{[^}}]*\}}|[,;&]"
    r"|(?:n|a|adj|adv|v|t|i|p|pl|sing|imp|prep|conj|interj|pron|superl|compar|vb|pr|pref)\."
    r"|(?:or|and)\b))+"
)
_SOURCE = re.compile(r"\[([^\[\]]*(?:Webster|WordNet|PJC|Century Dict|\bAS\b|RDH)[^\[\]]*)\]")
_BLANK = re.compile(r"\n\s*\n")
_SENSE_NUMBER = re.compile(r"^(?:(?:Note|Usage): |\d+\. ?|(?:pl|n|prop\. n|a|v\. [ti])\. )+")
_LABEL = re.compile(
    r"^\([^()]{1,40}\) (?=[A-Z])|\((?:[a-z]|[A-Z][a-z]*\.?(?:,? (?:& )?[A-Z][a-z]*\.)*)\) ?"
)
_CITATION = re.compile(
    r"\(--[^()]*\) ?| ?--(?=(?:[1-3] )?[A-Z(\"])(?:[^\[\]]{1,45}$"
    r"|(?:(?:[A-Z][\w'-]*|[ivxlc]+|[\d:,-]+|of|the|&)[.,]* )*?"
    r"(?:[A-Z][\w'-]+|& C|[ivxlc]+|[\d:-]+)\.(?= [A-Z\"(]|$))"
)
_DERIVED = re.compile(r" ?-- ?\{[^{}]*[\"*`][^{}]*\}.*$")
_PART_OF_SPEECH = re.compile(r" -- (?:n|a|adj|adv|v|v\. [ti])\.(?: (?:sing\. & )?pl\.)? (?=[A-Z])")
_SEE = re.compile(r" (?<=[.;] )(?:See|Cf\.|Same as) [^;]{1,80}$")
_CROSS_REFERENCE = re.compile(
    r"^(?:\([^)]*\) ?)?(?:See|Same as|Cf\.|from|of|The same as|Obs\. |pl\. of|variant of)\b"
    r"[^;:]{0,60}$",
    re.IGNORECASE,
)
# A Greek word, a pronunciation, a lost character.
_DAMAGED = re.compile(r"(?:^|[ (\d;])\?|\?[\w\"]|\w\"\w|\w\? [a-z]|[a-z]\^|--[A-Z(]")
_PLAIN = re.compile(r"[\w ,;.:()'/&!$%-]*")
# An open bracket, a pronunciation, an etymology, an address.
_STRAY = (*"`*[]\\<>@", "()", "===", "----", "....", "??", " fr. ", "Skr.", "http", "www.")
_WORD_LIST = re.compile(r"(?:\b[A-Z]\w+ ){8}")
_SPACED = (" ,", " ;", " .", " )", ",,", ",;")
_SPACE_BEFORE = re.compile(r",? ([,;.)])(?=[ ,;.)]|$)|,(?=[,;])")
_LEADING, _ENDINGS = ",;:.-) ", (".", "!", "?", '"', "'", ")")
_LEFTOVER = re.compile(r"(?<=\.) (?:\S+ ?){1,2}$|(?<=\.) [^.]*[;:,]$")


def fold(text: str) -> str:
    """Return `text` as printable ASCII plus newline: accents folded, the rest dropped."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    text = unicodedata.normalize("NFKD", text)
    return "".join(c for c in text if c == "\n" or " " <= c <= "~")


def articles(path: str | Path) -> Iterator[tuple[str, list[str]]]:
    """Yield (headword in lower case, definitions) of each article of a dictd GCIDE file (gzip).

    Left out: the preamble, pronunciations, etymologies, quotations, lists of synonyms, mere
    cross-references, and every definition whose source tag names WordNet.
    """
    try:
        with gzip.open(path, "rb") as file:
            raw = file.read().decode("utf-8", errors="ignore")
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: not a readable gzip file ({error})") from None
    for article in re.split(r"\n(?=\S)", raw):
        match = _HEAD_LINE.match(article)
        if match is not None:
            headword = fold(_LETTER.sub(_letter, match[1])).strip().lower()
            yield headword, list(_definitions(article))


def _definitions(article: str) -> Iterator[str]:
    parts = _SOURCE.split(article[_head_end(article) :])
    # Text stands before the tag that names its source; the last piece may have none.
    for index in range(0, len(parts), 2):
        tag = parts[index + 1] if index + 1 < len(parts) else ""
        if "WordNet" in tag:
            continue
        piece = parts[index] if index == 0 else parts[index].partition("\n")[2]
        for block in _BLANK.split(piece):
            text = _clean(block)
            if text:
                yield text


def _head_end(article: str) -> int:
    """Return where the headword's line, pronunciation, part of speech and etymology end."""
    first_block = article.partition("\n\n")[0]
    end = len(article.partition("\n")[0])
    if first_block.count("\\") % 2 == 0:
        end = max(end, first_block.rfind("\\") + 1)
    for brackets in (_SQUARE, _ROUND):
        found = brackets.findall(article, 0, end)
        depth = sum(1 if mark in "[(" else -1 for mark in found)
        while depth > 0 and (match := brackets.search(article, end)):
            depth += 1 if match[0] in "[(" else -1
            end = match.end()
    match = _HEAD_MORE.match(article, end)
    return match.end() if match else end


def joined(definitions: list[str]) -> str:
    """Return definitions as one line of whole sentences; some go on in the next definition."""
    text = ""
    for definition in definitions:
        if text:
            text = (_closed(text) if definition[0].isupper() else text) + " "
        text += definition
    return _closed(text)


def _closed(text: str) -> str:
    return text if text.endswith(_ENDINGS) else text.rstrip(",;: ") + "."


def _letter(match: re.Match[str]) -> str:
    name, accented, plain = match.groups()
    return _NAMED.get(name, match[0]) if name else accented or plain


def _clean(block: str) -> str:
    """Return one definition as a clean line, or "" when the block is not one."""
    lines = block.lstrip("\n")
    text = " ".join(lines.split())
    quotation = lines.startswith(" " * 9)
    if quotation or not text or text.startswith("Syn:"):
        return ""
    if "[" in text:
        text = re.sub(_BRACKETS, "", _LETTER.sub(_letter, text))
    text = _LABEL.sub("", _SENSE_NUMBER.sub("", text.lstrip(_LEADING)))
    if "--" in text:
        text = _CITATION.sub("", _DERIVED.sub("", text).strip())
        text = _PART_OF_SPEECH.sub(" ", text).rstrip("- ")
    text = fold(" ".join(text.replace("{", "").replace("}", "").split()))
    if any(mark in text for mark in _SPACED):
        text = _SPACE_BEFORE.sub(r"\1", text)
    text = _SEE.sub("", text.lstrip(_LEADING))
    if text.endswith(("?.", "..")) and not text.endswith("..."):
        text = text[:-1]
    if not text.endswith(_ENDINGS):
        text = _LEFTOVER.sub("", text)
    return text if _worth_keeping(text) else ""


def _worth_keeping(text: str) -> bool:
    """Say whether a text is a definition, whole and of words only."""
    return not (
        text.count(" ") < 2
        or text.count("(") != text.count(")")
        or any(mark in text for mark in _STRAY)
        or ((not _PLAIN.fullmatch(text) or "--" in text) and _DAMAGED.search(text))
        or _CROSS_REFERENCE.match(text)
        or (len(text) > 1000 and _WORD_LIST.search(text))
    )
