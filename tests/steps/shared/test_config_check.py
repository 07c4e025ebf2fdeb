"""Rules between the phases of a paper: when its `check` is asked, and how its answers are shown."""

import sys
from copy import deepcopy
from types import ModuleType

import pytest
import yaml

from steps.shared.config import PARAMS, SCALES, Block, StepConfig, validate
from steps.shared.config_files import load
from steps.shared.runtime import InputError

PARAMETERS = """
scale: mini
papers:
  tiny:
    seeds: [3, 4]
    rows: [plain]
    prepare: {items: 10}
    train:
      common: {steps: 100, rate: 0.5}
      rows: {plain: null, long: {steps: 300}}
    merge: {window: 20}
    evaluate: {}
"""
OVERLAY = "scale: small\npapers: {tiny: {merge: {window: 7}, train: {rows: {long: {steps: 30}}}}}"


class Prepare(StepConfig):
    items: int


class Train(StepConfig):
    steps: int
    rate: float


class Merge(StepConfig):
    window: int


class Evaluate(StepConfig):
    pass


@pytest.fixture
def paper(tmp_path, monkeypatch) -> ModuleType:
    """Return the configuration module of a made-up paper, with its files in the current folder."""
    module = ModuleType("steps.tiny.config")
    module.Prepare, module.Train, module.Merge, module.Evaluate = Prepare, Train, Merge, Evaluate
    monkeypatch.setitem(sys.modules, module.__name__, module)
    (tmp_path / PARAMS).write_text(PARAMETERS)
    (tmp_path / SCALES).mkdir(parents=True)
    (tmp_path / SCALES / "small.yaml").write_text(OVERLAY)
    monkeypatch.chdir(tmp_path)
    return module


def problems(config: dict) -> list[str]:
    with pytest.raises(InputError) as error:
        validate(config)
    return str(error.value).splitlines()


def test_check_is_given_the_models_of_the_whole_block(paper):
    seen = []
    paper.check = lambda block: seen.append(block) or []
    validate(load("mini"))
    trains = {"plain": Train(steps=100, rate=0.5), "long": Train(steps=300, rate=0.5)}
    (block,) = seen
    assert block == Block(
        seeds=[3, 4],
        rows=["plain"],
        prepare=Prepare(items=10),
        train=trains,
        merge=Merge(window=20),
        evaluate=Evaluate(),
    )


def test_an_answer_is_a_line_with_the_file_that_set_the_key(paper):
    def check(block):
        if block.merge.window * 10 != block.train["plain"].steps:
            yield "merge.window", block.merge.window, "must be a tenth of the steps"
        if min(block.seeds) > 0:
            yield "seeds", block.seeds, "must hold seed 0"

    paper.check = check
    assert problems(load("small")) == [
        "workflow/scales/small.yaml: papers.tiny.merge.window = 7: must be a tenth of the steps",
        "params.yaml: papers.tiny.seeds = [3, 4]: must hold seed 0",
    ]


def test_a_field_of_a_row_is_shown_where_it_is_set_and_once(paper):
    def check(block):
        for row, train in block.train.items():
            yield f"train.rows.{row}.steps", train.steps, "must be 64"
            yield f"train.rows.{row}.rate", train.rate, "must be below 0.5"

    paper.check = check
    assert problems(load("small")) == [
        "params.yaml: papers.tiny.train.common.steps = 100: must be 64",
        "params.yaml: papers.tiny.train.common.rate = 0.5: must be below 0.5",
        "workflow/scales/small.yaml: papers.tiny.train.rows.long.steps = 30: must be 64",
    ]


@pytest.mark.parametrize(
    "key, value",
    [("merge", {"window": "7"}), ("train", {"common": None, "rows": {"plain": {}}}), ("rows", [])],
)
def test_a_block_with_other_mistakes_is_not_checked(paper, key, value):
    paper.check = lambda block: [("seeds", 0, "was checked")]
    config = deepcopy(yaml.safe_load(PARAMETERS))
    config["papers"]["tiny"][key] = value
    assert not any("was checked" in line for line in problems(config))
    assert any("was checked" in line for line in problems(load("mini")))


def test_a_paper_without_check_is_valid(paper):
    assert validate(load("mini")) is None


@pytest.mark.parametrize("text", [".inf", "-.inf", ".nan"])
def test_no_number_of_a_paper_may_be_infinite(paper, text):
    config = yaml.safe_load(PARAMETERS.replace("0.5", text))
    (line,) = problems(config)
    shown = text.replace(".", "")
    assert line == f"params.yaml: papers.tiny.train.common.rate = {shown}: must be a finite number"


@pytest.mark.parametrize(
    "data, said",
    [
        (PARAMETERS.replace("seeds:", "rows: []\n    seeds:").encode(), "key 'rows' twice"),
        (b"scale: mini\nscale: small\n", "key 'scale' twice"),
        ("scale: größer".encode("latin-1"), "must be UTF-8"),
        (b"scale: 2020-99-99", "not valid YAML"),
    ],
)
def test_a_file_that_says_two_things_or_none_is_one_line(paper, data, said):
    PARAMS.write_bytes(data)
    with pytest.raises(InputError) as error:
        load("mini")
    (line,) = str(error.value).splitlines()
    assert line.startswith("params.yaml: ") and said in line


def test_a_key_beside_scale_and_papers_is_refused(paper):
    config = yaml.safe_load(PARAMETERS) | {"paper": {}}
    assert problems(config) == ["params.yaml: paper = '...': unknown key; allowed: scale, papers"]
