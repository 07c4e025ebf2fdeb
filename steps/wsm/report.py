"""Collect the runs of all seeds into WSM's tables, claims, metrics and figures."""

from pathlib import Path

from steps.shared.histories import read_history
from steps.shared.reports import report_parser, write_figures, write_report
from steps.shared.runtime import run_step

TITLE = "WSM: decay-free learning-rate schedule via checkpoint merging (arXiv 2507.17634)"
SHOWN = ("bits_per_byte", "choice_accuracy", "next_token_accuracy")  # in metrics.json


def main(argv: list[str] | None = None) -> None:
    """Write everything that the evaluate phase publishes; see the module's docstring."""
    parser = report_parser(__doc__)
    parser.add_argument("--items", type=Path, nargs="+", required=True, help="one CSV a seed")
    parser.add_argument("--histories", type=Path, required=True, help="folder of the trained rows")
    parser.add_argument("--rows", nargs="+", required=True, help="the trained rows")
    args = parser.parse_args(argv)
    report = write_report(args, title=TITLE, shown=SHOWN, items=args.items)
    from steps.shared.plots import style
    from steps.wsm import figures

    style()
    seeds = sorted({int(run["seed"]) for run in report.runs})
    histories = {
        row: [
            read_history(
                args.histories / row / f"seed{seed}" / "history.csv",
                *("validation_loss", "learning_rate"),
            )
            for seed in seeds
        ]
        for row in ["trunk", *args.rows]
    }
    drawn = {
        "training": figures.training(histories),
        "main_table": figures.main_table(report.cells, report.tables[0].rows),
        "sweeps": figures.sweeps(report.runs),
    }
    write_figures(args, report, drawn, paper="wsm")


if __name__ == "__main__":
    run_step(main)
