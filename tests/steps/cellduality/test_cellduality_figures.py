"""Figures of cells: what is drawn where, the same bytes again, rows that do not fit."""

import numpy as np
import pytest

from steps.cellduality import cell_figures
from steps.cellduality.splits import OOD, SPLITS
from steps.shared.plots import save, style
from steps.shared.runtime import InputError

TYPES = ("B", "NK", "T")


@pytest.fixture(autouse=True)
def house_style():
    style()


def cells(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    type_N = rng.integers(0, 3, count)
    return rng.normal(size=(count, 6)) + 5 * np.eye(3, 6)[type_N], type_N


def dots(ax) -> np.ndarray:
    """Return the places of an axes' dots (n, 2) that are not pale."""
    pale = np.full(3, 0xE5 / 255)
    found = []
    for dots in ax.collections:
        colours = np.broadcast_to(dots.get_facecolors(), (len(dots.get_offsets()), 4))
        found.append(dots.get_offsets()[~np.isclose(colours[:, :3], pale).all(axis=1)])
    return np.concatenate(found)


def test_quality_shows_every_type_of_the_file():
    figure = cell_figures.quality()
    titles = [ax.get_title("left") for ax in figure.axes]
    assert titles == list(cell_figures.QUALITY.values())
    names = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert len(names) == 10 and "CD34+" in names


def test_real_cells_by_type_and_split_twice_the_same_bytes(tmp_path):
    x, type_N = cells(0, 60)
    split_N = np.arange(60) % len(SPLITS)
    for name in ("a.svg", "b.svg"):
        figure = cell_figures.embedding(x, type_N, TYPES, split_N)
        places = [dots(ax) for ax in figure.axes]
        save(figure, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert len(places[0]) == len(places[1]) == 60
    texts = [[text.get_text() for text in ax.get_legend().get_texts()] for ax in figure.axes]
    assert texts == [list(TYPES), [*SPLITS[:OOD], "held out"]]


def test_generated_cells_lie_where_real_cells_of_their_type_lie():
    (real, type_N), (x, wanted_N) = cells(1, 90), cells(2, 30)
    figure = cell_figures.generated(real, type_N, {"SFT": (x, wanted_N)}, TYPES)
    assert [ax.get_title("left") for ax in figure.axes] == ["real cells", "SFT"]
    drawn = [dots(ax) for ax in figure.axes]
    assert [len(places) for places in drawn] == [90, 30]
    centres = np.array([drawn[0][type_N == code].mean(axis=0) for code in range(3)])
    nearest = np.linalg.norm(drawn[1][:, None] - centres, axis=2).argmin(axis=1)
    assert (nearest == wanted_N).mean() > 0.9


def test_rows_that_do_not_fit_are_named():
    real, type_N = cells(1, 20)
    with pytest.raises(InputError, match="row 'SFT'"):
        cell_figures.generated(real, type_N, {"SFT": (real[:5, :2], type_N[:5])}, TYPES)


def test_more_types_than_colours_are_drawn_with_the_rarest_as_one():
    types = tuple(f"type {number}" for number in range(14))
    type_N = np.repeat(np.arange(14), [5, 1, *[4] * 9, 2, 3, 6])
    place_L, names = cell_figures.told_apart(type_N, types)
    assert names == (*(types[code] for code in (0, *range(2, 11), 13)), "other types")
    assert place_L.tolist() == [0, 11, *range(1, 10), 11, 11, 10]
    place_L, names = cell_figures.told_apart(type_N[:5], types[:3])
    assert names == types[:3] and place_L.tolist() == [0, 1, 2]
