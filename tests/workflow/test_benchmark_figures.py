"""The figures of the races: every line of every table is in one, as it is committed."""

import pytest
from smoke_tree import ROOT

from benchmarks.sides.figures import draw
from steps.shared.plots import style
from steps.shared.runtime import read_csv

TABLES = sorted((ROOT / "benchmarks/results").glob("*.csv"))


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem)
def test_a_figure_shows_every_line_of_its_table(table):
    style()
    lines = read_csv(table)
    figure = draw(lines)
    races = list(dict.fromkeys(line["race"] for line in lines))
    assert [ax.get_title("left") for ax in figure.axes] == races
    shown = [label.get_text() for ax in figure.axes for label in ax.get_yticklabels()]
    assert sorted(shown) == sorted(f"{line['peer']}; {line['size']}" for line in lines)
    assert table.with_suffix(".svg").is_file()
