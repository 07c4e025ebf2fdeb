"""Lines of runs: every paper's have the same columns."""

from steps.shared.runs import COLUMNS, run_of, write_runs


def test_runs_are_written_with_the_seed_and_an_empty_x(tmp_path):
    plain = {"table": "main", "dataset": "d", "split": "test", "row": "a", "metric": "m"}
    curve = {"dataset": "d", "row": "b", **run_of("sweep", "all", "loss", 2, 0.01)}
    write_runs(tmp_path / "seed3.csv", [{**plain, "value": 1 / 3}, curve], seed=3)
    assert (tmp_path / "seed3.csv").read_text().splitlines() == [
        ",".join(COLUMNS),
        "main,d,test,a,m,3,,0.3333333333333333",
        "sweep,d,all,b,loss,3,0.01,2.0",
    ]
