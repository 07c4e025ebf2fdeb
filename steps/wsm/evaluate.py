"""Measure every model of one seed on the test splits: runs of all four tables."""

from pathlib import Path

from steps.shared import selection
from steps.shared.flags import read_config, step_parser
from steps.shared.runs import COLUMNS, Run, run_of, write_runs
from steps.shared.runtime import deterministic, progress, run_step, torch_device, write_csv
from steps.wsm.config import Evaluate
from steps.wsm.plan import SWEEPS

ITEM = [*COLUMNS[:-1], "item", "value"]


def main(argv: list[str] | None = None) -> None:
    """Write seed<seed>.csv (runs) and seed<seed>_items.csv (one line a test item)."""
    parser = step_parser(__doc__, "threads", "device")
    parser.add_argument("--selection", type=Path, required=True, help="selection.json of merge")
    parser.add_argument("--data", type=Path, required=True, help="manifest.json of prepare")
    parser.add_argument("--out", type=Path, required=True, help="folder for the outputs")
    args = parser.parse_args(argv)
    config = read_config(args, Evaluate)
    from steps.wsm.bench import Bench
    from steps.wsm.model import context_of, load

    deterministic(args.threads)
    models = selection.read(args.selection)
    runs, items = _identities(models, args.seed), []
    context = context_of(load(next(iter(models.values())).folder))
    bench = Bench(config, args.data, context, torch_device(args.device))
    label = f"wsm evaluate seed {args.seed}"
    for row, model in progress(models.items(), total=len(models), label=label):
        for run, outcomes in bench.measure(row, model.folder, args.seed):
            runs.append(run)
            keys = {key: run[key] for key in ITEM if key in run}
            items += [{**keys, "item": i, "value": value} for i, value in enumerate(outcomes)]
    write_runs(args.out / f"seed{args.seed}.csv", runs, seed=args.seed)
    write_csv(args.out / f"seed{args.seed}_items.csv", ITEM, items)


def _identities(models: dict[str, selection.Selected], seed: int) -> list[Run]:
    """Return the errors of the merge identity that merge measured on the real checkpoints."""
    return [
        run_of("main", "all", "identity_error", model.notes["identity_error"])
        | {"dataset": "checkpoints", "row": row, "seed": seed}
        for row, model in models.items()
        if "identity_error" in model.notes and not row.startswith(SWEEPS)
    ]


if __name__ == "__main__":
    run_step(main)
