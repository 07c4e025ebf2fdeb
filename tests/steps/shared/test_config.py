"""One configuration: overlays, what a job is given, and how mistakes are named."""

import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from steps.shared.config import merge, resolve, validate
from steps.shared.config_files import load
from steps.shared.runtime import InputError

pytestmark = pytest.mark.usefixtures("at_the_root")
ROOT = Path(__file__).resolve().parents[3]
SCALES = sorted(path.stem for path in (ROOT / "workflow/scales").glob("*.yaml"))
WSM = "papers.wsm"
COMMON = f"{WSM}.train.common"
ROWS = f"{WSM}.train.rows"
DROP = object()


def change(config: dict, key: str, value) -> dict:
    config = node = deepcopy(config)
    *parents, last = key.split(".")
    for part in parents:
        node = node[part]
    if value is DROP:
        del node[last]
    else:
        node[last] = value
    return config


def problems(config: dict) -> list[str]:
    with pytest.raises(InputError) as error:
        validate(config)
    return str(error.value).splitlines()


# overlays
# --------
def trees():
    leaves = st.integers() | st.none() | st.lists(st.integers(), max_size=2)
    keys = st.sampled_from("abc")
    return st.recursive(leaves, lambda inner: st.dictionaries(keys, inner, max_size=3))


mappings = st.dictionaries(st.sampled_from("abc"), trees(), max_size=3)


@given(base=mappings, top=mappings)
def test_overlays_merge_as_in_snakemake(base, top):
    from snakemake.utils import update_config

    before = deepcopy(base), deepcopy(top)
    merged = merge(base, top)
    assert (base, top) == before
    expected = deepcopy(base)
    update_config(expected, deepcopy(top))
    assert merged == expected


def test_a_scale_is_the_file_plus_its_overlay(project):
    base = yaml.safe_load((project / "params.yaml").read_text())
    assert load("mini") == base
    overlay = "scale: tiny\npapers: {wsm: {seeds: [9], train: {common: {width: 8}}}}"
    (project / "workflow/scales/tiny.yaml").write_text(overlay)
    expected = change(change(base, "scale", "tiny"), f"{WSM}.seeds", [9])
    assert load("tiny") == change(expected, f"{COMMON}.width", 8)


def test_an_unknown_scale_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match="'maxi'.*known scales: mini, .*smoke"):
        load("maxi")


def test_a_row_is_given_the_common_part_and_its_own():
    config = {"papers": {"p": {"train": {"common": {"a": 1, "b": {"c": 2, "d": 3}}}}}}
    config["papers"]["p"]["train"]["rows"] = {
        "x": {"a": 5, "b": {"c": 6}},
        "y": None,
        "z": {"e": 7},
    }
    assert resolve(config, "p", "train", "x") == {"a": 5, "b": {"c": 6, "d": 3}}
    assert resolve(config, "p", "train", "y") == {"a": 1, "b": {"c": 2, "d": 3}}
    assert "e" not in resolve(config, "p", "train", "x")
    assert resolve(change(config, "papers.p.train.common", None), "p", "train", "z") == {"e": 7}


# mistakes
# --------
@pytest.mark.parametrize("scale", ["mini", *SCALES])
def test_the_committed_scales_are_valid(scale):
    assert validate(load(scale)) is None


