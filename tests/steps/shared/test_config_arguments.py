"""What a step accepts as --config and --seed, and what it says of the rest."""

import json
from pathlib import Path

import pytest

from steps.shared import config as configuration
from steps.shared.config import resolve
from steps.shared.config_files import load
from steps.shared.flags import read_config, step_parser
from steps.shared.runtime import InputError
from steps.wsm.config import Merge, Train

pytestmark = pytest.mark.usefixtures("at_the_root")
ROOT = Path(__file__).resolve().parents[3]
WSM = "papers.wsm"
COMMON = f"{WSM}.train.common"


# what a step reads
# -----------------
def parse(*argv: str, model=Train):
    return read_config(step_parser(None).parse_args(argv), model)


def test_a_step_reads_json_or_the_file():
    expected = resolve(load("smoke"), "wsm", "train", "wsd_cosine")
    assert parse("--config", json.dumps(expected)).model_dump() == expected
    by_key = ["--config", "params.yaml:papers.wsm.train", "--row", "wsd_cosine"]
    assert parse(*by_key, "--scale", "smoke").model_dump() == expected
    merged = parse("--config", "params.yaml:papers.wsm.merge", model=Merge)
    assert merged.model_dump() == load("mini")["papers"]["wsm"]["merge"]


@pytest.mark.parametrize(
    "argv, message",
    [
        (["--config", "{"], "--config: not valid JSON"),
        (["--config", "{}"], "--config: learning_rate = None: is missing"),
        (["--config", "other.yaml:papers.wsm.train"], "expected JSON or params.yaml:papers"),
        (["--config", "params.yaml:papers.wsm"], "expected JSON or params.yaml:papers"),
        (["--config", "params.yaml:papers.wsm.tune"], "expected JSON or params.yaml:papers"),
        (["--config", "params.yaml:papers.no.train"], "no paper 'no'; known: wsm"),
        (
            ["--config", "params.yaml:papers.wsm.train"],
            "--row None: not a row of wsm; known",
        ),
        (["--config", "params.yaml:papers.wsm.train", "--row", "x"], "--row x: not a row of wsm"),
    ],
)
def test_a_bad_form_is_refused_in_one_line(argv, message):
    with pytest.raises(InputError) as error:
        parse(*argv)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["papers: {wsm: {}}\nscale: mini", "- 1", "a: [", None])
def test_a_broken_file_is_named(project, text):
    path = project / configuration.PARAMS
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(InputError, match="^params.yaml: "):
        parse("--config", "params.yaml:papers.wsm.merge", model=Merge)


@pytest.mark.parametrize("seed", ["-1", "1.5", "one", ""])
def test_a_seed_that_is_none_is_refused(seed, capsys):
    with pytest.raises(SystemExit):
        parse("--config", "params.yaml:papers.wsm.train", f"--seed={seed}")
    assert "must be a whole number from 0 on" in capsys.readouterr().err
