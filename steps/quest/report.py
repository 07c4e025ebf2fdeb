"""Collect the runs of all tasks and seeds into QUEST's tables, claims, metrics and figures."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from steps.quest.plan import FIGURES, parse_column
from steps.shared.claims import evaluate_claims, load_claims
from steps.shared.page import render_html
from steps.shared.runtime import InputError, read_csv, run_step, write_csv, write_json, write_text
from steps.shared.table_spec import load_tables, undeclared
from steps.shared.tables import aggregate, render_markdown, write_table
from steps.shared.tracking import log_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "QUEST: query-modulated spherical attention (arXiv 2604.00199)"


def main(argv: list[str] | None = None) -> None:
    """Write everything that the evaluate phase publishes; see the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, nargs="+", required=True, help="a CSV a task and seed")
    parser.add_argument("--attention", type=Path, required=True, help="the toy's, of one seed")
    parser.add_argument("--toy", type=Path, required=True, help="folder of the toy's trained rows")
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
    _draw(args, runs, tables[0].rows)
    _mirror(args, verdicts)


def _metrics(cells: list[dict], verdicts: list[dict]) -> dict:
    """Return what `dvc metrics show` prints: the toy's success and logits, and the verdicts."""
    means: dict[str, dict] = {}
    for cell in cells:
        if cell["metric"] in ("success_rate", "max_logit") and cell["x"] is None:
            name = f"{cell['table']}_{cell['metric']}"
            means.setdefault(cell["row"], {})[name] = cell["mean"]
    return {"means": means, "verdicts": {claim["id"]: claim["verdict"] for claim in verdicts}}


def _draw(args: argparse.Namespace, runs: list[dict], labels: dict[str, str]) -> None:
    from steps.quest import figures
    from steps.shared.plots import save, style

    style()
    network = [line for line in read_csv(args.attention) if line["dataset"] == "full"]
    drawn = {
        "toy_attention": figures.toy_attention(network, labels),
        "toy_logits": _logits(args.toy, runs, labels),
        "toy_rates": figures.toy_rates(runs, labels),
    }
    for name in FIGURES:
        save(drawn[name], args.out / "figures" / f"{name}.svg")


def _logits(folder: Path, runs: list[dict], labels: dict[str, str]) -> "Figure":
    """Return the figure of logits over training, from the histories of every row and seed."""
    import numpy as np

    from steps.quest import figures

    own = [run for run in runs if run["table"] == "toy_rate"]
    seeds = sorted({int(run["seed"]) for run in own})
    logits: dict[float, dict[str, np.ndarray]] = {}
    for row in sorted({run["row"] for run in own if run["dataset"] == "full"}, key=[*labels].index):
        histories = [read_csv(folder / row / f"seed{seed}" / "history.csv") for seed in seeds]
        for rate in sorted({float(run["x"]) for run in own}):
            values_SL = [_network_logits(history, rate) for history in histories]
            logits.setdefault(rate, {})[row] = np.array(values_SL)
    updates = np.array([int(line["step"]) for line in _of_network(histories[0])])
    return figures.toy_logits(updates, logits, labels)


def _network_logits(history: list[dict[str, str]], rate: float) -> list[float]:
    """Return the largest logit by line: its geometric mean over the weight decays."""
    from statistics import geometric_mean

    lines = _of_network(history)
    parsed = {name: parse_column(name) for name in lines[0] if name != "step"}
    wanted = ("full", rate, "max_logit")
    chosen = [name for name, (f, r, _, metric) in parsed.items() if (f, r, metric) == wanted]
    return [geometric_mean(float(line[name]) for name in chosen) for line in lines]


def _of_network(history: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the lines that the network has values in: the other form may be longer."""
    return [line for line in history if any(line[n] for n in line if n.startswith("full/"))]


def _mirror(args: argparse.Namespace, verdicts: list[dict]) -> None:
    log_run(
        scale=args.scale,
        paper="quest",
        phase="evaluate",
        row="tables",
        seed=0,
        config={"tables": FIGURES},
        history=None,
        summary={claim["id"]: claim["effect"] for claim in verdicts if claim["effect"] is not None},
        tables={"table": args.out / "table.csv"},
        figures={name: args.out / "figures" / f"{name}.svg" for name in FIGURES},
    )


if __name__ == "__main__":
    run_step(main)