@pytest.mark.parametrize(
    "key, value, named, rule",
    [
        ("scale", 3, "scale = 3", "name of a scale"),
        ("papers", ["wsm"], "papers = ['wsm']", "mapping of at least one paper"),
        ("papers", {}, "papers = {}", "mapping of at least one paper"),
        (WSM, 5, f"{WSM} = 5", "mapping with the keys seeds, rows"),
        ("papers.nowhere", {}, "papers.nowhere.seeds", "is missing"),
        (f"{WSM}.merge", DROP, f"{WSM}.merge", "is missing"),
        (f"{WSM}.tune", {}, f"{WSM}.tune = {{}}", "allowed: seeds, rows, prepare"),
        (f"{WSM}.seeds", [], f"{WSM}.seeds = []", "non-empty list of int"),
        (f"{WSM}.seeds", [True], f"{WSM}.seeds = [True]", "list of int"),
        (f"{WSM}.seeds", [1, 1], f"{WSM}.seeds = [1, 1]", "twice"),
        (f"{WSM}.seeds", [-1], f"{WSM}.seeds = [-1]", "0 or above"),
        (f"{WSM}.rows", [], f"{WSM}.rows = []", "non-empty list of str"),
        (f"{WSM}.rows", None, f"{WSM}.rows = None", "non-empty list of str"),
        (f"{WSM}.rows", [{}], f"{WSM}.rows = [{{}}]", "non-empty list of str"),
        (f"{WSM}.rows", ["constant", "zz"], ROWS, "no entry 'zz'"),
        (f"{WSM}.train", {"rows": {}}, f"{WSM}.train", "exactly the keys common, rows"),
        (COMMON, [1], f"{COMMON} = [1]", "must be a mapping"),
        (ROWS, "constant", f"{ROWS} = 'constant'", "must be a mapping"),
        (f"{ROWS}.constant", 7, f"{ROWS}.constant = 7", "must be a mapping"),
        (f"{ROWS}.constant.depth", 7, f"{ROWS}.constant.depth = 7", "unknown key; allowed: learn"),
        (f"{ROWS}.constant.keep", "all", f"{ROWS}.constant.keep = 'all'", "'last' or 'window'"),
        (f"{COMMON}.width", 3, f"{COMMON}.width = 3", "greater than or equal to 4"),
        (f"{COMMON}.width", 64.5, f"{COMMON}.width = 64.5", "integer"),
        (f"{COMMON}.layers", True, f"{COMMON}.layers = True", "integer"),
        (f"{COMMON}.layers", DROP, f"{COMMON}.layers", "is missing"),
        (f"{COMMON}.5", 5, f"{COMMON}.5 = 5", "unknown key"),
        (f"{COMMON}.clip_norm", float("nan"), f"{COMMON}.clip_norm = nan", "be a finite number"),
        # YAML reads 4e-3 as a string
        (f"{COMMON}.learning_rate", "4e-3", f"{COMMON}.learning_rate = '4e-3'", "valid number"),
        (f"{COMMON}.checkpoint_every", 7, COMMON, "checkpoint_every = 7 must be a multiple of"),
        (f"{WSM}.prepare", None, f"{WSM}.prepare = None", "must be a mapping"),
        (f"{WSM}.prepare.general", 3, f"{WSM}.prepare.general = 3", "dictionary"),
        (f"{WSM}.prepare.anneal.split", "x", f"{WSM}.prepare.anneal.split = 'x'", "kind, name"),
        (f"{WSM}.merge.counts", [1, "x"], f"{WSM}.merge.counts.1 = 'x'", "integer"),
        (f"{WSM}.merge.rows.wsm_mean.best", 1, f"{WSM}.merge.rows.wsm_mean.best", "source, curve"),
        (f"{WSM}.evaluate.continuation.steps", 0, f"{WSM}.evaluate.continuation.steps = 0", "1"),
    ],
)
def test_a_mistake_is_one_line_with_file_key_value_and_rule(key, value, named, rule):
    lines = problems(change(load("mini"), key, value))
    assert len([line for line in lines if named in line]) == 1
    for line in lines:
        assert line.startswith("params.yaml: ")
        assert len(line) < 400
    assert any(named in line and rule in line for line in lines), lines


def test_each_mistake_has_its_own_line():
    config = change(load("mini"), f"{COMMON}.width", 1)
    config = change(config, f"{ROWS}.wsd_linear.keep", 0)
    config = change(config, f"{WSM}.merge.grid", "j/n")
    keys = [line.split(" = ")[0].removeprefix("params.yaml: ") for line in problems(config)]
    assert keys == [f"{WSM}.merge.grid", f"{COMMON}.width", f"{ROWS}.wsd_linear.keep"]


def test_a_package_that_is_no_paper_is_refused():
    config = load("mini")
    for name in ("shared", "nowhere"):
        (line,) = problems(change(config, f"papers.{name}", config["papers"]["wsm"]))
        assert line.startswith(f"params.yaml: papers.{name} = ")
        assert "no such paper" in line


def test_the_file_named_is_the_one_that_set_the_value(project):
    overlay = "scale: tiny\npapers: {wsm: {train: {common: {width: 1}}, merge: {counts: [1, x]}}}"
    (project / "workflow/scales/tiny.yaml").write_text(overlay)
    config = change(load("tiny"), f"{COMMON}.heads", 0)
    named = {line.split(": ")[1].split(" = ")[0]: line.split(": ")[0] for line in problems(config)}
    assert named == {
        f"{COMMON}.width": "workflow/scales/tiny.yaml",
        f"{WSM}.merge.counts.1": "workflow/scales/tiny.yaml",
        f"{COMMON}.heads": "params.yaml",
    }


def test_snakemake_prints_the_mistake_and_no_traceback(project):
    text = (project / "params.yaml").read_text().replace("width: 64", "width: sixty")
    (project / "params.yaml").write_text(text)
    command = ["snakemake", "-s", ROOT / "Snakefile", "--directory", project, "-n"]
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=project, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert f"params.yaml: {COMMON}.width = 'sixty': must be a valid integer" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
