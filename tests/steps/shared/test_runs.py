"""Lines of runs: every paper's have the same columns; as arrays over seeds and x."""

import numpy as np

from steps.shared.runs import COLUMNS, run_of, series, write_runs


def test_runs_are_written_with_the_seed_and_an_empty_x(tmp_path):
    plain = {"table": "main", "dataset": "d", "split": "test", "row": "a", "metric": "m"}
    curve = {"dataset": "d", "row": "b", **run_of("sweep", "all", "loss", 2, 0.01)}
    write_runs(tmp_path / "seed3.csv", [{**plain, "value": 1 / 3}, curve], seed=3)
    assert (tmp_path / "seed3.csv").read_text().splitlines() == [
        ",".join(COLUMNS),
        "main,d,test,a,m,3,,0.3333333333333333",
        "sweep,d,all,b,loss,3,0.01,2.0",
    ]


def read(row: str, seed: str, x: str, value: str, metric: str = "m") -> dict[str, str]:
    names = {"table": "t", "dataset": "d", "split": "test", "row": row, "metric": metric}
    return {**names, "seed": seed, "x": x, "value": value}


def test_a_series_is_by_row_seed_and_x_whatever_the_order_of_the_lines():
    runs = [
        read("a", str(seed), x, str(100 * seed + float(x)))
        for seed in (10, 9)
        for x in ("16", "2", "0.5")
    ]
    runs += [read("b", "0", "2", "7"), read("a", "9", "2", "-1", metric="other")]
    x_N, found = series(runs, ["c", "b", "a"], table="t", metric="m")
    assert x_N == [0.5, 2.0, 16.0]
    assert list(found) == ["b", "a"]  # c has no runs
    np.testing.assert_array_equal(found["a"], [[900.5, 902, 916], [1000.5, 1002, 1016]])
    np.testing.assert_array_equal(found["b"], [[np.nan, 7, np.nan]])


def test_numbers_on_no_curve_are_one_column():
    runs = [read("a", "1", "", "4"), read("a", "0", "", "3")]
    x_N, found = series(runs, ["a"], table="t")
    assert x_N == [None]
    np.testing.assert_array_equal(found["a"], [[3], [4]])
    assert series(runs, ["a"], table="of another") == ([], {})
