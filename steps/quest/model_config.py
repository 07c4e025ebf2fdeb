"""What params.yaml says of a transformer of any row, and of how its rows are trained."""

from pydantic import Field, model_validator

from steps.shared.config import StepConfig
from steps.shared.fit_config import FitConfig


class BlockShape(StepConfig):
    """The size of a stack of blocks."""

    width: int = Field(ge=4)
    layers: int = Field(ge=1)
    heads: int = Field(ge=1)
    mlp_ratio: int = Field(ge=1, description="hidden width of the feed-forward layer over width")

    @model_validator(mode="after")
    def _heads(self) -> "BlockShape":
        if self.width % self.heads:
            raise ValueError(f"width = {self.width} must be a multiple of heads = {self.heads}")
        return self


class RowFit(FitConfig):
    """How the rows of a task are trained; cosine decay after a linear warm-up."""

    steps: int = Field(ge=2, description="updates")
    warmup_share: float = Field(ge=0, lt=1, description="of the updates")
