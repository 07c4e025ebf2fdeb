"""The ledger: every claim of every paper with our effect and its verdict, in one place.

python -m steps.shared.ledger --claims results/mini/*/evaluate/claims.json --out claims.csv
"""

import argparse
import os
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from steps.shared.claims import NOT_TESTED, VERDICTS, effect_text
from steps.shared.page import render_ledger
from steps.shared.runtime import InputError, read_json, reading, run_step, write_csv, write_text
from steps.shared.tables import paper_effect_text

FIELDS = (
    "paper",
    "id",
    "statement",
    "kind",
    "table",
    "unit",
    "paper_effect",
    "effect",
    "ci_low",
    "ci_high",
    "n",
    "verdict",
)
READ = (*FIELDS[1:], "note")
COLOURS = {"holds": "32", "fails": "31", "inconclusive": "33", NOT_TESTED: "90"}
Row = dict[str, Any]


def read_ledger(paths: Iterable[str | Path]) -> list[Row]:
    """Return the rows of all papers' claims.json, each with its paper, in the order given."""
    rows: list[Row] = []
    for path in map(Path, paths):
        folder = path.absolute().parent
        paper = (folder.parent if folder.name == "evaluate" else folder).name
        with reading(path, "the claims of a paper"):
            claims = read_json(path)
            if not isinstance(claims, list):
                raise TypeError("must be a list")
            for claim in claims:
                if claim.get("verdict") not in VERDICTS:
                    raise InputError(f"{path}: claim {claim.get('id')} has no verdict")
                if missing := [name for name in READ if name not in claim]:
                    raise InputError(f"{path}: claim {claim.get('id')} lacks {', '.join(missing)}")
                rows.append({"paper": paper, **claim})
    return rows


def write_ledger(path: str | Path, claims: Iterable[Row]) -> None:
    """Write claims.csv: one row per claim, and nothing that is not CSV."""
    write_csv(path, FIELDS, ({name: claim[name] for name in FIELDS} for claim in claims))


def summary(claims: Sequence[Row]) -> str:
    """Return the sentences that head the ledger: what was tested, what chance alone would do."""
    counts = Counter(claim["verdict"] for claim in claims)
    tested = len(claims) - counts[NOT_TESTED]
    by_interval = sum(claim["ci_low"] is not None for claim in claims)
    verdicts = ", ".join(f"{word} {counts[word]}" for word in VERDICTS[:3])
    return (
        f"{len(claims)} claims, {tested} of them tested: {verdicts}. "
        f"{by_interval} rest on a 95 % interval; such an interval misses the truth 5 % of the "
        f"time, so about {by_interval * 0.05:.1f} of these are expected to."
    )


def markdown(claims: Sequence[Row]) -> str:
    """Return the ledger as Markdown: the summary, counts by paper, and all claims, folded."""
    return "\n".join(
        [
            summary(claims),
            "",
            "| paper | claims | holds | fails | inconclusive | not tested |",
            "| --- | ---: | ---: | ---: | ---: | ---: |",
            *_counts(claims),
            "",
            "<details>",
            f"<summary>All {len(claims)} claims, each with its effect and interval</summary>",
            "",
            "| tables | claim | paper's effect | ours, 95 % interval over seeds | verdict |",
            "| --- | --- | --- | --- | --- |",
            *map(_line, claims),
            "",
            "</details>",
            "",
        ]
    )


def _counts(claims: Sequence[Row]) -> list[str]:
    found = Counter((claim["paper"], claim["verdict"]) for claim in claims)
    total = Counter(claim["paper"] for claim in claims)
    return [
        f"| {_tables(paper)} | {total[paper]} | "
        + " | ".join(str(found[paper, verdict]) for verdict in VERDICTS)
        + " |"
        for paper in total
    ]


def _line(claim: Row) -> str:
    paper = paper_effect_text(claim).removeprefix("paper: ")
    ours = effect_text(claim) or claim["note"]
    cells = (claim["statement"], paper, ours, f"**{claim['verdict']}**")
    texts = [" ".join(cell.replace("|", "/").split()) for cell in cells]
    return f"| {_tables(claim['paper'])} | {' | '.join(texts)} |"


def _tables(paper: str) -> str:
    return f"[{paper}](published/{paper}/table.md)"


def terminal(claims: Sequence[Row], *, width: int, colour: bool) -> str:
    """Return the ledger for a terminal of `width` columns."""
    indent = " " * (max(map(len, VERDICTS[:3])) + 4)
    lines = textwrap.wrap(summary(claims), width)
    paper = None
    for claim in claims:
        if claim["paper"] != paper:
            paper = claim["paper"]
            lines += ["", paper]
        tested = claim["verdict"] != NOT_TESTED
        word = claim["verdict"] if tested else "not tested"
        details = (effect_text(claim), paper_effect_text(claim), claim["note"])
        statement = _wrapped(claim["statement"], width, indent)
        statement[0] = (
            f"  {_painted(word, claim['verdict'], colour)}" + (statement[0][2 + len(word) :])
        )
        lines += statement
        lines += _wrapped("; ".join(filter(None, details)), width, indent)
    return "\n".join(lines) + "\n"


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    room = max(width, len(indent) + 20)
    return textwrap.wrap(text, room, initial_indent=indent, subsequent_indent=indent)


def _painted(word: str, verdict: str, colour: bool) -> str:
    return f"\033[{COLOURS[verdict]}m{word}\033[0m" if colour else word


def print_ledger(claims: Sequence[Row]) -> None:
    """Print the ledger, as wide as the terminal, coloured only on one."""
    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    width = shutil.get_terminal_size((100, 24)).columns
    sys.stdout.write(terminal(claims, width=width, colour=colour))


def main(argv: Sequence[str] | None = None) -> None:
    """Write or print the ledger of the claims files given."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--claims", nargs="+", required=True, help="claims.json of each paper")
    parser.add_argument("--out", type=Path, help="CSV to write")
    parser.add_argument("--page", type=Path, help="HTML page to write")
    parser.add_argument("--print", action="store_true", help="print the ledger")
    args = parser.parse_args(argv)
    claims = read_ledger(args.claims)
    if args.out:
        write_ledger(args.out, claims)
    if args.page:
        write_text(args.page, render_ledger(claims, summary=summary(claims)))
    if args.print:
        print_ledger(claims)


if __name__ == "__main__":
    run_step(main)
