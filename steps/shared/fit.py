"""The training loop: accelerate, one device or several processes, exact resume.

Update u (1-based) uses batch u and learning rate `config.learning_rate * rate(u)`, so a run can be
cut anywhere: a checkpoint of the model, the optimizer and u is all that decides what follows.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from steps.shared import tensor_files
from steps.shared.fit_config import FitConfig
from steps.shared.runtime import InputError, log, progress

Batch = tuple[Tensor, ...]


class Fit:
    """One training job: builds the optimizer, resumes, trains, and leaves a history.

    `state` is the job's state folder; `save` (called on the main process, with the update and the
    bare model) keeps whatever the job declares at the updates in `save_at`.
    """

    def __init__(
        self,
        model: nn.Module,
        config: FitConfig,
        *,
        batch: Callable[[int], Batch],
        loss: Callable[[nn.Module, Batch], Tensor],
        rate: Callable[[int], float],
        state: Path,
        cpu: bool,
    ) -> None:
        self.config, self.batch, self.loss, self.rate = config, batch, loss, rate
        self.accelerator = Accelerator(cpu=cpu, mixed_precision=config.precision)
        self.checkpoint = state / "checkpoint.safetensors"
        self.update, self.history = 0, []
        self.model, self.optimizer = self.accelerator.prepare(model, adamw(model, config))
        if config.batch_size % self.accelerator.num_processes:
            raise InputError(
                f"batch_size = {config.batch_size}: must be a multiple of the"
                f" {self.accelerator.num_processes} processes"
            )

    @property
    def bare_model(self) -> nn.Module:
        """The model without accelerate's wrappers."""
        return self.accelerator.unwrap_model(self.model)

    def start_from(self, path: Path) -> None:
        """Take model, optimizer and update count from another job's training state."""
        self._load(path)
        self.history = []

    def resume(self) -> None:
        """Continue an interrupted run of this very job, if there is one."""
        if self.checkpoint.exists():
            self._load(self.checkpoint)
            log(f"resumed after update {self.update}")

    def run(
        self,
        last: int,
        *,
        label: str,
        save: Callable[[int, nn.Module], None] = lambda update, model: None,
        save_at: frozenset[int] = frozenset(),
        validate: Callable[[nn.Module], dict[str, float]] | None = None,
        on_log: Callable[[int, dict[str, float]], None] = lambda step, metrics: None,
    ) -> list[dict[str, float]]:
        """Train up to and including update `last`; return the history (a dict per line)."""
        first, sums = self.update, [torch.zeros((), device=self.accelerator.device), 0]
        for update in progress(range(first + 1, last + 1), total=last, label=label, start=first):
            train_loss, norm = self._step(update)
            self.update = update
            sums[0] += train_loss
            sums[1] += 1
            if update % self.config.log_every == 0 or update == last:
                line = self._line(update, float(sums[0]) / sums[1], float(norm))
                if validate is not None:
                    line |= validate(self.bare_model)
                self.history.append(line)
                on_log(update, {key: value for key, value in line.items() if key != "step"})
                sums[0].zero_()
                sums[1] = 0
            if update in save_at and self.accelerator.is_main_process:
                save(update, self.bare_model)
            if update % self.config.checkpoint_every == 0 and update < last:
                self.save_state(self.checkpoint)
        return self.history

    def _line(self, update: int, loss: float, norm: float) -> dict[str, float]:
        rate = self.config.learning_rate * self.rate(update)
        return {"step": update, "train_loss": loss, "learning_rate": rate, "grad_norm": norm}

    def _step(self, update: int) -> tuple[Tensor, Tensor]:
        self.model.train()
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.learning_rate * self.rate(update)
        total = torch.zeros((), device=self.accelerator.device)
        pieces = list(self._pieces(self.batch(update)))
        for index, (piece, share) in enumerate(pieces):
            last = index == len(pieces) - 1
            with _sync_only(self.accelerator, self.model, last):
                loss = self.loss(self.model, piece) * share
                self.accelerator.backward(loss)
            total += loss.detach()
        norm = self.accelerator.clip_grad_norm_(self.model.parameters(), self.config.clip_norm)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return self.accelerator.reduce(total, "mean"), norm

    def _pieces(self, batch: Batch) -> Iterator[tuple[Batch, float]]:
        """Yield this process's share of the batch in micro-batches, each with its weight."""
        accelerator, size = self.accelerator, self.config.micro_batch
        local = len(batch[0]) // accelerator.num_processes
        begin = accelerator.process_index * local
        for offset in range(begin, begin + local, size):
            end = min(offset + size, begin + local)
            piece = tuple(part[offset:end].to(accelerator.device) for part in batch)
            yield piece, (end - offset) / local

    def save_state(self, path: Path) -> None:
        """Write model, optimizer, update count and history to one file, atomically."""
        if not self.accelerator.is_main_process:
            return
        tensors = {f"model.{name}": value for name, value in model_tensors(self.bare_model)}
        for index, slots in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{index}.{name}": value for name, value in slots.items()}
        tensors = {name: value.detach().cpu() for name, value in tensors.items()}
        note = json.dumps({"update": self.update, "history": self.history})
        tensor_files.write(path, tensors, {"fit": note})

    def _load(self, path: Path) -> None:
        what = "a training state written by fit"
        note = tensor_files.read_note(path, what, "fit")
        tensors = tensor_files.read(path, what, framework="torch")
        with torch.no_grad():
            for name, value in model_tensors(self.bare_model):
                value.copy_(tensors[f"model.{name}"])
        slots: dict[int, dict[str, Tensor]] = {}
        for name, value in tensors.items():
            kind, index, *slot = name.split(".")
            if kind == "optimizer":
                slots.setdefault(int(index), {})[slot[0]] = value
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": slots})
        self.update, self.history = note["update"], note["history"]


def model_tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """Yield every parameter and saved buffer once; tied ones under their first name."""
    saved = set(model.state_dict())
    yield from model.named_parameters()
    yield from ((name, value) for name, value in model.named_buffers() if name in saved)


def adamw(model: nn.Module, config: FitConfig) -> torch.optim.AdamW:
    """Return AdamW with decoupled decay on matrices and none on vectors and scalars."""
    matrices = [value for value in model.parameters() if value.ndim >= 2]
    vectors = [value for value in model.parameters() if value.ndim < 2]
    groups = [
        {"params": matrices, "weight_decay": config.weight_decay},
        {"params": vectors, "weight_decay": 0.0},
    ]
    betas = (config.beta1, config.beta2)
    return torch.optim.AdamW(groups, lr=config.learning_rate, betas=betas, fused=True)


def _sync_only(
    accelerator: Accelerator, model: nn.Module, last: bool
) -> AbstractContextManager[None]:
    """Exchange gradients between processes on the last micro-batch only."""
    return nullcontext() if last else accelerator.no_sync(model)
