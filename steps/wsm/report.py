"""Collect the runs of all seeds into WSM's tables, claims, metrics and figures."""

import argparse
from pathlib import Path

from steps.shared.claims import evaluate_claims, load_claims
from steps.shared.page import render_html
from steps.shared.runtime import (
    InputError,
    read_csv,
    run_step,
    write_csv,
    write_json,
    write_text,
)
from steps.shared.table_spec import load_tables, undeclared
from steps.shared.tables import aggregate, render_markdown, write_table
from steps.shared.tracking import log_run
from steps.wsm.plan import FIGURES

TITLE = "WSM: decay-free learning-rate schedule via checkpoint merging (arXiv 2507.17634)"


def main(argv: list[str] | None = None) -> None:
    """Write everything that the evaluate phase publishes; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, nargs="+", required=True, help="one CSV a seed")
    parser.add_argument("--items", type=Path, nargs="+", required=True, help="one CSV a seed")
    parser.add_argument("--histories", type=Path, required=True, help="folder of the trained rows")
    parser.add_argument("--rows", nargs="+", required=True, help="the trained rows")
    parser.add_argument("--claims", type=Path, required=True)
    parser.add_argument("--tables", type=Path, required=True)
    parser.add_argument("--scale", default="mini")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args(argv)
    tables, claims = load_tables(args.tables), load_claims(args.claims)
    if problems := undeclared(claims, tables):
        raise InputError(f"{args.claims}: {'; '.join(problems)}")
    runs = [run for path in args.runs for run in read_csv(path)]
    items = [item for path in args.items for item in read_csv(path)]
    write_csv(args.out / "runs.csv", list(runs[0]), runs)
    write_csv(args.out / "items.csv", list(items[0]), items)
    cells = aggregate(runs, tables)
    verdicts = evaluate_claims(claims, runs, folder=args.out)
    write_table(args.out / "table.csv", cells)
    write_text(args.out / "table.md", render_markdown(cells, tables, verdicts))
    write_text(args.out / "table.html", render_html(cells, tables, verdicts, title=TITLE))
    write_json(args.out / "claims.json", verdicts)
    write_json(args.out / "metrics.json", _metrics(cells, verdicts))
    _draw(args, runs, tables, cells)
    _mirror(args, verdicts)


def _metrics(cells: list[dict], verdicts: list[dict]) -> dict:
    """Return what `dvc metrics show` prints: the main table's means, and the verdicts."""
    means: dict[str, dict] = {}
    for cell in cells:
        if cell["table"] == "main" and cell["metric"] != "identity_error":
            means.setdefault(cell["row"], {})[f"{cell['dataset']}_{cell['metric']}"] = cell["mean"]
    return {"main": means, "verdicts": {claim["id"]: claim["verdict"] for claim in verdicts}}


def _draw(args: argparse.Namespace, runs: list[dict], tables: list, cells: list[dict]) -> None:
    from steps.shared.plots import save, style
    from steps.wsm import figures

    style()
    seeds = sorted({int(run["seed"]) for run in runs})
    histories = {
        row: [read_csv(args.histories / row / f"seed{seed}" / "history.csv") for seed in seeds]
        for row in ["trunk", *args.rows]
    }
    drawn = {
        "training": figures.training(histories),
        "main_table": figures.main_table(cells, tables[0].rows),
        "sweeps": figures.sweeps(runs),
    }
    for name in FIGURES:
        save(drawn[name], args.out / "figures" / f"{name}.svg")


def _mirror(args: argparse.Namespace, verdicts: list[dict]) -> None:
    log_run(
        scale=args.scale,
        paper="wsm",
        phase="evaluate",
        row="tables",
        seed=0,
        config={"rows": args.rows},
        history=None,
        summary={claim["id"]: claim["effect"] for claim in verdicts if claim["effect"] is not None},
        tables={"table": args.out / "table.csv"},
        figures={name: args.out / "figures" / f"{name}.svg" for name in FIGURES},
    )


if __name__ == "__main__":
    run_step(main)
