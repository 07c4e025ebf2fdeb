"""Measure the models of one task and seed: runs, and what the figures need."""

from pathlib import Path

from steps.quest.jobs import read_task, task_function
from steps.shared.flags import step_parser
from steps.shared.runtime import run_step


def main(argv: list[str] | None = None) -> None:
    """Write <task>_seed<seed>.csv (runs); of some tasks also <task>_seed<seed>_maps.csv."""
    parser = step_parser(__doc__, "threads", "device")
    parser.add_argument("--task", required=True, help="toy, images, sweep, language")
    parser.add_argument("--selection", type=Path, required=True, help="selection.json of merge")
    parser.add_argument("--data", type=Path, required=True, help="the task's manifest of prepare")
    parser.add_argument("--out", type=Path, required=True, help="folder for the outputs")
    args = parser.parse_args(argv)
    config = read_task(args, "Evaluate")
    task_function(args.task, "evaluate")(args, config)


if __name__ == "__main__":
    run_step(main)
