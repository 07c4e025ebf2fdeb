"""What a trained row declares about its optimization; apart from `fit`, which needs torch."""

from typing import Literal

from pydantic import Field, model_validator

from steps.shared.config import StepConfig


class AdamWConfig(StepConfig):
    """What every trained row declares about its optimization, whatever trains it."""

    learning_rate: float = Field(gt=0, le=1, description="peak learning rate")
    beta1: float = Field(ge=0, lt=1)
    beta2: float = Field(ge=0, lt=1)
    weight_decay: float = Field(ge=0, lt=1, description="decoupled; matrices only")
    clip_norm: float = Field(gt=0, description="largest global gradient norm")
    micro_batch: int = Field(ge=1, description="sequences per forward pass of one process")
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
