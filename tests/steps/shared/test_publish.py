"""Publish and verify: the round trip, every kind of cell, changed verdicts, stale tables."""

import json
import platform

import pytest

from steps.shared import publish
from steps.shared.runtime import InputError, read_csv, write_csv, write_json, write_text
from steps.shared.tables import FIELDS

DIGEST = {"code": "c0", "params": "p0", "lock": "l0"}


def cell(row, mean, half=0.1, **changes):
    blank = dict.fromkeys(FIELDS, "")
    blank |= {"table": "main", "dataset": "d", "split": "test", "row": row, "metric": "loss"}
    ends = (None, None) if half is None else (mean - half, mean + half)
    return blank | {"mean": mean, "n": 5, "ci_low": ends[0], "ci_high": ends[1]} | changes


def claim(name, verdict):
    row = dict.fromkeys(("statement", "kind", "table", "unit", "note"), "t")
    row |= dict.fromkeys(("paper_effect", "effect", "ci_low", "ci_high"))
    return row | {"id": name, "n": 0, "verdict": verdict}


def results(paper="wsm", cells=None, verdicts=("holds", "fails")):
    folder = publish.evaluated(paper, scale="mini")
    write_csv(folder / "table.csv", FIELDS, cells or [cell("a", 1.0), cell("b", 2.0, None)])
    write_text(folder / "table.md", "# Paper\n\n## table\n")
    write_text(folder / "runs.csv", "table,value\n")
    write_text(folder / "figures/loss.svg", "<svg/>")
    write_json(folder / "claims.json", [claim(f"c{i}", v) for i, v in enumerate(verdicts)])
    return folder


