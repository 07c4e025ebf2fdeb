"""Draw every table of benchmarks/results as a figure, a panel a race: `make bench` ends with it."""

from pathlib import Path
from typing import TYPE_CHECKING

from steps.shared.plots import dot_interval, save, style
from steps.shared.runtime import log, read_csv, run_step

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RESULTS = Path(__file__).parents[1] / "results"
TICKS = (0.5, 1, 2, 5, 10, 20, 50, 100)


def main() -> None:
    """Write <table>.svg beside each <table>.csv."""
    style()
    for table in sorted(RESULTS.glob("*.csv")):
        save(draw(read_csv(table)), table.with_suffix(".svg"))
        log(f"{table.with_suffix('.svg')}")


def draw(lines: list[dict[str, str]]) -> "Figure":
    """Draw the median ratio of each line with its range over the rounds, race below race."""
    import matplotlib.pyplot as plt

    races: dict[str, list[dict[str, str]]] = {}
    for line in lines:
        races.setdefault(line["race"], []).append(line)
    counts = [len(own) for own in races.values()]
    height = 0.5 * len(counts) + 0.22 * sum(counts) + 0.6
    ratios = {"height_ratios": [count + 1.0 for count in counts]}
    figure, axes = plt.subplots(
        len(counts), 1, figsize=(8.5, height), sharex=True, squeeze=False, gridspec_kw=ratios
    )
    for ax, (race, own) in zip(axes[:, 0], races.items(), strict=True):
        names = [f"{line['peer']}; {line['size']}" for line in own]
        spans = ([float(line[key]) for line in own] for key in ("ratio", "ratio_low", "ratio_high"))
        dot_interval(ax, names, *spans, highlight=names)
        ax.axvline(1, color="black", linewidth=0.8)
        ax.set_title(race)
        ax.tick_params(axis="y", labelsize=7)
    axes[-1, 0].set_xscale("log")
    low, high = axes[-1, 0].get_xlim()
    ticks = [tick for tick in TICKS if low <= tick <= high]
    axes[-1, 0].set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
    axes[-1, 0].set_xticks([], minor=True)
    axes[-1, 0].set_xlabel("theirs / ours: above 1 ours is better (median, range of the rounds)")
    return figure


if __name__ == "__main__":
    run_step(main)
