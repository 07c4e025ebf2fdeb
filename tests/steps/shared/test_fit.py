"""The training loop: exact resume, micro-batches, schedules, refusals."""

import pytest
import torch
from job_helpers import Killed
from torch import nn
from torch.nn import functional as F

from steps.shared.fit import Fit
from steps.shared.fit_config import FitConfig
from steps.shared.runtime import InputError

BASE = {
    "learning_rate": 0.01,
    "beta1": 0.9,
    "beta2": 0.95,
    "weight_decay": 0.1,
    "clip_norm": 1.0,
    "batch_size": 6,
    "micro_batch": 6,
    "precision": "no",
    "log_every": 5,
    "checkpoint_every": 10,
}


def make_fit(state, rate=lambda update: 1.0, **changes) -> Fit:
    state.mkdir(exist_ok=True)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 1))

    def batch(update):
        x = torch.randn(6, 3, generator=torch.Generator().manual_seed(update))
        return x, x.sum(1, keepdim=True)

    return Fit(
        model,
        FitConfig(**{**BASE, **changes}),
        batch=batch,
        loss=lambda model, batch: F.mse_loss(model(batch[0]), batch[1]),
        rate=rate,
        state=state,
        cpu=True,
    )


def weights(fit: Fit) -> list[torch.Tensor]:
    return [value.clone() for value in fit.bare_model.state_dict().values()]


def kill_at(update):
    def on_log(step, metrics):
        if step == update:
            raise Killed

    return on_log


@pytest.mark.parametrize("moment", [5, 10, 15, 25])
def test_an_interrupted_run_ends_bit_for_bit_like_an_undisturbed_one(tmp_path, moment):
    whole = make_fit(tmp_path / "whole")
    history = whole.run(30, label="whole")
    broken = make_fit(tmp_path / "broken")
    with pytest.raises(Killed):
        broken.run(30, label="broken", on_log=kill_at(moment))
    again = make_fit(tmp_path / "broken")
    again.resume()
    assert again.update == max(0, (moment - 1) // 10 * 10)
    assert again.run(30, label="again") == history
    assert all(torch.equal(a, b) for a, b in zip(weights(whole), weights(again), strict=True))


def test_a_branch_takes_over_optimizer_and_update_count(tmp_path):
    whole = make_fit(tmp_path / "whole")
    whole.run(20, label="whole")
    first = make_fit(tmp_path / "first")
    first.run(10, label="first")
    first.save_state(tmp_path / "trunk.safetensors")
    branch = make_fit(tmp_path / "branch")
    branch.start_from(tmp_path / "trunk.safetensors")
    branch.run(20, label="branch")
    assert [line["step"] for line in branch.history] == [15, 20]
    assert all(torch.equal(a, b) for a, b in zip(weights(whole), weights(branch), strict=True))


def test_the_training_state_has_the_same_bytes_each_time(tmp_path):
    for name in ("a", "b"):
        fit = make_fit(tmp_path / name)
        fit.run(10, label=name)
        fit.save_state(tmp_path / f"{name}.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()


def test_micro_batches_add_up_to_the_batch(tmp_path):
    # batch norm would see smaller batches: leave it out
    def linear(state, size):
        fit = make_fit(state, micro_batch=size)
        fit.model[1] = nn.Identity()
        return fit

    whole, pieces = linear(tmp_path / "whole", 6), linear(tmp_path / "pieces", 4)
    whole.run(5, label="whole")
    pieces.run(5, label="pieces")
    for a, b in zip(weights(whole), weights(pieces), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def test_update_u_uses_the_rate_of_update_u(tmp_path):
    fit = make_fit(tmp_path / "a", rate=lambda update: update / 10, log_every=1, checkpoint_every=1)
    history = fit.run(10, label="a")
    expected = [0.01 * update / 10 for update in range(1, 11)]
    assert [line["learning_rate"] for line in history] == pytest.approx(expected)


def test_vectors_are_not_decayed(tmp_path):
    fit = make_fit(tmp_path / "a")
    decays = {
        id(value): group["weight_decay"]
        for group in fit.optimizer.param_groups
        for value in group["params"]
    }
    for value in fit.bare_model.parameters():
        assert decays[id(value)] == (0.1 if value.ndim >= 2 else 0.0)


def test_saved_updates_reach_save(tmp_path):
    seen = []
    fit = make_fit(tmp_path / "a")
    fit.run(9, label="a", save=lambda update, model: seen.append(update), save_at=frozenset({3, 9}))
    assert seen == [3, 9]


def test_a_foreign_file_is_refused_in_one_line(tmp_path):
    (tmp_path / "trunk").write_bytes(b"not a training state")
    with pytest.raises(InputError, match="trunk: not a training state"):
        make_fit(tmp_path / "a").start_from(tmp_path / "trunk")


def test_a_checkpoint_falls_on_a_history_line():
    with pytest.raises(ValueError, match="multiple of log_every"):
        FitConfig(**{**BASE, "checkpoint_every": 7})
