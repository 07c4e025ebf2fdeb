"""Collect the runs of all seeds into CellDuality's tables, claims, metrics and figures."""

import argparse
from pathlib import Path

from steps.cellduality.config import Evaluate
from steps.cellduality.plan import FIGURES
from steps.shared.claims import evaluate_claims, load_claims
from steps.shared.config import read_config, step_parser
from steps.shared.page import render_html
from steps.shared.runtime import InputError, read_csv, run_step, write_csv, write_json, write_text
from steps.shared.table_spec import load_tables, undeclared
from steps.shared.tables import aggregate, render_markdown, write_table
from steps.shared.tracking import log_run

TITLE = "CellDuality: self-supervised RL of cell language models (OpenReview I4meJN28Ol)"


def main(argv: list[str] | None = None) -> None:
    """Write everything that the evaluate phase publishes; see the module's docstring."""
    parser = step_parser(__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", required=True)
    parser.add_argument("--results", type=Path, required=True, help="folder of all phases")
    parser.add_argument("--claims", type=Path, required=True)
    parser.add_argument("--tables", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args(argv)
    config = read_config(args, Evaluate)
    tables, claims = load_tables(args.tables), load_claims(args.claims)
    if problems := undeclared(claims, tables):
        raise InputError(f"{args.claims}: {'; '.join(problems)}")
    folder = args.results / "evaluate/seeds"
    runs = [run for seed in args.seeds for run in read_csv(folder / f"seed{seed}.csv")]
    write_csv(args.out / "runs.csv", list(runs[0]), runs)
    cells = aggregate(runs, tables)
    verdicts = evaluate_claims(claims, runs, folder=args.out)
    write_table(args.out / "table.csv", cells)
    write_text(args.out / "table.md", render_markdown(cells, tables, verdicts))
    write_text(args.out / "table.html", render_html(cells, tables, verdicts, title=TITLE))
    write_json(args.out / "claims.json", verdicts)
    write_json(args.out / "metrics.json", _metrics(cells, verdicts))
    _draw(args, config, runs, {r: label for table in tables for r, label in table.rows.items()})
    _mirror(args, verdicts)


def _metrics(cells: list[dict], verdicts: list[dict]) -> dict:
    """Return what `dvc metrics show` prints: the means of the main table, the verdicts."""
    means: dict[str, dict] = {}
    for cell in cells:
        if cell["table"] == "main" and cell["mean"] is not None:
            name = f"{cell['dataset']}_{cell['split']}_{cell['metric']}"
            means.setdefault(cell["row"], {})[name] = cell["mean"]
    return {"means": means, "verdicts": {claim["id"]: claim["verdict"] for claim in verdicts}}


def _draw(
    args: argparse.Namespace, config: Evaluate, runs: list[dict], labels: dict[str, str]
) -> None:
    from steps.cellduality.figures import draw
    from steps.shared.plots import save, style

    style()
    for name, figure in draw(runs, labels, args.results, args.seeds, config).items():
        save(figure, args.out / "figures" / f"{name}.svg")


def _mirror(args: argparse.Namespace, verdicts: list[dict]) -> None:
    log_run(
        scale=args.scale,
        paper="cellduality",
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
