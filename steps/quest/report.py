"""Collect the runs of all tasks and seeds into QUEST's tables, claims, metrics and figures."""

import argparse
from importlib import import_module
from pathlib import Path

from steps.quest.plan import TASKS
from steps.shared.claims import evaluate_claims, load_claims
from steps.shared.page import render_html
from steps.shared.runtime import InputError, read_csv, run_step, write_csv, write_json, write_text
from steps.shared.table_spec import load_tables, undeclared
from steps.shared.tables import aggregate, render_markdown, write_table
from steps.shared.tracking import log_run

TITLE = "QUEST: query-modulated spherical attention (arXiv 2604.00199)"
SHOWN = ("success_rate", "accuracy", "widest_stable_rate", "loss", "max_logit")  # in metrics.json


def main(argv: list[str] | None = None) -> None:
    """Write everything that the evaluate phase publishes; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), required=True)
    parser.add_argument("--runs", type=Path, nargs="+", required=True, help="a CSV a task and seed")
    parser.add_argument("--trained", type=Path, required=True, help="folder of the train phase")
    parser.add_argument("--claims", type=Path, required=True)
    parser.add_argument("--tables", type=Path, required=True)
    parser.add_argument("--scale", default="mini")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args(argv)
    tables, claims = load_tables(args.tables), load_claims(args.claims)
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
    names = _draw(args, runs, {row: label for table in tables for row, label in table.rows.items()})
    _mirror(args, verdicts, names)


def _metrics(cells: list[dict], verdicts: list[dict]) -> dict:
    """Return what `dvc metrics show` prints: the means of the tables without x, the verdicts."""
    means: dict[str, dict] = {}
    for cell in cells:
        if cell["metric"] in SHOWN and cell["x"] is None and cell["mean"] is not None:
            name = f"{cell['table']}_{cell['split']}_{cell['metric']}"
            means.setdefault(cell["row"], {})[name] = cell["mean"]
    return {"means": means, "verdicts": {claim["id"]: claim["verdict"] for claim in verdicts}}


def _draw(args: argparse.Namespace, runs: list[dict], labels: dict[str, str]) -> list[str]:
    """Draw the figures of every task; return their names."""
    from steps.shared.plots import save, style

    style()
    names = []
    for task in args.tasks:
        draw = import_module(f"steps.quest.{task}_figures").draw
        drawn = draw(runs, labels, trained=args.trained / task, measured=args.out / "seeds")
        for name in TASKS[task].figures:
            save(drawn[name], args.out / "figures" / f"{name}.svg")
            names.append(name)
    return names


def _mirror(args: argparse.Namespace, verdicts: list[dict], figures: list[str]) -> None:
    log_run(
        scale=args.scale,
        paper="quest",
        phase="evaluate",
        row="tables",
        seed=0,
        config={"tables": figures},
        history=None,
        summary={claim["id"]: claim["effect"] for claim in verdicts if claim["effect"] is not None},
        tables={"table": args.out / "table.csv"},
        figures={name: args.out / "figures" / f"{name}.svg" for name in figures},
    )


if __name__ == "__main__":
    run_step(main)
