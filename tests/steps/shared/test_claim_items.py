"""Claims that rest on items or on a test: identities, the interval over items, what is refused."""

import math

import numpy as np
import pytest
from judged_claims import FIELDS, judge, run, runs
from scipy import stats

from steps.shared.claims import is_test_node
from steps.shared.runtime import InputError, write_csv


def identity(test):
    measure = {"function": "max_error", "b": None, "a": "new"}
    return {"kind": "identity", "side": None, "delta": 1e-9, "test": test, "measure": measure}


def test_an_identity_holds_within_delta_and_with_its_test(tmp_path):
    (tmp_path / "test_it.py").write_text("class TestA:\n    def test_b(self): ...\n")
    good, bad = [run("new", 0, -1e-12), run("new", 1, 2e-12)], [run("new", 0, 1e-6)]
    node = "test_it.py::TestA::test_b[x-1]"
    row = judge(tmp_path, good, root=tmp_path, **identity(node))
    assert (row["verdict"], row["effect"], row["n"]) == ("holds", 2e-12, 2)
    assert judge(tmp_path, bad, root=tmp_path, **identity(node))["verdict"] == "fails"
    row = judge(tmp_path, good, root=tmp_path, **identity("test_it.py::test_b"))
    assert row["verdict"] == "inconclusive"
    nan = [run("new", 0, math.nan)]
    assert judge(tmp_path, nan, root=tmp_path, **identity(node))["verdict"] == "fails"
    assert not is_test_node("absent.py::test_b", tmp_path)


# items
# -----


def item_file(tmp_path, new_SI, old_SI):
    rows = [
        run(row, seed, value) | {"item": str(item)}
        for row, values in (("new", new_SI), ("old", old_SI))
        for seed, items in enumerate(values)
        for item, value in enumerate(items)
    ]
    write_csv(tmp_path / "items.csv", (*FIELDS, "item"), rows)
    return runs(np.mean(new_SI, axis=1), np.mean(old_SI, axis=1))


def test_without_variance_over_seeds_the_items_decide(tmp_path):
    rng = np.random.default_rng(1)
    old = np.tile(rng.normal(0, 1, 60), (5, 1))
    step = np.tile(rng.normal(-0.5, 0.3, 60), (5, 1))
    data = item_file(tmp_path, old + step, old)
    row = judge(tmp_path, data, folder=tmp_path, items="items.csv")
    assert (row["verdict"], row["interval"]) == ("holds", "items")
    half = stats.t.ppf(0.975, 59) * step[0].std(ddof=1) / math.sqrt(60)
    assert (row["ci_high"] - row["ci_low"]) / 2 == pytest.approx(half, rel=0.1)
    data = item_file(tmp_path, old + 0.0 * step - 0.5, old)
    row = judge(tmp_path, data, folder=tmp_path, items="items.csv")
    assert (row["verdict"], row["ci_low"]) == ("inconclusive", None)


def test_the_wider_interval_counts(tmp_path):
    """Items that scatter widely around a mean that seeds repeat closely."""
    rng = np.random.default_rng(2)
    old = rng.normal(0, 0.01, (5, 30))
    new = rng.normal(-0.05, 0.01, (5, 30)) + rng.normal(0, 0.5, 30)
    data = item_file(tmp_path, new, old)
    alone, both = judge(tmp_path, data), judge(tmp_path, data, folder=tmp_path, items="items.csv")
    assert both["interval"] == "seeds x items"
    assert both["ci_high"] - both["ci_low"] > 5 * (alone["ci_high"] - alone["ci_low"])
    assert both["effect"] == alone["effect"]
    again = judge(tmp_path, data, folder=tmp_path, items="items.csv")
    assert again == both


def test_items_must_explain_the_runs(tmp_path):
    data = item_file(tmp_path, np.ones((2, 3)), np.zeros((2, 3)))
    with pytest.raises(InputError, match="means of items.csv are not the runs"):
        judge(tmp_path, runs([1.0, 1.2], [0.0, 0.0]), folder=tmp_path, items="items.csv")
    with pytest.raises(InputError, match="lacks an item"):
        judge(
            tmp_path, [*data, *runs([1, 1, 1], [0, 0, 0])[4:]], folder=tmp_path, items="items.csv"
        )
    with pytest.raises(InputError, match="no item file"):
        judge(tmp_path, data, items="items.csv")


# claims.yaml
# -----------
