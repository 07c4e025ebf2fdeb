"""What every report writes, on a table of two rows."""

import argparse
import json
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
import yaml

from steps.shared.reports import metrics, report_parser, write_figures, write_report
from steps.shared.runtime import InputError, read_csv, read_json, write_csv

FIELDS = ("table", "dataset", "split", "row", "metric", "seed", "x", "value")
TABLE = {
    **{"id": "main", "title": "Loss", "row_title": "Row", "rows": {"old": "Old", "new": "New"}},
    "columns": [
        {"label": "Loss", "dataset": "d", "split": "test", "metric": "loss", "unit": "nats",
         "better": "lower", "digits": 2}
    ],
}  # fmt: skip
CLAIM = {
    **{"id": "gain", "statement": "new is lower", "kind": "direction", "side": "below"},
    **{"delta": 0.1, "unit": "nats", "paper_effect": None, "table": "main"},
    "measure": {
        **{"function": "paired_difference", "dataset": "d", "split": "test", "metric": "loss"},
        **{"a": "new", "b": "old"},
    },
}
OTHER = {**CLAIM, "id": "other", "measure": None, "not_tested": "no data"}


def lines(row, *values):
    place = {"table": "main", "dataset": "d", "split": "test", "metric": "loss", "x": ""}
    return [{**place, "row": row, "seed": s, "value": v} for s, v in enumerate(values)]


@pytest.fixture
def args(tmp_path, monkeypatch) -> argparse.Namespace:
    monkeypatch.chdir(tmp_path)
    write_csv(Path("a.csv"), FIELDS, lines("old", 2.0, 2.1, 2.2))
    write_csv(Path("b.csv"), FIELDS, lines("new", 1.0, 1.2, 1.1))
    Path("tables.yaml").write_text(yaml.safe_dump([TABLE]))
    Path("claims.yaml").write_text(yaml.safe_dump([CLAIM, OTHER]))
    flags = ["--runs", "a.csv", "b.csv", "--claims", "claims.yaml", "--tables", "tables.yaml"]
    return report_parser("").parse_args([*flags, "--scale", "smoke", "--out", "out"])


def test_a_report_writes_what_is_published(args):
    report = write_report(args, title="Title", shown=["loss"])
    assert [run["row"] for run in read_csv("out/runs.csv")] == ["old"] * 3 + ["new"] * 3
    assert [claim["verdict"] for claim in read_json("out/claims.json")] == [
        *("holds", "not tested at this scale")
    ]
    found = read_json("out/metrics.json")
    assert found["means"]["new"]["main_d_test_loss"] == pytest.approx(1.1)
    assert found["verdicts"]["gain"] == "holds"
    assert "Title" in Path("out/table.html").read_text()
    assert "New" in Path("out/table.md").read_text()
    assert not Path("out/items.csv").exists()
    assert report.labels() == {"old": "Old", "new": "New"}
    figure, _ = plt.subplots()
    write_figures(args, report, {"empty": figure}, paper="fixture")
    assert Path("out/figures/empty.svg").is_file()


def test_claims_of_another_configuration_are_left_out(args):
    report = write_report(args, title="", shown=[], about=lambda claim: claim.id != "other")
    assert [claim["id"] for claim in report.verdicts] == ["gain"]


def test_a_claim_about_no_column_is_refused(args):
    wrong = json.loads(json.dumps(CLAIM))
    wrong["measure"]["metric"] = "accuracy"
    Path("claims.yaml").write_text(yaml.safe_dump([wrong]))
    with pytest.raises(InputError, match="claims.yaml: .*gain"):
        write_report(args, title="", shown=[])


def test_metrics_are_the_means_without_x():
    cell = {"table": "t", "dataset": "d", "split": "s", "row": "r", "metric": "m", "x": None}
    cells = [{**cell, "mean": 1.5}, {**cell, "x": 2.0, "mean": 3.0}, {**cell, "metric": "n"}]
    assert metrics([*cells[:2], {**cells[2], "mean": 4.0}], [], ["m"])["means"] == {
        "r": {"t_d_s_m": 1.5}
    }
