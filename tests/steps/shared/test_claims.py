"""Claims: what one seed's runs become, when nothing can be said, the rules of claims.yaml."""

import math

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from judged_claims import BASE, claims, judge, run, runs

from steps.shared.claims import collect, load_claims
from steps.shared.runtime import InputError


@given(st.floats(-5, 5), st.integers(2, 8), st.floats(-1e6, 1e6))
@settings(max_examples=60)
def test_no_variance_needs_six_seeds(tmp_path_factory, gap, n, level):
    """The same difference in every seed, whatever rounding makes of it."""
    old = level + np.arange(n) * 0.1
    row = judge(tmp_path_factory.mktemp("c"), runs(old + gap, old))
    found = (row["verdict"], row["interval"])
    if n < 6:
        assert (*found, row["ci_low"]) == ("inconclusive", "none", None)
    elif abs(gap) > 2e-9 * (abs(level) + 6):
        assert found == ("holds" if gap < 0 else "fails", "median")
    else:
        assert found[0] != "holds" or gap < 0
    assert row["effect"] == 0 or abs(row["effect"]) > 1e-9 * abs(level)


def test_one_seed_and_a_diverged_run_are_inconclusive(tmp_path):
    assert judge(tmp_path, runs([1.0], [5.0]))["verdict"] == "inconclusive"
    row = judge(tmp_path, runs([1.0, 1.1, math.nan], [5.0, 5.2, 5.1]))
    assert (row["verdict"], row["effect"]) == ("inconclusive", None)
    assert "finite" in row["note"]


def test_a_difference_that_holds_but_hardly_matters_says_so(tmp_path):
    row = judge(tmp_path, runs([0.99, 0.98, 0.992, 0.985, 0.99], [1.0] * 5))
    assert row["verdict"] == "holds"
    assert "smaller than the smallest difference" in row["note"]


# measures
# --------


def test_pairing_removes_what_seeds_share(tmp_path):
    """A seed effect a hundred times the difference leaves the paired interval narrow."""
    shared = np.array([10.0, -20.0, 35.0, 4.0, -8.0])
    noise = np.array([0.01, -0.01, 0.0, 0.02, -0.02])
    row = judge(tmp_path, runs(shared - 0.3 + noise, shared))
    assert row["verdict"] == "holds"
    assert row["ci_high"] - row["ci_low"] < 0.1
    assert row["effect"] == pytest.approx(-0.3)


def test_ratio_is_geometric_and_its_delta_a_part(tmp_path):
    measure = {"function": "ratio"}
    data = runs([2.0, 8.0, 4.0, 4.0], [1.0, 2.0, 1.0, 2.0])
    row = judge(tmp_path, data, measure=measure, side="above", kind="size", delta=0.5)
    assert row["effect"] == pytest.approx((2 * 4 * 4 * 2) ** 0.25)
    assert row["ci_low"] * row["ci_high"] == pytest.approx(row["effect"] ** 2)
    near = judge(tmp_path, runs([1.45, 1.46], [1, 1]), measure=measure, side="equal", delta=0.5)
    assert (near["verdict"], near["ci_high"] < 1.5) == ("inconclusive", False)
    near = judge(tmp_path, runs([1.4599, 1.46], [1, 1]), measure=measure, side="equal", delta=0.5)
    assert (near["verdict"], near["ci_high"] < 1.5) == ("holds", True)
    far = judge(tmp_path, runs([1.5201, 1.52], [1, 1]), measure=measure, side="equal", delta=0.5)
    assert far["verdict"] == "fails"
    with pytest.raises(InputError, match="above 0"):
        judge(tmp_path, runs([0.0, 1.0], [1.0, 1.0]), measure=measure)


def test_spread_over_a_sweep_beats_spread_over_another(tmp_path):
    rng = np.random.default_rng(0)
    data = []
    for seed in range(5):
        for x, high, flat in ((1, 0.0, 1.00), (2, 0.4, 1.01), (4, 1.0, 1.02)):
            noise = rng.normal(0, 0.02, 2)
            data.append(run("duration", seed, high + noise[0], str(x)))
            data.append(run("count", seed, flat + noise[1], str(x), table="other"))
    b = {"rows": "count", "table": "other"}
    measure = {"function": "spread_difference", "a": "duration", "b": b}
    row = judge(tmp_path, data, measure=measure, side="above")
    assert row["verdict"] == "holds"
    assert row["effect"] == pytest.approx(0.95, abs=0.1)
    measure |= {"function": "rank_correlation", "b": None}
    assert judge(tmp_path, data, measure=measure, side="above")["effect"] == 1.0


