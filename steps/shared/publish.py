"""Publish results, and verify results against the published ones: "did I reproduce it?".

`publish` copies results/<scale>/<paper>/evaluate to published/<paper> after a complete run.
`verify` compares, cell by cell and claim by claim, and exits 1 only where a verdict changed or a
published table is missing.
"""

import argparse
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steps.shared import costs, machine
from steps.shared.ledger import read_ledger, write_ledger
from steps.shared.runtime import (
    InputError,
    read_csv,
    read_json,
    run_step,
    write_csv,
    write_json,
    write_text,
)

PUBLISHED = Path("published")
FILES = ("table.csv", "table.md", "runs.csv", "claims.json")
CELL = ("table", "dataset", "split", "row", "metric", "x")
KINDS = ("identical", "within the interval", "differs")
SHOWN = 10
Cell = tuple[str, ...]


@dataclass
class Comparison:
    """What `verify` found for one paper."""

    paper: str
    cells: dict[Cell, str] = field(default_factory=dict)
    details: list[str] = field(default_factory=list)
    verdicts: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    machine: Mapping[str, Any] | None = None
    missing: bool = False

    @property
    def reproduced(self) -> bool:
        """Whether there was a published table and no verdict changed."""
        return not self.missing and not self.verdicts


def digests(paper: str) -> dict[str, str]:
    """Return the digests {code, params, lock} of the current tree for `paper`."""
    from steps.shared.codedigest import paper_digest

    return paper_digest(paper)


def publish(papers: Sequence[str], *, scale: str) -> None:
    """Copy the results of `papers` to `published`; nothing is copied if any is incomplete."""
    problems = [line for paper in papers for line in incomplete(paper, scale=scale)]
    if problems:
        raise InputError(f"not published: {'; '.join(problems)}")
    for paper in papers:
        _copy(paper, scale=scale)
    claims = read_ledger(sorted(PUBLISHED.glob("*/claims.json")))
    write_ledger(PUBLISHED / "claims.csv", claims)
    _record_machine(papers, scale=scale)


def evaluated(paper: str, *, scale: str) -> Path:
    """Return the folder of a paper's evaluated results."""
    return Path("results") / scale / paper / "evaluate"


def incomplete(paper: str, *, scale: str) -> list[str]:
    """Return what a paper's results lack, one line each; an empty list when complete."""
    folder = evaluated(paper, scale=scale)
    absent = [name for name in FILES if not _has_content(folder / name)]
    if absent:
        return [f"{folder} lacks {', '.join(absent)}"]
    empty = [c for c in read_csv(folder / "table.csv") if not c["mean"] and not c["paper"]]
    lines = [f"{folder}/table.csv has no value for {_name(_key(cell))}" for cell in empty]
    try:
        claims = read_ledger([folder / "claims.json"])
    except InputError as error:
        return [*lines, str(error)]
    return lines if claims else [*lines, f"{folder}/claims.json has no claims"]


def _has_content(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def _copy(paper: str, *, scale: str) -> None:
    """Replace published/<paper> as a whole, so that no file of an earlier publication stays."""
    source = evaluated(paper, scale=scale)
    PUBLISHED.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=PUBLISHED, prefix=f".{paper}.") as scratch:
        fresh, old = Path(scratch) / "new", Path(scratch) / "old"
        fresh.mkdir()
        for name in FILES:
            shutil.copyfile(source / name, fresh / name)
        _add_links(fresh / "table.md", paper)
        if (source / "figures").is_dir():
            shutil.copytree(source / "figures", fresh / "figures", copy_function=shutil.copyfile)
        write_json(fresh / "digest.json", digests(paper))
        write_csv(fresh / "cost.csv", costs.FIELDS, costs.by_rule(paper, scale=scale))
        if (PUBLISHED / paper).exists():
            (PUBLISHED / paper).rename(old)
        fresh.rename(PUBLISHED / paper)


def _add_links(page: Path, paper: str) -> None:
    """Say below the title where the rows and columns are explained; beside it are the figures."""
    title, rest = page.read_text(encoding="utf-8").split("\n\n", 1)
    links = f"[What rows and columns mean](../../docs/papers/{paper}.md). [Figures](figures)."
    write_text(page, f"{title}\n\n{links}\n\n{rest}")


def _record_machine(papers: Sequence[str], *, scale: str) -> None:
    """Add this machine to machine.json for `papers`, with CPU seconds if logs have them."""
    path = PUBLISHED / "machine.json"
    known = read_json(path) if path.is_file() else {}
    for paper in papers:
        seconds = costs.cpu_seconds(costs.by_rule(paper, scale=scale))
        known[paper] = machine.describe() | {"cpu_seconds": seconds or None}
    present = {paper for paper in known if (PUBLISHED / paper).is_dir()}
    write_json(path, {paper: known[paper] for paper in present})


