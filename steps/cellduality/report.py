"""Collect the runs of all seeds into CellDuality's tables, claims, metrics and figures."""

from pathlib import Path

from steps.cellduality.config import Evaluate
from steps.shared.flags import read_config
from steps.shared.reports import report_parser, write_figures, write_report
from steps.shared.runtime import run_step

TITLE = "CellDuality: self-supervised RL of cell language models (OpenReview I4meJN28Ol)"
SHOWN = (  # in metrics.json
    *("accuracy", "macro_f1", "knn3", "scfid", "diversity", "consistency"),
    *("delta_pearson", "e_distance"),
)


def main(argv: list[str] | None = None) -> None:
    """Write everything that the evaluate phase publishes; see the module's docstring."""
    parser = report_parser(__doc__)
    parser.add_argument("--config", required=True, help="of the evaluate phase, as its steps read")
    parser.add_argument("--results", type=Path, required=True, help="folder of all phases")
    parser.add_argument("--packaged", action="store_true", help="cells are those of scanpy")
    args = parser.parse_args(argv)
    config = read_config(args, Evaluate)
    report = write_report(args, title=TITLE, shown=SHOWN)
    from steps.cellduality.figures import draw
    from steps.shared.plots import style

    style()
    seeds = sorted({int(run["seed"]) for run in report.runs})
    figures = draw(
        report.runs, report.labels(), args.results, seeds, config, packaged=args.packaged
    )
    write_figures(args, report, figures, paper="cellduality")


if __name__ == "__main__":
    run_step(main)
