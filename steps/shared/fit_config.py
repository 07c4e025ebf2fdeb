"""What a trained row declares about its optimization; apart from `fit`, which needs torch."""

from typing import Literal

from pydantic import Field, model_validator

from steps.shared.config import StepConfig


class Heads(StepConfig):
    """The size of a transformer."""

    width: int = Field(ge=4)
    layers: int = Field(ge=1)
    heads: int = Field(ge=1)

    @model_validator(mode="after")
    def _whole_heads(self) -> "Heads":
        if self.width % self.heads:
            raise ValueError(f"width = {self.width} must be a multiple of heads = {self.heads}")
        return self


class Scheduled(StepConfig):
    """How long a row trains, where the rate rises over a share of it."""

    steps: int = Field(ge=1, description="updates")
    warmup_share: float = Field(ge=0, lt=1, description="of the updates, linear warm-up")


class Optimization(StepConfig):
    """What everything that is trained declares about its optimization, whatever trains it."""

    learning_rate: float = Field(gt=0, le=1, description="peak learning rate")
    beta1: float = Field(ge=0, lt=1)
    beta2: float = Field(ge=0, lt=1)
    weight_decay: float = Field(ge=0, lt=1, description="decoupled; matrices only")
    clip_norm: float = Field(gt=0, description="largest global gradient norm")
    micro_batch: int = Field(ge=1, description="sequences per forward pass of one process")


class AdamWConfig(Optimization):
    """What every row declares that is trained."""

    log_every: int = Field(ge=1, description="updates per line of history.csv")
    checkpoint_every: int = Field(ge=1, description="updates; what an interruption can lose")


class FitConfig(AdamWConfig):
    """What every row declares that `fit` trains."""

    batch_size: int = Field(ge=1, description="sequences per update, over all processes")
    precision: Literal["no", "bf16"]

    @model_validator(mode="after")
    def _checkpoint_on_a_history_line(self) -> "FitConfig":
        # so that the running mean of the training loss need not be part of a checkpoint
        if self.checkpoint_every % self.log_every:
            raise ValueError(
                f"checkpoint_every = {self.checkpoint_every} must be a multiple of"
                f" log_every = {self.log_every}"
            )
        return self