def compare(paper: str, *, scale: str) -> Comparison:
    """Compare a paper's results with its published ones."""
    ours, theirs = evaluated(paper, scale=scale), PUBLISHED / paper
    if absent := [name for name in ("table.csv", "claims.json") if not (ours / name).is_file()]:
        raise InputError(f"{ours} lacks {', '.join(absent)}: run the workflow first")
    found = Comparison(paper)
    if not (theirs / "table.csv").is_file() or not (theirs / "claims.json").is_file():
        found.missing = True
        return found
    _compare_cells(found, read_csv(ours / "table.csv"), read_csv(theirs / "table.csv"))
    before, now = (_verdicts(folder) for folder in (theirs, ours))
    for name in sorted({*before, *now}):
        old, new = before.get(name, "absent"), now.get(name, "absent")
        if old != new:
            found.verdicts.append(f"{name}: published {old}, here {new}")
    found.stale = stale(paper)
    path = PUBLISHED / "machine.json"
    found.machine = read_json(path).get(paper) if path.is_file() else None
    return found


def stale(paper: str) -> list[str]:
    """Return which of code, params and lock have changed since `paper` was published."""
    path = PUBLISHED / paper / "digest.json"
    published = read_json(path) if path.is_file() else {}
    return [name for name, value in digests(paper).items() if published.get(name) != value]


def _verdicts(folder: Path) -> dict[str, str]:
    return {claim["id"]: claim["verdict"] for claim in read_json(folder / "claims.json")}


def _compare_cells(found: Comparison, ours: list[dict], theirs: list[dict]) -> None:
    here, published = ({_key(row): row for row in rows} for rows in (ours, theirs))
    for key in dict.fromkeys([*published, *here]):
        new, old = here.get(key, {}), published.get(key, {})
        kind = classify(new.get("mean", ""), old)
        found.cells[key] = kind
        if kind == "differs":
            low, high = old.get("ci_low"), old.get("ci_high")
            interval = f" [{float(low):.6g}, {float(high):.6g}]" if low and high else ""
            was, now = (_short(row.get("mean", "")) for row in (old, new))
            found.details.append(f"{_name(key)}: published {was}{interval}, here {now}")


def classify(mean: str, published: Mapping[str, str]) -> str:
    """Say how a cell's `mean` compares with its published row of table.csv; '' is no value."""
    if not published:
        return "differs"
    if not mean or not published["mean"]:
        return "identical" if mean == published["mean"] else "differs"
    if float(mean) == float(published["mean"]):
        return "identical"
    if not published["ci_low"] or not published["ci_high"]:
        return "differs"
    inside = float(published["ci_low"]) <= float(mean) <= float(published["ci_high"])
    return "within the interval" if inside else "differs"


def _key(row: Mapping[str, str]) -> Cell:
    return tuple(row[name] for name in CELL)


def _name(key: Cell) -> str:
    return "/".join(key[:5]) + (f", x = {key[5]}" if key[5] else "")


def _short(value: str) -> str:
    return f"{float(value):.6g}" if value else "no value"


def report(found: Comparison) -> str:
    """Return what `verify` prints for one paper."""
    if found.missing:
        return f"{found.paper}: NO PUBLISHED TABLE to compare with"
    counts = Counter(found.cells.values())
    cells = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS)
    answer = "reproduced" if found.reproduced else "VERDICTS CHANGED"
    lines = [f"{found.paper}: {answer}. {len(found.cells)} cells: {cells}."]
    lines += [f"  differs  {line}" for line in found.details[:SHOWN]]
    if len(found.details) > SHOWN:
        lines.append(f"  differs  and {len(found.details) - SHOWN} more")
    lines += [f"  verdict  {line}" for line in found.verdicts]
    if found.stale:
        lines.append(f"  stale    published from another {', '.join(found.stale)}")
    made_on = machine.in_words(found.machine) if found.machine else "unknown"
    lines.append(f"  made on  {made_on}")
    return "\n".join(lines)


def verify(papers: Sequence[str], *, scale: str) -> bool:
    """Print the comparison of each paper; return whether all were reproduced."""
    comparisons = [compare(paper, scale=scale) for paper in papers]
    for found in comparisons:
        print(report(found))
    print(f"this machine: {machine.in_words(machine.describe())}")
    return all(found.reproduced for found in comparisons)


def main(argv: Sequence[str] | None = None) -> None:
    """Publish or verify one paper, or all papers of params.yaml."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("publish", "verify"))
    parser.add_argument("--paper", help="one paper (default: every paper of params.yaml)")
    parser.add_argument("--scale", default="mini", help="scale whose results are meant")
    args = parser.parse_args(argv)
    papers = [args.paper] if args.paper else _papers(args.scale)
    if args.action == "publish":
        publish(papers, scale=args.scale)
    elif not verify(papers, scale=args.scale):
        raise SystemExit(1)


def _papers(scale: str) -> list[str]:
    from steps.shared.config_files import load

    return list(load(scale).get("papers") or {})


if __name__ == "__main__":
    run_step(main)
