"""Snakemake and DVC agree: which steps run after which change, on a fixture that counts them.

Each scenario names the exact set of executed steps, as 'paper.phase row seed'.
"""

import os
import shutil

import pytest
from scratch import NOTHING, ROWS, Project, assert_settled, commit, merges, since, trains

from steps.shared.config import read_yaml

KEYS = {
    "prepare": ("prepare.items", 7),
    "train": ("train.common.rate", 5),
    "merge": ("merge.weight", 2),
    "evaluate": ("evaluate.digits", 3),
}


def test_a_fresh_run_executes_each_step_once_and_then_nothing(recorded, shared, project):
    executed = (shared / "executed.txt").read_text().splitlines()
    assert executed == sorted(since("alpha", "prepare") + since("beta", "prepare"))
    assert NOTHING in project.run("snakemake").stdout
    assert "didn't change" in project.run("dvc", "repro").stdout
    (project.root / "dvc.lock").unlink()  # now DVC has no record, and must ask for every stage
    asked = project.run("dvc", "repro").stdout
    assert asked.count(NOTHING) == asked.count("Running stage") == 9
    assert project.executed() == []
    assert_settled(project)


def test_equal_times_do_not_hide_what_must_run_and_cores_do_not_change_a_byte(recorded, fresh):
    copy = fresh("copy", ("alpha", "beta"))
    for path in copy.root.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    copy.run("snakemake", "-c1")
    assert copy.executed() == sorted(since("alpha", "prepare") + since("beta", "prepare"))
    assert copy.results() == recorded.results()
    # the same size and the same time, other code
    copy.edit("steps/alpha/model.py", "12345", "12346")
    for path in copy.root.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000), follow_symlinks=False)
    copy.run("snakemake")
    assert copy.executed() == since("alpha", "train")


@pytest.mark.parametrize("phase", ["train", "evaluate"])
@pytest.mark.parametrize("first", ["snakemake", "dvc"])
def test_a_changed_parameter_reruns_its_phase_and_what_follows(project, first, phase):
    key, value = KEYS[phase]
    project.set(f"alpha.{key}", value)
    commands = [["snakemake"], ["dvc", "repro"]]
    project.run(*commands.pop(first == "dvc"))
    assert project.executed() == since("alpha", phase)
    project.run(*commands[0])
    assert project.executed() == []
    assert_settled(project)


def test_parameters_of_the_cheap_phases_too(project):
    for phase in ("merge", "prepare"):
        key, value = KEYS[phase]
        project.set(f"alpha.{key}", value)
        project.run("snakemake")
        assert project.executed() == since("alpha", phase)


def test_a_new_row_and_a_changed_row_train_alone(project):
    project.set("alpha.train.rows.fast", {"decay": 9})
    project.set("alpha.rows", [*ROWS, "fast"])
    project.run("snakemake")
    assert project.executed() == sorted(trains("alpha", ["fast"]) + since("alpha", "merge"))
    project.set("alpha.train.rows.decayed", {"decay": 9})
    project.run("snakemake")
    assert project.executed() == sorted(trains("alpha", ["decayed"]) + since("alpha", "merge"))


def test_a_new_seed_trains_alone(project):
    project.set("beta.seeds", [0, 1, 2])
    project.run("dvc", "repro")
    new = trains("beta", seeds=[2]) + merges("beta", [2]) + since("beta", "evaluate")
    assert project.executed() == sorted(new)
    assert_settled(project)


def test_a_claim_that_changes_is_only_evaluated(project):
    project.edit("steps/alpha/claims.yaml", "nothing", "zero")
    project.run("snakemake")
    assert project.executed() == since("alpha", "evaluate")


def test_deleted_results_come_back_from_the_cache(project):
    before = project.results()
    shutil.rmtree(project.root / "results/mini/alpha")
    (project.root / "results/mini/beta/train/constant/seed0/model.json").unlink()
    project.run("dvc", "checkout")
    assert project.results() == before
    (project.root / "steps/alpha/__pycache__").mkdir(exist_ok=True)
    (project.root / "steps/alpha/__pycache__/new.pyc").touch()  # must not look like a change
    assert_settled(project)


def test_a_clone_that_pulls_has_nothing_to_do(project, tmp_path, shared):
    project.run("dvc", "remote", "add", "--local", "-d", "store", str(tmp_path / "store"))
    project.run("dvc", "push", "-q")
    project.run("git", "clone", "-q", str(project.root), str(tmp_path / "clone"))
    clone = Project(tmp_path / "clone", shared)
    clone.run("dvc", "remote", "add", "--local", "-d", "store", str(tmp_path / "store"))
    clone.run("dvc", "pull", "-q")
    assert not (clone.root / "assets").exists()
    assert clone.results() == project.results()
    assert_settled(clone)
    clone.set("beta.train.common.rate", 7)
    clone.run("snakemake")
    assert clone.executed() == since("beta", "train")


def test_an_old_commit_and_the_way_back_have_nothing_to_do(project):
    new_rate = 7
    project.set("alpha.train.common.rate", new_rate)
    project.run("snakemake")
    project.run("dvc", "commit", "-f", "-q")
    commit(project, "another rate")
    project.executed()
    after = project.results()
    project.run("git", "checkout", "-q", "HEAD~1")
    project.run("dvc", "checkout", "-q")
    assert project.results() != after
    assert_settled(project)
    project.run("git", "checkout", "-q", "main")
    project.run("dvc", "checkout", "-q")
    assert project.results() == after
    assert_settled(project)


def test_a_comment_or_a_docstring_reruns_nothing(project):
    project.edit("steps/alpha/train.py", '"""Write model.json and', '"""Leave model.json and')
    project.edit("steps/alpha/model.py", "MODULUS = 2**61 - 1", "MODULUS = 2**61 - 1  # a prime")
    project.edit("steps/shared/runtime.py", '"""Write one line to the log', '"""Log one line')
    assert NOTHING in project.run("snakemake", "-n").stdout
    assert NOTHING in project.run("dvc", "repro", "train@alpha", "--single-item").stdout


def test_a_line_of_code_reruns_only_the_steps_that_import_it(project):
    project.edit("steps/alpha/model.py", "item * rate", "rate * item")
    project.run("snakemake")
    assert project.executed() == since("alpha", "train")


def test_metrics_and_plots_show_what_was_recorded(project):
    shown = project.run("dvc", "metrics", "show").stdout
    assert "results/mini/alpha/evaluate/metrics.json" in shown
    project.run("dvc", "plots", "show", "-o", "plots")
    page = (project.root / "plots/index.html").read_text()
    assert "validation_loss" in page


def test_an_experiment_runs_only_what_it_changes(project):
    project.run("dvc", "exp", "run", "-S", "papers.alpha.train.common.rate=11")
    assert project.executed() == since("alpha", "train")
    assert "rate: 11" in (project.root / "params.yaml").read_text()
    assert_settled(project)


@pytest.mark.parametrize("profile", ["smoke", "slurm"])
def test_every_profile_repeats_what_both_engines_rely_on(recorded, profile):
    folder = recorded.root / "workflow/profiles"
    default = read_yaml(folder / "default/profile.yaml")
    own = read_yaml(folder / profile / "profile.yaml")
    for key in ("max-checksum-file-size", "rerun-incomplete", "nolock"):
        assert own[key] == default[key]
    assert default["max-checksum-file-size"] == "1TB"
    assert default["rerun-incomplete"] is default["nolock"] is True