@pytest.fixture(autouse=True)
def tree(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(publish, "digests", lambda paper: dict(DIGEST))
    return tmp_path


def verify(capsys):
    """Return (exit code, what was printed)."""
    capsys.readouterr()
    try:
        publish.main(["verify", "--paper", "wsm"])
    except SystemExit as stop:
        return stop.code, capsys.readouterr().out
    return 0, capsys.readouterr().out


def test_round_trip_is_identical(tree, capsys):
    results()
    write_text("logs/mini/wsm/train_seed0.log", "a line\ncost: 200.50 CPU s, peak 690 MiB\n")
    write_text("logs/mini/wsm/train_seed0.tsv", "s\th:m:s\n210.0\t0:03:30\n")
    write_text("logs/mini/wsm/train_seed1.log", "cost: 121.00 CPU s, peak 500 MiB\n")
    write_text("logs/mini/wsm/train_seed1.tsv", "s\th:m:s\n120.0\t0:02:00\n")
    publish.main(["publish", "--paper", "wsm"])
    folder = tree / "published/wsm"
    files = sorted(str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file())
    assert files == [
        *("claims.json", "cost.csv", "digest.json", "figures/loss.svg"),
        *("runs.csv", "table.csv", "table.md"),
    ]
    (cost,) = read_csv(folder / "cost.csv")
    assert cost == {
        **{"rule": "wsm_train", "jobs": "2", "cpu_seconds": "160.75"},
        **{"seconds": "165.0", "peak_mib": "690.0"},
    }
    assert json.loads((folder / "digest.json").read_text()) == DIGEST
    title, links, rest = (folder / "table.md").read_text().split("\n\n", 2)
    assert (title, rest) == ("# Paper", "## table\n")
    assert "(../../docs/papers/wsm.md)" in links
    assert [row["paper"] for row in read_csv("published/claims.csv")] == ["wsm", "wsm"]
    machine = json.loads((tree / "published/machine.json").read_text())["wsm"]
    assert set(machine) == {"cpu", "cores", "memory_gib", "os", "python", "torch", "cpu_seconds"}
    assert machine["cpu_seconds"] == 321.5
    assert platform.node() not in json.dumps(machine).split() and str(tree) not in str(machine)
    code, text = verify(capsys)
    assert code == 0
    assert "wsm: reproduced. 2 cells: 2 identical, 0 within the interval, 0 differs." in text
    assert text.count(machine["cpu"]) == 2 and "stale" not in text


def test_each_kind_of_cell_is_told_and_only_verdicts_fail(capsys):
    results(cells=[cell("a", 1.0), cell("b", 2.0), cell("c", 3.0), cell("d", 4.0, None)])
    publish.main(["publish", "--paper", "wsm"])
    results(cells=[cell("a", 1.0), cell("b", 2.09), cell("c", 3.2), cell("d", 4.5, None)])
    code, text = verify(capsys)
    assert code == 0
    assert "4 cells: 1 identical, 1 within the interval, 2 differs" in text
    assert "differs  main/d/test/c/loss: published 3 [2.9, 3.1], here 3.2" in text
    assert "differs  main/d/test/d/loss: published 4, here 4.5" in text


def test_cells_of_one_side_only_differ_and_the_list_is_short(capsys):
    results(cells=[cell("a", 1.0)])
    publish.main(["publish", "--paper", "wsm"])
    results(cells=[cell(f"r{i:02}", 1.0) for i in range(15)])
    code, text = verify(capsys)
    assert code == 0
    assert "16 cells: 0 identical, 0 within the interval, 16 differs" in text
    assert text.count("  differs  ") == 11 and "and 6 more" in text
    assert "main/d/test/a/loss: published 1 [0.9, 1.1], here no value" in text


@pytest.mark.parametrize("now", [("fails", "fails"), ("holds",), ("holds", "fails", "holds")])
def test_a_changed_missing_or_new_verdict_fails(capsys, now):
    results()
    publish.main(["publish", "--paper", "wsm"])
    results(verdicts=now)
    code, text = verify(capsys)
    assert code == 1
    assert "VERDICTS CHANGED" in text and text.count("  verdict  ") == 1


def test_no_published_table_fails_and_no_results_is_an_error(capsys):
    results()
    assert verify(capsys)[0] == 1
    with pytest.raises(InputError, match="run the workflow first"):
        publish.compare("other", scale="mini")


@pytest.mark.parametrize("part", ["code", "params", "lock"])
def test_a_table_of_another_tree_is_stale(capsys, monkeypatch, part):
    results()
    publish.main(["publish", "--paper", "wsm"])
    monkeypatch.setattr(publish, "digests", lambda paper: DIGEST | {part: "new"})
    code, text = verify(capsys)
    assert code == 0
    assert f"stale    published from another {part}\n" in text


def test_incomplete_results_are_refused_and_nothing_is_copied(tree):
    results("done")
    folder = results("wsm")
    (folder / "runs.csv").unlink()
    with pytest.raises(InputError, match="wsm/evaluate lacks runs.csv"):
        publish.publish(["done", "wsm"], scale="mini")
    assert not (tree / "published").exists()
    empty = cell("a", 1.0) | {"mean": "", "ci_low": "", "ci_high": "", "n": 0}
    results("wsm", cells=[empty])
    with pytest.raises(InputError, match="no value for main/d/test/a/loss"):
        publish.publish(["wsm"], scale="mini")
    results("wsm", cells=[empty | {"paper": 63.95}], verdicts=("maybe",))
    with pytest.raises(InputError, match="claim c0 has no verdict"):
        publish.publish(["wsm"], scale="mini")


def test_publishing_again_replaces_a_paper_and_keeps_the_others(tree):
    results("one")
    results("two")
    publish.publish(["one", "two"], scale="mini")
    folder = results("two", verdicts=("inconclusive",))
    (folder / "figures/loss.svg").rename(folder / "figures/new.svg")
    publish.publish(["two"], scale="mini")
    assert [f.name for f in (tree / "published/two/figures").iterdir()] == ["new.svg"]
    rows = read_csv("published/claims.csv")
    assert [(r["paper"], r["verdict"]) for r in rows] == [
        *(("one", "holds"), ("one", "fails"), ("two", "inconclusive"))
    ]
    assert sorted(json.loads((tree / "published/machine.json").read_text())) == ["one", "two"]
    assert not [f for f in (tree / "published").iterdir() if f.name.startswith(".")]
