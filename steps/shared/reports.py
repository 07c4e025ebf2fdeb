"""What every paper's report does: runs to tables, claims and metrics; figures; their mirror."""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from steps.shared.claim_spec import Claim
from steps.shared.claims import CELL, evaluate_claims, load_claims
from steps.shared.histories import check_numbers
from steps.shared.page import render_html
from steps.shared.runtime import InputError, read_csv, write_csv, write_json, write_text
from steps.shared.table_spec import Table, load_tables, undeclared
from steps.shared.tables import aggregate, render_markdown, write_table
from steps.shared.tracking import log_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Record = dict[str, Any]


class Report(NamedTuple):
    """What the figures of a report may read."""

    runs: list[Record]  # the lines of runs.csv
    tables: list[Table]
    cells: list[Record]  # of table.csv
    verdicts: list[Record]  # of claims.json

    def labels(self) -> dict[str, str]:
        """Return the label of every row of a table."""
        return {row: label for table in self.tables for row, label in table.rows.items()}


def report_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the flags of every report."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--runs", type=Path, nargs="+", required=True, help="what evaluation wrote")
    parser.add_argument("--claims", type=Path, required=True, help="claims.yaml of the paper")
    parser.add_argument("--tables", type=Path, required=True, help="tables.yaml of the paper")
    parser.add_argument("--scale", default="mini")
    parser.add_argument("--out", type=Path, required=True, help="folder of the evaluate phase")
    return parser


def write_report(
    args: argparse.Namespace,
    *,
    title: str,
    shown: Sequence[str],
    items: Sequence[Path] = (),
    about: Callable[[Claim], bool] = lambda claim: True,
) -> Report:
    """Write runs.csv, table.csv, .md and .html, claims.json and metrics.json into `args.out`.

    `shown`: the metrics of metrics.json, as means of the tables without x. `items`: the files that
    become items.csv, for claims that name it. `about`: which claims are of this configuration.
    """
    tables = load_tables(args.tables)
    claims = [claim for claim in load_claims(args.claims) if about(claim)]
    if problems := undeclared(claims, tables):
        raise InputError(f"{args.claims}: {'; '.join(problems)}")
    runs = [line for path in args.runs for line in _read(path)]
    outcomes = [line for path in items for line in _read(path, "item")]
    write_csv(args.out / "runs.csv", list(runs[0]), runs)
    if items:
        write_csv(args.out / "items.csv", list(outcomes[0]), outcomes)
    cells = aggregate(runs, tables)
    verdicts = evaluate_claims(claims, runs, folder=args.out)
    write_table(args.out / "table.csv", cells)
    shown_as = {"table.md": render_markdown, "table.html": render_html}
    for name, render in shown_as.items():
        write_text(args.out / name, render(cells, tables, verdicts, title=title))
    write_json(args.out / "claims.json", verdicts)
    write_json(args.out / "metrics.json", metrics(cells, verdicts, shown))
    return Report(runs, tables, cells, verdicts)


def _read(path: Path, *more: str) -> list[Record]:
    """Return the lines of a file of runs, whose columns are known, and `more`."""
    lines = read_csv(path, *CELL, "seed", "x", "value", *more)
    check_numbers(path, lines, ("seed", "value"))
    check_numbers(path, lines, ("x",), blank=True)
    return lines


def metrics(
    cells: Iterable[Mapping[str, Any]],
    verdicts: Iterable[Mapping[str, Any]],
    shown: Sequence[str],
) -> Record:
    """Return what `dvc metrics show` prints: means by row, and the verdicts."""
    means: dict[str, Record] = {}
    for cell in cells:
        if cell["metric"] in shown and cell["x"] is None and cell["mean"] is not None:
            name = "_".join(cell[key] for key in ("table", "dataset", "split", "metric"))
            means.setdefault(cell["row"], {})[name] = cell["mean"]
    return {"means": means, "verdicts": {claim["id"]: claim["verdict"] for claim in verdicts}}


def write_figures(
    args: argparse.Namespace, report: Report, figures: Mapping[str, "Figure"], *, paper: str
) -> None:
    """Write figures/<name>.svg, and send them with the tables and effects to W&B."""
    from steps.shared.plots import save

    paths = {name: args.out / "figures" / f"{name}.svg" for name in figures}
    for name, figure in figures.items():
        save(figure, paths[name])
    effects = {claim["id"]: claim["effect"] for claim in report.verdicts}
    log_run(
        scale=args.scale,
        paper=paper,
        phase="evaluate",
        row="tables",
        seed=0,
        config={"tables": [table.id for table in report.tables]},
        history=None,
        summary={name: effect for name, effect in effects.items() if effect is not None},
        tables={"table": args.out / "table.csv"},
        figures=paths,
    )
