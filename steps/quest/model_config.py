"""What params.yaml says of a transformer of any row, and of how its rows are trained."""

from pydantic import Field

from steps.shared.fit_config import FitConfig, Heads, Scheduled


class BlockShape(Heads):
    """The size of a stack of blocks."""

    mlp_ratio: int = Field(ge=1, description="hidden width of the feed-forward layer over width")


class RowFit(Scheduled, FitConfig):
    """How the rows of a task are trained; cosine decay after a linear warm-up."""
