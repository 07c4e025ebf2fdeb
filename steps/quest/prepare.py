"""Prepare the data of one task."""

from pathlib import Path

from steps.quest.jobs import read_task, task_function
from steps.shared.flags import step_parser
from steps.shared.runtime import run_step


def main(argv: list[str] | None = None) -> None:
    """Write <task>.json, a manifest, and the tensors or tokens that do not stay on a hub."""
    parser = step_parser(__doc__, "threads")
    parser.add_argument("--task", required=True, help="toy, images, language")
    parser.add_argument("--assets", type=Path, nargs="*", default=[], help="its packaged files")
    parser.add_argument("--out", type=Path, required=True, help="folder for the outputs")
    args = parser.parse_args(argv)
    task_function(args.task, "prepare")(args, read_task(args, "Prepare"))


if __name__ == "__main__":
    run_step(main)
