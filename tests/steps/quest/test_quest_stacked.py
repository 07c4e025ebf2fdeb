"""A stack trains each of its models as if it were alone, and continues where it was cut."""

from pathlib import Path

import pytest
import torch
from job_helpers import Killed
from torch import nn

from steps.quest.stacked import Stack

RATES, DECAYS = [0.003, 0.03, 0.03], [0.0, 0.1, 0.5]


class Net(nn.Module):
    """A matrix, a vector and a scalar, of which AdamW decays the matrix."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.matrix = nn.Parameter(torch.randn(4, 3, generator=generator, dtype=torch.float64))
        self.vector = nn.Parameter(torch.randn(4, generator=generator, dtype=torch.float64))
        self.scalar = nn.Parameter(torch.tensor(1.5, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x @ self.matrix.mT + self.vector) * self.scalar


def batch(update: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(update)
    return torch.randn(6, 3, generator=generator, dtype=torch.float64)


def loss(stack: Stack, update: int) -> torch.Tensor:
    return (stack.forward(batch(update)) - 0.3).square().mean(dim=(1, 2))


def new() -> Stack:
    return Stack(Net(), learning_rates=RATES, weight_decays=DECAYS, betas=(0.9, 0.99))


def run(stack: Stack, last: int, checkpoint: Path, **spied) -> Stack:
    settings = {
        "loss": loss,
        "measure": lambda stack: {"size": stack.weights_MP.norm(dim=1)},
        "log_every": 2,
        "checkpoint_every": 3,
    } | spied
    stack.run(last, **settings, checkpoint=checkpoint, label="test")
    return stack


def test_a_stack_is_each_model_trained_alone_by_torchs_adamw():
    stack = new()
    for update in range(1, 31):
        stack.step(lambda s, update=update: loss(s, update))
    for index, (rate, decay) in enumerate(zip(RATES, DECAYS, strict=True)):
        net = Net()
        groups = [
            {"params": [net.matrix], "weight_decay": decay},
            {"params": [net.vector, net.scalar], "weight_decay": 0.0},
        ]
        optimizer = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.99))
        for update in range(1, 31):
            optimizer.zero_grad()
            (net(batch(update)) - 0.3).square().mean().backward()
            optimizer.step()
        for name, value in net.named_parameters():
            own = stack.state_tensors()[name][index]
            torch.testing.assert_close(own, value.detach(), rtol=1e-10, atol=1e-12)


def test_models_of_a_stack_do_not_touch_each_other():
    whole, alone = (
        new(),
        Stack(Net(), learning_rates=[0.03], weight_decays=[0.1], betas=(0.9, 0.99)),
    )
    with torch.no_grad():
        whole.weights_MP[0] = torch.nan  # a model that has diverged
    for update in range(1, 6):
        for stack in (whole, alone):
            stack.step(lambda s, update=update: loss(s, update))
    torch.testing.assert_close(whole.weights_MP[1], alone.weights_MP[0])
    assert whole.weights_MP[0].isnan().all()


def test_the_history_has_a_line_before_training_and_every_few_updates(tmp_path):
    stack = run(new(), 5, tmp_path / "state")
    assert [line.update for line in stack.history] == [0, 2, 4, 5]
    sizes = [line.values["size"] for line in stack.history]
    assert sizes[0] == [pytest.approx(sizes[0][0])] * 3
    assert len(set(sizes[-1])) == 3


@pytest.mark.parametrize("moment", [1, 3, 4, 8])
def test_a_killed_run_continues_to_the_same_weights_and_history(tmp_path, moment):
    def killing(stack: Stack, update: int) -> torch.Tensor:
        if update == moment:
            raise Killed
        return loss(stack, update)

    whole = run(new(), 8, tmp_path / "whole")
    with pytest.raises(Killed):
        run(new(), 8, tmp_path / "state", loss=killing)
    done = []

    def counted(stack: Stack, update: int) -> torch.Tensor:
        done.append(update)
        return loss(stack, update)

    again = run(new(), 8, tmp_path / "state", loss=counted)
    assert done[0] == (moment - 1) // 3 * 3 + 1
    assert torch.equal(again.weights_MP, whole.weights_MP)
    assert again.history == whole.history
    assert (tmp_path / "state").read_bytes() == (tmp_path / "whole").read_bytes()


def test_weights_come_back_as_they_were_written():
    stack = new()
    stack.step(lambda s: loss(s, 1))
    other = new()
    other.load_weights(stack.state_tensors())
    assert torch.equal(other.weights_MP, stack.weights_MP)
    assert stack.state_tensors()["scalar"].shape == (3,)
