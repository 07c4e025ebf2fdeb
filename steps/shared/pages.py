"""The generated parts of README.md and docs/papers: the ledger, verdict counts, costs.

python -m steps.shared.pages

Each part stands between two marks and comes from `published/` alone; a test holds the pages to it.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from steps.shared import ledger, machine
from steps.shared.claims import NOT_TESTED, VERDICTS
from steps.shared.runtime import InputError, read_csv, read_json, run_step, write_text


def with_part(text: str, name: str, content: str) -> str:
    """Return the page `text` with the part `name` replaced; its two marks must be there once."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise InputError(f"needs the marks {begin} and {end}, in this order, once")
    return pattern.sub(lambda _: f"{begin}\n{content.strip()}\n{end}", text)


def renewed(page: Path, published: Path) -> str:
    """Return the text of a page with its parts as `published` has them."""
    try:
        text = page.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"{page}: cannot be read ({error})") from None
    for name, content in parts(page.stem, published):
        try:
            text = with_part(text, name, content)
        except InputError as error:
            raise InputError(f"{page}: {error}") from None
    return text


def pages(root: Path) -> list[Path]:
    """Return README.md and the page of every published paper."""
    papers = sorted(path.parent.name for path in (root / "published").glob("*/claims.json"))
    return [root / "README.md", *(root / f"docs/papers/{paper}.md" for paper in papers)]


def parts(page: str, published: Path) -> Iterator[tuple[str, str]]:
    """Yield (name, Markdown) of a page's generated parts; `page` is README or a paper."""
    if page == "README":
        claims = ledger.read_ledger(sorted(published.glob("*/claims.json")))
        yield "ledger", ledger.markdown(claims)
        yield "costs", all_costs(published)
    else:
        yield "verdicts", verdicts(ledger.read_ledger([published / page / "claims.json"]))
        yield "costs", costs(published, page)


def verdicts(claims: list[ledger.Row]) -> str:
    """Return one sentence that counts a paper's verdicts."""
    counts = Counter(claim["verdict"] for claim in claims)
    said = ", ".join(f"{verdict} {counts[verdict]}" for verdict in VERDICTS[:3])
    tested = len(claims) - counts[NOT_TESTED]
    return f"{tested} claims tested: {said}. Not tested at this scale: {counts[NOT_TESTED]}."


def costs(published: Path, paper: str) -> str:
    """Return the cost of a paper by rule, as a table."""
    lines = [
        "| rule | jobs | CPU s a job | wall s a job | peak MiB | CPU s in all |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    rows = read_csv(published / paper / "cost.csv")
    for row in rows:
        cpu, wall, peak = (float(row[name]) for name in ("cpu_seconds", "seconds", "peak_mib"))
        cells = (row["rule"], row["jobs"], f"{cpu:.1f}", f"{wall:.1f}", f"{peak:.0f}")
        lines.append(f"| {' | '.join(cells)} | {cpu * int(row['jobs']):.0f} |")
    jobs, minutes, peak = _sum(rows)
    made_on = machine.in_words(read_json(published / "machine.json")[paper])
    lines += [f"| sum | {jobs} | | | {peak:.0f} | {minutes * 60:.0f} |", ""]
    return "\n".join([*lines, f"{minutes:.1f} CPU minutes, measured by getrusage on {made_on}."])


def all_costs(published: Path) -> str:
    """Return the cost of every paper, as a table."""
    lines = ["| paper | jobs | CPU minutes | peak MiB of a job |", "| --- | ---: | ---: | ---: |"]
    total = 0.0
    for path in sorted(published.glob("*/cost.csv")):
        jobs, minutes, peak = _sum(read_csv(path))
        total += minutes
        lines.append(f"| {path.parent.name} | {jobs} | {minutes:.1f} | {peak:.0f} |")
    return "\n".join([*lines, f"| all | | {total:.0f} | |"])


def _sum(rows: list[dict[str, str]]) -> tuple[int, float, float]:
    jobs = sum(int(row["jobs"]) for row in rows)
    seconds = sum(int(row["jobs"]) * float(row["cpu_seconds"]) for row in rows)
    return jobs, seconds / 60, max(float(row["peak_mib"]) for row in rows)


def main() -> None:
    """Renew the generated parts of all pages."""
    for page in pages(Path()):
        write_text(page, renewed(page, Path("published")))


if __name__ == "__main__":
    run_step(main)
