"""A grid of small models trained as one: stacked weights, a learning rate and a decay for each.

The weights of all models are one matrix (M, P), so that AdamW is a few operations whatever M.
Nothing passes between models: training each alone gives the same. Update u reads batch u, so a
checkpoint of weights, moments, u and history is all that decides what follows.

Shapes: M models, P weights of one.
"""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from steps.shared import tensor_files
from steps.shared.runtime import log, progress

ADAM_EPS = 1e-8  # torch's own


class Line(NamedTuple):
    """A line of the history: an update, and by name a value of every model."""

    update: int
    values: dict[str, list[float]]


class Stack:
    """Copies of `model`, one for each (learning rate, weight decay), and their optimizer.

    Update u takes `multiplier(u)` times each model's rate.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        learning_rates: list[float],
        weight_decays: list[float],
        betas: tuple[float, float],
        multiplier: Callable[[int], float] = lambda update: 1.0,
    ) -> None:
        count = len(learning_rates)
        self.model = model
        stacked, _ = stack_module_state([model] * count)
        self.shapes = {name: value.shape[1:] for name, value in stacked.items()}
        self.weights_MP = _flat(stacked.values()).detach()
        self.weights_MP.requires_grad_()
        dtype = self.weights_MP.dtype
        matrix = [torch.full((s.numel(),), float(len(s) >= 2)) for s in self.shapes.values()]
        self.rate_M1 = torch.tensor(learning_rates, dtype=dtype)[:, None]
        decay_M1 = torch.tensor(weight_decays, dtype=dtype)[:, None]
        self.decay_MP = self.rate_M1 * decay_M1 * torch.cat(matrix).to(dtype)
        self.first_MP = torch.zeros_like(self.weights_MP, requires_grad=False)
        self.second_MP = torch.zeros_like(self.weights_MP, requires_grad=False)
        self.betas, self.multiplier, self.update = betas, multiplier, 0
        self.history: list[Line] = []

    def parameters(self) -> dict[str, Tensor]:
        """Return the weights by name, each (M, ...), views that carry gradients."""
        pieces = self.weights_MP.split([s.numel() for s in self.shapes.values()], dim=1)
        named = zip(self.shapes.items(), pieces, strict=True)
        return {name: piece.unflatten(1, s) if s else piece[:, 0] for (name, s), piece in named}

    def forward(self, *inputs: Tensor, **options: Any) -> Any:
        """Return the output of every model on the same inputs, each with a leading M."""
        call = vmap(lambda weights: functional_call(self.model, weights, inputs, options))
        return call(self.parameters())

    def step(self, loss: Callable[["Stack"], Tensor]) -> Tensor:
        """Make one AdamW update of every model on its own `loss` (M); return the loss."""
        loss_M = loss(self)
        (gradient,) = torch.autograd.grad(loss_M.sum(), self.weights_MP)
        self.update += 1
        beta1, beta2 = self.betas
        multiplier = self.multiplier(self.update)
        with torch.no_grad():
            self.first_MP.lerp_(gradient, 1 - beta1)
            self.second_MP.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
            root = (self.second_MP / (1 - beta2**self.update)).sqrt_().add_(ADAM_EPS)
            step_MP = self.first_MP / root * (multiplier * self.rate_M1 / (1 - beta1**self.update))
            self.weights_MP.mul_(1 - multiplier * self.decay_MP).sub_(step_MP)
        return loss_M.detach()

    def run(
        self,
        last: int,
        *,
        loss: Callable[["Stack", int], Tensor],
        measure: Callable[["Stack"], dict[str, Tensor]],
        log_every: int,
        checkpoint_every: int,
        checkpoint: Path,
        label: str,
    ) -> None:
        """Train up to and including update `last`, from `checkpoint` if it is there.

        `loss` is given the update. The history gets a line of what `measure` returns (values M)
        before the first update and every `log_every` ones.
        """
        if checkpoint.exists():
            self._load(checkpoint)
            log(f"{label}: resumed after update {self.update}")
        first = self.update
        if not self.history:
            self._measure(measure)
        for update in progress(range(first + 1, last + 1), total=last, label=label, start=first):
            self.step(lambda stack, update=update: loss(stack, update))
            if update % log_every == 0 or update == last:
                self._measure(measure)
            if update % checkpoint_every == 0 or update == last:
                self._save(checkpoint)

    def _measure(self, measure: Callable[["Stack"], dict[str, Tensor]]) -> None:
        with torch.no_grad():
            values = {name: value.tolist() for name, value in measure(self).items()}
        self.history.append(Line(self.update, values))

    def state_tensors(self) -> dict[str, Tensor]:
        """Return the weights by name, each (M, ...), to be written."""
        return {name: value.detach() for name, value in self.parameters().items()}

    def load_weights(self, tensors: dict[str, Tensor]) -> None:
        """Take weights as `state_tensors` gives them."""
        with torch.no_grad():
            self.weights_MP.copy_(_flat(tensors[name] for name in self.shapes))

    def _moments(self) -> dict[str, Tensor]:
        names = ("weights_MP", "first_MP", "second_MP")
        return {name: getattr(self, name).detach() for name in names}

    def _save(self, path: Path) -> None:
        note = json.dumps({"update": self.update, "history": self.history})
        tensor_files.write(path, self._moments(), {"stack": note})

    def _load(self, path: Path) -> None:
        what, own = "a checkpoint of a stack", self._moments()
        note = tensor_files.read_note(path, what, "stack")
        tensors = tensor_files.read(path, what, names=own, framework="torch")
        for name, value in own.items():
            value.copy_(tensors[name])
        self.update = note["update"]
        self.history = [Line(*line) for line in note["history"]]


def _flat(tensors: Iterable[Tensor]) -> Tensor:
    """Return tensors (M, ...) beside each other, (M, P)."""
    return torch.cat([value.reshape(len(value), -1) for value in tensors], dim=1)
