"""What params.yaml may say about the task `sweep`: one small model at many learning rates."""

from pydantic import Field, model_validator

from steps.quest.images_config import Shape
from steps.quest.toy_config import Rate
from steps.shared.config import StepConfig
from steps.shared.fit_config import Scheduled


class Sweep(Scheduled):
    """The models of one row and seed, trained as one stack by AdamW at a constant rate."""

    shape: Shape
    learning_rates: list[Rate] = Field(min_length=2, description="ascending")
    weight_decay: float = Field(ge=0, lt=1, description="decoupled; matrices only")
    beta1: float = Field(ge=0, lt=1)
    beta2: float = Field(ge=0, lt=1)
    batch_size: int = Field(ge=1, description="images per update")
    num_probe: int = Field(ge=1, description="images of a split that a history line is measured on")
    max_shift: int = Field(ge=0, description="pixels that a training digit is moved, at most")
    log_every: int = Field(ge=1, description="updates per line of history.csv")
    checkpoint_every: int = Field(ge=1, description="updates; what an interruption can lose")

    @model_validator(mode="after")
    def _ascending(self) -> "Sweep":
        if sorted(set(self.learning_rates)) != self.learning_rates:
            raise ValueError("learning_rates must be ascending, each once")
        return self


class SweepMeasures(StepConfig):
    """How a sweep is judged."""

    final_lines: int = Field(ge=1, description="last lines of the history whose mean is final")
    stable_factor: float = Field(ge=1, description="final training loss over the row's lowest")
    learned_share: float = Field(gt=0, le=1, description="final training loss over guessing's")


def column(rate: float, metric: str) -> str:
    """Return the name of a column of history.csv."""
    return f"lr{rate:g}/{metric}"
