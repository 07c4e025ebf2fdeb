"""Collect the runs of all data sets and seeds into N2L's tables, claims, metrics and figures."""

from pathlib import Path

from steps.shared.claim_spec import Claim
from steps.shared.reports import report_parser, write_figures, write_report
from steps.shared.runtime import InputError, run_step

TITLE = "N2L: naming to learn (OpenReview Hc71kKCEFG)"
SHOWN = ("average", "last", "forgetting", "pseudo_before", "pseudo_after")  # in metrics.json


def main(argv: list[str] | None = None) -> None:
    """Write everything that the evaluate phase publishes; see the module's docstring."""
    parser = report_parser(__doc__)
    parser.add_argument("--rows", nargs="+", required=True, help="the data sets")
    shown = "labels.safetensors of a seed for each data set, which figures show"
    parser.add_argument("--learned", type=Path, nargs="+", required=True, help=shown)
    args = parser.parse_args(argv)
    if len(args.learned) != len(args.rows):
        raise InputError(f"--learned: {len(args.learned)} files: must be one for each data set")

    def about(claim: Claim) -> bool:
        """Say whether a claim is measured on these data sets; others are of another scale."""
        return claim.measure is None or set(claim.measure.dataset) <= set(args.rows)

    report = write_report(args, title=TITLE, shown=SHOWN, about=about)
    from steps.n2l.figures import draw
    from steps.shared.plots import style

    style()
    learned = dict(zip(args.rows, args.learned, strict=True))
    write_figures(args, report, draw(report.runs, report.labels(), learned), paper="n2l")


if __name__ == "__main__":
    run_step(main)
