"""Measure every model of one seed on the test splits: runs of all four tables."""

from pathlib import Path

from steps.shared import selection
from steps.shared.config import read_config, step_parser
from steps.shared.runs import COLUMNS, write_runs
from steps.shared.runtime import deterministic, progress, run_step, write_csv
from steps.wsm.config import Evaluate

ITEM = [*COLUMNS[:-1], "item", "value"]


def main(argv: list[str] | None = None) -> None:
    """Write seed<seed>.csv (runs) and seed<seed>_items.csv (one line a test item)."""
    parser = step_parser(__doc__)
    parser.add_argument("--selection", type=Path, required=True, help="selection.json of merge")
    parser.add_argument("--prepared", type=Path, required=True, help="folder of prepare's outputs")
    parser.add_argument("--out", type=Path, required=True, help="folder for the outputs")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", choices=["cpu", "auto"], default="cpu")
    args = parser.parse_args(argv)
    config = read_config(args, Evaluate)
    from steps.wsm.bench import Bench
    from steps.wsm.model import context_of, load

    deterministic(args.threads)
    models = selection.read(args.selection)
    runs, items = _identities(models, args.seed), []
    context = context_of(load(next(iter(models.values())).folder))
    bench = Bench(config, args.prepared, context, _device(args.device))
    for row, model in progress(models.items(), total=len(models), label="wsm evaluate"):
        for run, outcomes in bench.measure(row, model.folder, args.seed):
            runs.append(run)
            keys = {key: run[key] for key in ITEM if key in run}
            items += [{**keys, "item": i, "value": value} for i, value in enumerate(outcomes)]
    write_runs(args.out / f"seed{args.seed}.csv", runs, seed=args.seed)
    write_csv(args.out / f"seed{args.seed}_items.csv", ITEM, items)


def _device(name: str) -> str:
    import torch

    return "cuda" if name == "auto" and torch.cuda.is_available() else "cpu"


def _identities(models: dict[str, selection.Selected], seed: int) -> list[dict]:
    """Return the errors of the merge identity that merge measured on the real checkpoints."""
    run = {"table": "main", "dataset": "checkpoints", "split": "all", "metric": "identity_error"}
    return [
        run | {"row": row, "seed": seed, "x": "", "value": model.notes["identity_error"]}
        for row, model in models.items()
        if "identity_error" in model.notes and not row.startswith(("duration", "count"))
    ]


if __name__ == "__main__":
    run_step(main)
