"""Runs that are killed, doubled or fail: the next one continues, is refused, or names the fault."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from scratch import NOTHING, Project, assert_settled, kill_group, since, wait_for

SLOW = {"RETABLE_PAUSE": "0.05"}


def checkpointed(project: Project, updates: int) -> bool:
    """Say whether some training job has a checkpoint of at least `updates` updates."""
    for path in project.root.glob("state/*/checkpoint.json"):
        try:
            if path.read_text().count("step") >= updates:
                return True
        except FileNotFoundError:
            continue
    return False


def ran(step: str) -> Callable[[Project], bool]:
    return lambda project: any(line.startswith(step) for line in project.lines())


MOMENTS = {
    "as prepare starts": ran("alpha.prepare"),
    "early in training": lambda project: checkpointed(project, 2),
    "late in training": lambda project: checkpointed(project, 15),
    "as merge starts": ran("alpha.merge"),
    "as evaluate starts": ran("alpha.evaluate"),
}


def interrupted(project: Project, moment: Callable[[Project], bool], *command: str) -> None:
    """Start the workflow, slowed down, and kill -9 all of it at a moment."""
    process = project.start(*command, env=SLOW)
    wait_for(lambda: moment(project), process)
    kill_group(process)


def resumed(project: Project) -> list[int]:
    return [int(line.split()[2]) for line in project.lines() if line.startswith("resumed")]


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_run_that_was_killed_continues(recorded, fresh, moment):
    project = fresh("killed")
    interrupted(project, MOMENTS[moment], "snakemake", "-c2", "alpha_evaluate")
    remains = project.root / "results/mini/alpha/train/.model.json.killed.tmp"
    remains.parent.mkdir(parents=True, exist_ok=True)
    remains.touch()  # as a write that was cut off leaves it
    project.run("snakemake", "-c2", "alpha_evaluate")
    expected = {k: v for k, v in recorded.results().items() if k.startswith("results/mini/alpha")}
    assert project.results() == expected
    assert not list(project.root.glob("state/*"))
    if "training" in moment:
        assert max(resumed(project), default=0) >= 2


def test_dvc_repro_that_was_killed_continues(project):
    project.set("alpha.train.common.rate", 5)
    project.count.unlink(missing_ok=True)
    interrupted(project, MOMENTS["late in training"], "dvc", "repro")
    project.run("dvc", "repro")
    assert max(resumed(project), default=0) >= 15
    assert_settled(project)


def test_code_edited_after_a_kill_is_what_counts(fresh):
    project, clean = fresh("killed"), fresh("clean")
    interrupted(project, MOMENTS["late in training"], "snakemake", "-c2", "alpha_evaluate")
    for tree in (project, clean):
        tree.edit("steps/alpha/model.py", "12345", "54321")
        tree.run("snakemake", "-c2", "alpha_evaluate")
    assert project.results() == clean.results()


@pytest.fixture
def hold(tmp_path: Path) -> Path:
    """Return a file that makes every training job wait while it is there."""
    path = tmp_path / "hold"
    path.touch()
    return path


def test_a_second_run_is_refused_and_the_first_unharmed(project, hold):
    project.set("alpha.train.common.rate", 5)
    first = project.start("snakemake", env={"RETABLE_HOLD": str(hold)})
    wait_for(lambda: checkpointed(project, 1), first)
    for command in (["snakemake"], ["dvc", "repro"]):
        second = project.run(*command, check=False)
        assert second.returncode != 0
        assert len(re.findall("another run is working in this folder", second.stdout)) == 1
        assert "Traceback" not in second.stdout
    assert NOTHING not in project.run("snakemake", "-n").stdout  # a dry run is not refused
    hold.unlink()
    assert first.wait(timeout=60) == 0, first.communicate()[0]
    assert project.executed() == since("alpha", "train")


def test_a_job_that_outlived_its_run_keeps_the_next_run_away(project, hold):
    project.set("alpha.train.common.rate", 5)
    run = project.start("snakemake", "-c2", env={"RETABLE_HOLD": str(hold)})
    wait_for(lambda: len(project.lines()) == 2 and checkpointed(project, 1), run)
    run.kill()  # only Snakemake itself: its jobs go on
    run.wait()
    project.executed()
    project.set("alpha.train.common.rate", 6)
    refused = project.run("snakemake", check=False)
    assert refused.returncode != 0
    assert "another run is working in this folder" in refused.stdout
    hold.unlink()
    run.communicate()  # the jobs hold the pipe until they end
    project.run("snakemake")
    assert project.executed() == since("alpha", "train")


def test_a_step_that_fails_names_its_log_and_leaves_nothing_partial(project):
    line = "    mean = round(sum(values) / len(values), config.digits)\n"
    project.edit("steps/alpha/evaluate.py", line, f'    raise RuntimeError("no mean")\n{line}')
    done = project.run("snakemake", check=False)
    assert done.returncode != 0
    assert "logs/mini/alpha/report_tables.log" in done.stdout
    assert "no mean" in (project.root / "logs/mini/alpha/report_tables.log").read_text()
    assert not [
        name for name in project.results() if name.startswith("results/mini/alpha/evaluate")
    ]
    project.edit("steps/alpha/evaluate.py", '    raise RuntimeError("no mean")\n', "")
    project.executed()
    project.run("snakemake")
    assert project.executed() == since("alpha", "evaluate")
