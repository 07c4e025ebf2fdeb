"""Training: paired rows, schedules, branches of a trunk, interruption, the same bytes each time."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from job_helpers import Killed, contents
from safetensors import safe_open
from wsm_runs import BRANCH, TRUNK

from steps.shared import fit, token_files
from steps.shared.runtime import InputError, read_csv
from steps.wsm import model as models
from steps.wsm import train
from steps.wsm.config import Train, Trunk
from steps.wsm.curves import CURVES


@pytest.fixture
def work(tmp_path, monkeypatch):
    """A folder with token files and a manifest, in which jobs run."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name in ("general", "anneal", "validation"):
        np.save(tmp_path / f"{name}.npy", rng.integers(0, 16, 300).astype(np.uint8))
    Path("manifest.json").write_text('{"vocabulary": 16}')
    return tmp_path


def run(out: str, *, trunk: str | None = None, seed: int = 0, **changes) -> Path:
    """Run one job and return its folder."""
    config = {**(BRANCH if trunk else TRUNK), **changes}
    flags = ["--row", out, "--trunk", f"{trunk}/state.safetensors"] if trunk else []
    tokens = "anneal.npy" if trunk else "general.npy"
    train.main(
        ["--config", json.dumps(config), "--tokens", tokens, "--validation", "validation.npy"]
        + ["--data", "manifest.json", "--out", out, "--seed", str(seed), *flags]
    )
    return Path(out)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return models.load(folder).state_dict()


# pairing
# -------
def test_rows_of_a_seed_start_alike_and_see_the_same_batches(work, monkeypatch):
    run("trunk")
    jobs = []
    real_run, real_batches = fit.Fit.run, token_files.random_batches

    def spied_run(self, *args, **kwargs):
        state = [value.clone() for _, value in fit.model_tensors(self.bare_model)]
        moments = self.optimizer.state_dict()["state"]
        jobs.append((state, [slot["exp_avg"].clone() for slot in moments.values()], []))
        return real_run(self, *args, **kwargs)

    def spied_batches(*args, **kwargs):
        read = real_batches(*args, **kwargs)

        def spied(update):
            batch = read(update)
            jobs[-1][2].append((update, batch[0].tolist()))
            return batch

        return spied

    monkeypatch.setattr(fit.Fit, "run", spied_run)
    monkeypatch.setattr(token_files, "random_batches", spied_batches)
    run("constant", trunk="trunk")
    run("linear", trunk="trunk", decay="linear", keep="last")
    run("other", trunk="trunk", seed=1)
    (start, moments, batches), (start2, moments2, batches2), (_, _, batches3) = jobs
    assert all(map(torch.equal, start + moments, start2 + moments2))
    assert [update for update, _ in batches] == [7, 8, 9, 10]
    assert batches == batches2
    assert batches != batches3
    # what the rows then become does differ
    ends = [weights(Path(row) / "step0000010") for row in ("constant", "linear")]
    assert any(not torch.equal(ends[0][name], ends[1][name]) for name in ends[0])


def test_seeds_start_differently(work):
    config = Trunk(**TRUNK)
    one, same, two = (models.build(config, 16, seed).tokens.weight for seed in (0, 0, 1))
    assert torch.equal(one, same)
    assert not torch.equal(one, two)


# schedules
# ---------
def test_the_trunk_warms_up_and_then_stays():
    rates = [train.rate(Trunk(**TRUNK))(update) for update in range(1, 7)]
    assert rates == pytest.approx([1 / 3, 2 / 3, 1, 1, 1, 1])


@pytest.mark.parametrize("decay", ["linear", "cosine", "1-sqrt", "1-t^2"])
def test_a_decay_runs_over_the_annealing_updates_on_the_grid_of_the_merge(decay):
    constant, decayed = train.rate(Train(**BRANCH)), train.rate(Train(**{**BRANCH, "decay": decay}))
    assert [decayed(update) for update in range(1, 7)] == [
        constant(update) for update in range(1, 7)
    ]
    assert [constant(update) for update in range(7, 11)] == [1, 1, 1, 1]
    found = [decayed(update) for update in range(7, 11)]
    assert found == pytest.approx(CURVES[decay](np.array([0.2, 0.4, 0.6, 0.8])))
    assert 1 > found[0] > found[1] > found[2] > found[3] > 0