@pytest.mark.parametrize(("effect", "verdict"), [(-0.5, "holds"), (0.5, "fails"), (0.0, "fails")])
def test_the_same_in_every_seed_is_decided_by_the_sign_test(tmp_path, effect, verdict):
    """Six equal signs have probability 2 / 2^6 = 0.031 under the null, five 0.063."""
    old = [1.0, 1.3, 0.9, 1.1, 1.6, 1.2]
    data = runs([value + effect for value in old], old)
    row = judge(tmp_path, data)
    assert (row["verdict"], row["interval"]) == (verdict, "median")
    assert row["ci_low"] == row["ci_high"] == row["effect"] == pytest.approx(effect)
    five = judge(tmp_path, [one for one in data if one["seed"] != "5"])
    assert (five["verdict"], five["ci_low"]) == ("inconclusive", None)
    assert "6 would decide" in five["note"]


def test_lists_of_rows_and_chosen_x_are_averaged(tmp_path):
    values = {("p", "1"): 1.0, ("q", "1"): 3.0, ("p", "2"): 10.0, ("q", "2"): 20.0}
    data = [run(r, s, v + s / 100, x) for (r, x), v in values.items() for s in range(3)]
    measure = {"a": ["p", "q"], "b": {"rows": "p", "x": 2}, "x": 1}
    assert judge(tmp_path, data, measure=measure)["effect"] == pytest.approx(2.0 - 10.0)


def test_order_of_rows_against_the_papers(tmp_path):
    data = [run(r, s, v + 0.3 * s) for s in range(4) for r, v in (("p", 1), ("q", 2), ("r", 3))]
    measure = {"function": "rank_correlation", "b": None, "a": ["p", "q", "r"]}
    measure |= {"against": {"p": 62.7, "q": 63.0, "r": 61.0}}
    assert judge(tmp_path, data, measure=measure)["effect"] == pytest.approx(-0.5)


def test_missing_rows_are_not_tested_and_missing_runs_are_refused(tmp_path):
    row = judge(tmp_path, [run("new", s, 1.0) for s in range(3)])
    assert row["verdict"] == "not tested at this scale"
    assert "main/d/test/old/loss" in row["note"]
    with pytest.raises(InputError, match="a run is missing"):
        judge(tmp_path, runs([1.0, 2.0], [1.0, 2.0])[:-1])
    with pytest.raises(InputError, match="seed 0 appears twice"):
        collect([run("new", 0, 1.0)] * 2)


def test_not_tested_keeps_its_reason(tmp_path):
    reason = {"not_tested": "needs a 16B model"}
    row = judge(tmp_path, [], **reason)
    assert (row["verdict"], row["note"]) == ("not tested at this scale", "needs a 16B model")
    assert judge(tmp_path, runs([1, 2.1, 3], [2, 3, 4.2]), **reason)["n"] == 3


# identities
# ----------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sides": "above"}, "gain.sides"),
        ({"side": "better"}, "gain.side"),
        ({"delta": -1}, "gain.delta"),
        ({"measure": {"b": None}}, "needs b"),
        ({"measure": {"metrics": "loss"}}, "gain.measure.metrics"),
        ({"measure": {"against": {"new": 1}}}, "against belongs to rank_correlation"),
        ({"kind": "identity"}, "identity names its test"),
        ({"kind": "size", "side": "equal"}, "above or below"),
        ({"side": "at_least", "delta": 0}, "delta above 0"),
    ],
)
def test_a_wrong_claim_is_one_clear_line(tmp_path, changes, message):
    with pytest.raises(InputError) as caught:
        claims(tmp_path, **changes)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "claims.yaml" in str(caught.value)


def test_ids_are_unique(tmp_path):
    path = tmp_path / "claims.yaml"
    path.write_text(yaml.safe_dump([BASE, BASE]))
    with pytest.raises(InputError, match="gain appears twice"):
        load_claims(path)
