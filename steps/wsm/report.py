"""Collect the runs of all seeds into WSM's tables, claims, metrics and figures."""

from pathlib import Path

from steps.shared.reports import report_parser, write_figures, write_report
from steps.shared.runtime import run_step

TITLE = "WSM: decay-free learning-rate schedule via checkpoint merging (arXiv 2507.17634)"
SHOWN = ("bits_per_byte", "choice_accuracy", "next_token_accuracy")  # in metrics.json


def main(argv: list[str] | None = None) -> None:
    """Write everything that the evaluate phase publishes; see the module's docstring."""
    parser = report_parser(__doc__)
    parser.add_argument("--items", type=Path, nargs="+", required=True, help="one CSV a seed")
    parser.add_argument("--trained", type=Path, required=True, help="folder of the train phase")
    parser.add_argument("--rows", nargs="+", required=True, help="the trained rows")
    args = parser.parse_args(argv)
    report = write_report(args, title=TITLE, shown=SHOWN, items=args.items)
    from steps.shared.plots import style
    from steps.wsm.figures import draw

    style()
    labels = report.tables[0].rows
    figures = draw(report.runs, labels, trained=args.trained, rows=args.rows)
    write_figures(args, report, figures, paper="wsm")


if __name__ == "__main__":
    run_step(main)