def test_the_history_shows_the_rate_that_was_used(work):
    run("trunk")
    lines = read_csv(run("linear", trunk="trunk", decay="linear") / "history.csv")
    assert [int(line["step"]) for line in lines] == [8, 10]
    rates = [float(line["learning_rate"]) for line in lines]
    assert rates == pytest.approx([0.01 * 0.6, 0.01 * 0.2])
    # a model of 16 tokens that starts near uniform: log 16 = 2.77 nats
    assert all(2 < float(line["validation_loss"]) < 3.5 for line in lines)


# branches
# --------
def test_trunk_and_constant_branch_are_one_uninterrupted_run(work, monkeypatch):
    def by_update(tokens, *, seed, batch, context, **_):
        def read(update):
            rng = np.random.default_rng(update)
            ids = torch.from_numpy(rng.integers(0, 16, (batch, context + 1)))
            return ids[:, :-1], ids[:, 1:]

        return read

    monkeypatch.setattr(token_files, "random_batches", by_update)
    run("trunk")
    run("branch", trunk="trunk")
    run("long", stable_steps=10)
    run("decayed", trunk="trunk", decay="linear")
    whole = safe_open("long/state.safetensors", framework="pt")
    branch, decayed = weights(Path("branch/step0000010")), weights(Path("decayed/step0000010"))
    assert len(branch) > 8
    assert all(torch.equal(whole.get_tensor(f"model.{name}"), branch[name]) for name in branch)
    assert any(not torch.equal(branch[name], decayed[name]) for name in branch)


def test_a_branch_keeps_the_checkpoints_it_declares(work):
    run("trunk")
    for keep, kept in (("window", ["step0000008", "step0000010"]), ("last", ["step0000010"])):
        folder = run(keep, trunk="trunk", keep=keep)
        assert sorted(path.name for path in folder.iterdir()) == ["history.csv", *kept]
        for name in kept:
            files = sorted(path.name for path in (folder / name).iterdir())
            assert files == ["config.json", "model.safetensors"]


def test_a_trunk_of_another_length_is_refused_by_name(work):
    run("trunk")
    with pytest.raises(InputError, match="trunk/state.safetensors: ends at update 6, not at 8"):
        run("branch", trunk="trunk", stable_steps=8)


# interruption and repetition
# ---------------------------
def test_the_same_job_leaves_the_same_bytes(work):
    assert contents(run("one")) == contents(run("two"))
    one, two = run("a", trunk="one"), run("b", trunk="two")
    assert contents(one) == contents(two)
    assert len(contents(one)) == 5
    assert list(Path("state").iterdir()) == []


@pytest.mark.parametrize("moment", [8, 10])
def test_a_killed_job_continues_to_the_same_bytes(work, monkeypatch, capsys, moment):
    run("trunk")
    whole = contents(run("whole", trunk="trunk"))
    save = models.save

    def killing(folder, model):
        if folder.name == f"step{moment:07d}":
            folder.mkdir()
            (folder / "model.safetensors").write_bytes(b"half")
            raise Killed
        save(folder, model)

    monkeypatch.setattr(models, "save", killing)
    with pytest.raises(Killed):
        run("broken", trunk="trunk")
    assert len(list(Path("state").iterdir())) == 1
    assert not Path("broken").exists()
    monkeypatch.setattr(models, "save", save)
    capsys.readouterr()
    assert contents(run("broken", trunk="trunk")) == whole
    # the first checkpoint is of update 8, written after what is kept of it
    assert ("resumed after update 8" in capsys.readouterr().err) == (moment == 10)
    assert list(Path("state").iterdir()) == []


def test_a_changed_job_does_not_continue_the_old_one(work, monkeypatch):
    def kill(folder, model):
        raise Killed

    save = models.save
    run("trunk")
    clean = contents(run("clean", trunk="trunk", clip_norm=0.5))
    monkeypatch.setattr(models, "save", kill)
    with pytest.raises(Killed):
        run("broken", trunk="trunk")
    monkeypatch.setattr(models, "save", save)
    assert contents(run("broken", trunk="trunk", clip_norm=0.5)) == clean
