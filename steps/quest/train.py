"""Train rows of one task for one seed.

Rows share a process because starting one costs as much as training a row.
"""

from pathlib import Path

from steps.quest.jobs import read_task, task_function
from steps.shared.flags import step_parser
from steps.shared.runtime import deterministic, run_step


def main(argv: list[str] | None = None) -> None:
    """Write <row>/seed<seed>/: history.csv and the trained models."""
    parser = step_parser(__doc__, "state", "threads", "device")
    parser.add_argument("--task", required=True, help="toy, images, sweep, language")
    parser.add_argument("--rows", nargs="+", required=True, help="the rows to train")
    parser.add_argument("--data", type=Path, required=True, help="the task's manifest of prepare")
    parser.add_argument("--out", type=Path, required=True, help="folder for the outputs")
    args = parser.parse_args(argv)
    args.row = args.rows[0]  # a task's parameters are the same in every row
    config = read_task(args, "Train")
    deterministic(args.threads)
    task_function(args.task, "train")(args, config)


if __name__ == "__main__":
    run_step(main)
