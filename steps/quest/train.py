"""Train a task: of the toy, all its rows for one seed, each row a grid of models.

Rows share a process because starting one costs as much as training a row.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from steps.quest.config import Toy, ToyTrain, Train, read_task
from steps.shared.config import step_parser
from steps.shared.runtime import deterministic, job_key, run_step, training_state

if TYPE_CHECKING:
    from steps.quest.stacked import Stack


def main(argv: list[str] | None = None) -> None:
    """Run one training job; see the module's docstring."""
    parser = step_parser(__doc__)
    parser.add_argument("--task", choices=["toy"], required=True)
    parser.add_argument("--rows", nargs="+", required=True, help="the rows to train")
    parser.add_argument("--data", type=Path, required=True, help="toy.safetensors of prepare")
    parser.add_argument("--out", type=Path, required=True, help="folder for the outputs")
    parser.add_argument("--state", type=Path, default=Path("state"), help="checkpoint folder")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args(argv)
    args.row = args.rows[0]  # the toy's parameters are the same in every row
    config = read_task(args, Train, ToyTrain)
    deterministic(args.threads)
    _train_toy(args, config)


def _train_toy(args, config: ToyTrain) -> None:
    from steps.quest import toy_train

    key = job_key(
        *("steps.quest.train", args),
        paper="quest",
        row="-".join(["toy", *args.rows]),
        config=config,
        inputs=[args.data],
    )
    data = toy_train.load_data(args.data, config.toy, args.seed)
    with training_state(args.state, key) as state:
        for row in args.rows:
            stacks = toy_train.train_row(row, data, config.toy, seed=args.seed, state=state)
            folder = args.out / row / f"seed{args.seed}"
            toy_train.write_row(stacks, config.toy, folder)
            _mirror(args, config.toy, row, stacks, folder)


def _mirror(args, config: Toy, row: str, stacks: dict[str, "Stack"], folder: Path) -> None:
    from steps.shared.tracking import log_run

    log_run(
        scale=args.scale,
        paper="quest",
        phase="train",
        row=f"toy-{row}",
        seed=args.seed,
        config=config.model_dump(),
        history=folder / "history.csv",
        summary={
            f"{form}/{metric}": value_M
            for form, stack in stacks.items()
            for metric, value_M in stack.history[-1].values.items()
        },
    )


if __name__ == "__main__":
    run_step(main)
