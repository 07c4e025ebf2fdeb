"""Collect the runs of all tasks and seeds into QUEST's tables, claims, metrics and figures."""

from importlib import import_module
from pathlib import Path

from steps.quest.plan import TASKS
from steps.shared.reports import report_parser, write_figures, write_report
from steps.shared.runtime import run_step

TITLE = "QUEST: query-modulated spherical attention (arXiv 2604.00199)"
SHOWN = (
    "success_rate",
    "accuracy",
    "widest_stable_rate",
    "bits_per_byte",
    "max_logit",
)  # metrics.json


def main(argv: list[str] | None = None) -> None:
    """Write everything that the evaluate phase publishes; see the module's docstring."""
    parser = report_parser(__doc__)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), required=True)
    parser.add_argument("--trained", type=Path, required=True, help="folder of the train phase")
    args = parser.parse_args(argv)
    report = write_report(args, title=TITLE, shown=SHOWN)
    from steps.shared.plots import style

    style()
    figures = {}
    for task in args.tasks:
        draw = import_module(f"steps.quest.{task}_figures").draw
        folders = {"trained": args.trained / task, "measured": args.out / "seeds"}
        figures |= draw(report.runs, report.labels(), **folders)
    write_figures(args, report, figures, paper="quest")


if __name__ == "__main__":
    run_step(main)
