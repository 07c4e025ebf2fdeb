"""Collect the runs of all data sets and seeds into N2L's tables, claims, metrics and figures."""

import argparse
from pathlib import Path

from steps.n2l.plan import FIGURES
from steps.shared.claim_spec import Claim
from steps.shared.claims import evaluate_claims, load_claims
from steps.shared.page import render_html
from steps.shared.runtime import InputError, read_csv, run_step, write_csv, write_json, write_text
from steps.shared.table_spec import load_tables, undeclared
from steps.shared.tables import aggregate, render_markdown, write_table
from steps.shared.tracking import log_run

TITLE = "N2L: naming to learn (OpenReview Hc71kKCEFG)"
SHOWN = ("average", "last", "forgetting", "pseudo_before", "pseudo_after")  # in metrics.json


def main(argv: list[str] | None = None) -> None:
    """Write everything that the evaluate phase publishes; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--datasets", nargs="+", required=True)
    parser.add_argument("--runs", type=Path, nargs="+", required=True, help="a CSV a set and seed")
    shown = "labels.safetensors of a seed for each data set, which figures show"
    parser.add_argument("--learned", type=Path, nargs="+", required=True, help=shown)
    parser.add_argument("--claims", type=Path, required=True)
    parser.add_argument("--tables", type=Path, required=True)
    parser.add_argument("--scale", default="mini")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args(argv)
    if len(args.learned) != len(args.datasets):
        raise InputError(f"--learned: {len(args.learned)} files: must be one for each data set")
    tables = load_tables(args.tables)
    # claims measured on other data sets are those of another scale
    claims = [claim for claim in load_claims(args.claims) if _about(claim, args.datasets)]
    if problems := undeclared(claims, tables):
        raise InputError(f"{args.claims}: {'; '.join(problems)}")
    runs = [run for path in args.runs for run in read_csv(path)]
    write_csv(args.out / "runs.csv", list(runs[0]), runs)
    cells = aggregate(runs, tables)
    verdicts = evaluate_claims(claims, runs, folder=args.out)
    write_table(args.out / "table.csv", cells)
    write_text(args.out / "table.md", render_markdown(cells, tables, verdicts))
    write_text(args.out / "table.html", render_html(cells, tables, verdicts, title=TITLE))
    write_json(args.out / "claims.json", verdicts)
    write_json(args.out / "metrics.json", _metrics(cells, verdicts))
    _draw(args, runs, {row: label for table in tables for row, label in table.rows.items()})
    _mirror(args, verdicts)


def _about(claim: Claim, datasets: list[str]) -> bool:
    return claim.measure is None or set(claim.measure.dataset) <= set(datasets)


def _metrics(cells: list[dict], verdicts: list[dict]) -> dict:
    """Return what `dvc metrics show` prints: the means of the tables without x, the verdicts."""
    means: dict[str, dict] = {}
    for cell in cells:
        if cell["metric"] in SHOWN and cell["x"] is None and cell["mean"] is not None:
            name = f"{cell['table']}_{cell['dataset']}_{cell['split']}_{cell['metric']}"
            means.setdefault(cell["row"], {})[name] = cell["mean"]
    return {"means": means, "verdicts": {claim["id"]: claim["verdict"] for claim in verdicts}}


def _draw(args: argparse.Namespace, runs: list[dict], labels: dict[str, str]) -> None:
    from steps.n2l.figures import draw
    from steps.shared.plots import save, style

    style()
    learned = dict(zip(args.datasets, args.learned, strict=True))
    for name, figure in draw(runs, labels, learned).items():
        save(figure, args.out / "figures" / f"{name}.svg")


def _mirror(args: argparse.Namespace, verdicts: list[dict]) -> None:
    log_run(
        scale=args.scale,
        paper="n2l",
        phase="evaluate",
        row="tables",
        seed=0,
        config={"tables": list(FIGURES)},
        history=None,
        summary={claim["id"]: claim["effect"] for claim in verdicts if claim["effect"] is not None},
        tables={"table": args.out / "table.csv"},
        figures={name: args.out / "figures" / f"{name}.svg" for name in FIGURES},
    )


if __name__ == "__main__":
    run_step(main)
