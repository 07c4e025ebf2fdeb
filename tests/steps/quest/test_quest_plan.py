"""What QUEST's configuration may say, and what its tasks read and leave."""

import copy
import re
from pathlib import Path
from typing import Any

import pytest

from steps.quest import prepare
from steps.quest.config import Evaluate, Prepare, Train
from steps.quest.plan import TASKS, Files
from steps.shared.config import part, resolve, validate
from steps.shared.config_files import load
from steps.shared.runtime import InputError, read_json

ROOT = Path(__file__).resolve().parents[3]


def changed(path: str, value: Any, *, scale: str = "mini") -> dict[str, Any]:
    """Return the configuration with one value of QUEST's block set."""
    config = copy.deepcopy(load(scale))
    node = config["papers"]["quest"]
    *above, last = path.split(".")
    for name in above:
        node = node[name]
    node[last] = value
    return config


def test_tasks_choose_rows_and_seeds():
    files = Files(changed("train.rows.qnorm.tasks", ["images"]))
    assert "qnorm" not in files.rows("toy") and "qnorm" in files.rows("images")
    files = Files(changed("train.common.num_seeds.sweep", 3))
    assert [len(files.seeds(task)) for task in TASKS] == [6, 5, 3, 5]


def test_a_task_without_rows_has_no_files():
    paper = Files(load("paper"))
    assert paper.tasks() == ["toy", "images", "language"]
    assert not any("sweep" in name for name in paper.of_all(paper.runs) + paper.figures())


def test_rows_share_a_job_but_not_on_gpus():
    mini, paper = Files(load("mini")), Files(load("paper"))
    assert mini.jobs("images") == {"images": mini.rows("images")}
    assert paper.jobs("toy") == {"toy": paper.rows("toy")}
    jobs = paper.jobs("images")
    assert [files.threads("images") for files in (mini, paper)] == [1, 16]
    assert len(jobs) == 8 and jobs["images_qknorm_hs"] == ["qknorm_hs"]


def test_data_that_stays_on_the_hub_has_only_a_manifest():
    mini, paper = Files(load("mini")), Files(load("paper"))
    assert mini.data() == ["toy", "images", "language"]
    assert [len(mini.prepared(data)) for data in mini.data()] == [2, 2, 5]
    assert (mini.assets("images"), mini.assets("toy")) == (["mnist_5k"], [])
    assert (mini.assets("language"), mini.corpora("images")) == ([], [])
    assert mini.corpora("language") == ["assets/corpora/gcide.jsonl"]
    assert paper.prepared("images") == ["results/{scale}/quest/prepare/images.json"]
    assert paper.assets("images") == paper.corpora("language") == []
    assert len(paper.prepared("language")) == 5  # tokens are made of a hub's text, too


def test_a_task_reads_its_own_part_and_nothing_else():
    config = load("mini")
    for phase, whole in (("train", Train), ("evaluate", Evaluate)):
        row = "quest" if phase == "train" else None
        block = resolve(config, "quest", phase, row)
        for task in TASKS:
            own = part(whole, task)
            assert list(own.model_fields) == [task]
            value = own.model_validate({task: block[task]})
            assert getattr(value, task) == getattr(whole.model_validate(block), task)
    assert list(part(Prepare, "toy").model_fields) == ["toy"]


def test_every_task_has_the_modules_that_it_is_found_by():
    for name, task in TASKS.items():
        for module in (f"{name}_config", f"{name}_train", f"{name}_evaluate", f"{name}_figures"):
            assert (ROOT / f"steps/quest/{module}.py").is_file()
        assert (ROOT / f"steps/quest/{task.data}_prepare.py").is_file()


def test_no_task_imports_what_names_all_tasks():
    """Else adding a task would rerun the others."""
    from steps.shared.codedigest import imported

    for task in TASKS:
        for phase in ("train", "evaluate"):
            found = imported(f"steps.quest.{task}_{phase}") | imported(f"steps.quest.{phase}")
            assert not {"steps.quest.config", "steps.quest.plan"} & found


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("train.common.toy.width", 15, "width = 15 must be a multiple of heads = 2"),
        ("train.common.toy.log_every", 0, "greater than or equal to 1"),
        ("train.common.num_seeds.toy", 7, "be at most the 6 seeds"),
        ("train.common.num_seeds", {"toy": 1}, "must be given"),
        ("train.rows.qnorm.toy", {"beta1": 0.5}, "must be the same in every row"),
        ("train.rows.qnorm.tasks", ["toys"], "toy"),
        ("rows", ["standard", "softmax"], "has no entry 'softmax'"),
        ("train.common.toy.rows", {"minimal": ["quest"]}, "must name standard in a form"),
        ("train.common.toy.rows", {"minimal": ["qest"]}, "must be one of standard, "),
        ("train.common.toy.steps", {"minimal": 4}, "must name the updates of full"),
        ("prepare.toy.biased_share", 1.5, "less than or equal to 1"),
        ("train.common.images.shape.heads", 5, "width = 64 must be a multiple of heads = 5"),
        ("train.common.images.shape.patch", 5, "must divide the 28 pixels"),
        ("train.common.sweep.shape.patch", 8, "must divide the 28 pixels"),
        ("train.common.images.checkpoint_every", 100, "must be a multiple of log_every = 70"),
        ("train.common.sweep.learning_rates", [0.1, 0.01], "must be ascending"),
        ("prepare.language.tokenizer", "bpe:9", "from 257 to 65536"),
        ("train.common.language.shape.heads", 3, "width = 64 must be a multiple of heads = 3"),
        ("evaluate.images.radii", [2.0], "less than or equal to 1"),
        ("evaluate.images.corruptions", ["fog"], "must be one of gaussian_noise, "),
        ("evaluate.images.severities", [1, 5], "must be 1, 2 or 3 for digits"),
        ("evaluate.images.num_attacked", 751, "must be at most 750"),
        ("evaluate.images.pattern_size", 29, "must be at most 28"),
        ("evaluate.sweep.final_lines", 9, "at most the 8 lines"),
    ],
)
def test_what_does_not_fit_is_named_in_quests_block(path, value, told):
    with pytest.raises(InputError) as error:
        validate(changed(path, value))
    lines = str(error.value).splitlines()
    assert any(told in line and line.startswith("params.yaml: papers.quest.") for line in lines)


def test_a_step_run_by_hand_reads_its_task_from_params(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    args = ["--task", "toy", "--config", "params.yaml:papers.quest.prepare", "--scale", "smoke"]
    prepare.main([*args, "--out", str(tmp_path)])
    assert read_json(tmp_path / "toy.json")["problem"]["num_test"] == 40


@pytest.mark.parametrize("task", ["sweep", "to/y", "wsm"])
def test_a_task_without_data_of_its_own_is_named(tmp_path, task):
    with pytest.raises(InputError, match=re.escape(f"--task {task}: no such task")):
        prepare.main(["--task", task, "--config", "{}", "--out", str(tmp_path)])
