"""Add adapters to the weights they were trained on; say which model each row is evaluated by."""

from pathlib import Path

from steps.cellduality.config import Merge
from steps.cellduality.plan import MODEL_FILES
from steps.shared import selection
from steps.shared.atomic import atomic_folder
from steps.shared.flags import read_config, step_parser
from steps.shared.runtime import InputError, deterministic, run_step


def main(argv: list[str] | None = None) -> None:
    """Write <row>/seed<seed>/, whole models of rows with adapters; seed<seed>/selection.json."""
    parser = step_parser(__doc__, "threads")
    parser.add_argument("--rows", nargs="+", required=True, help="in the order of training")
    parser.add_argument("--starts", nargs="+", required=True, help="the row each one starts from")
    parser.add_argument("--adapters", nargs="*", default=[], help="rows that left an adapter")
    parser.add_argument("--trained", type=Path, required=True, help="folder of the train phase")
    parser.add_argument("--out", type=Path, required=True, help="folder for the outputs")
    args = parser.parse_args(argv)
    read_config(args, Merge)
    if len(args.rows) != len(args.starts):
        raise InputError(f"--starts: {len(args.starts)} for {len(args.rows)} rows: one a row")
    deterministic(args.threads)
    seed = f"seed{args.seed}"
    models: dict[str, Path] = {}
    for row, start in zip(args.rows, args.starts, strict=True):
        trained = args.trained / row / seed
        if row in args.adapters:
            if start not in models:
                raise InputError(f"--starts {start}: {row} has an adapter on it, and comes before")
            models[row] = add(models[start], trained, args.out / row / seed)
        else:
            models[row] = trained
    chosen = {row: [folder / "model.safetensors"] for row, folder in models.items()}
    selection.write(args.out / seed, chosen)


def add(base: Path, adapter: Path, out: Path) -> Path:
    """Write the model of `base` plus the adapter; return its folder."""
    from steps.cellduality import policy

    with atomic_folder(out) as folder:
        policy.save(*policy.merged(base, adapter), folder)
        for path in folder.iterdir():
            if path.name not in MODEL_FILES:  # what the workflow does not declare
                path.unlink()
    return out


if __name__ == "__main__":
    run_step(main)
