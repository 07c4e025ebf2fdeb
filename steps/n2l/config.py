"""What params.yaml may say about N2L (OpenReview Hc71kKCEFG). A row of `train` is a data set."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field, create_model, model_validator

from steps.n2l.data_config import DATASETS, DataConfig
from steps.shared.config import Block, StepConfig
from steps.shared.fit_config import FitConfig, Scheduled

Theta = Annotated[float, Field(ge=0, description="singular value, of features of feature_norm")]


class Protocol(StepConfig):
    """How the classes come: `first` of them in the first task, `step` in each later one."""

    first: int = Field(ge=1)
    step: int = Field(ge=1)


Prepare = create_model(
    "Prepare",
    __base__=StepConfig,
    __doc__="The data sets; `rows` says which of them are used.",
    **{
        name: (Annotated[DataConfig, Field(discriminator="kind")] | None, None) for name in DATASETS
    },
)


class Train(Scheduled, FitConfig):
    """How the CLIP of a data set is trained; hub data bring their own and leave this unread."""

    embed_dim: int = Field(ge=2, description="length of image and text embeddings")
    width: int = Field(ge=1, description="channels or hidden units of the trained towers")
    dropout: float = Field(ge=0, lt=1, description="share of the features left out in training")
    temperature: float = Field(gt=0, description="cosines are divided by it, at the start")


class FineTuning(StepConfig):
    """The row that is fine-tuned on one task after another."""

    rate: float = Field(gt=0, description="Adam's rate, on columns of length 1")
    epochs: int = Field(ge=1)
    batch_size: int = Field(ge=1, description="images")


class Merge(StepConfig):
    """The continual learner: labels, weights, ridge regression over tasks."""

    protocols: dict[str, dict[Literal["b0", "bhalf"], Protocol]]
    feature_norm: float = Field(gt=0, description="length to which features are scaled")
    ridge: float = Field(gt=0, description="lambda, of the classifiers")
    theta: Theta | Literal["median"] = Field(description="which directions are kept")
    iterations: int = Field(ge=1, description="of the refinement")
    scope: Literal["class", "task"] = Field(description="in which weights are ranked")
    entropy_scale: float = Field(gt=0, description="of ridge scores, before their entropy")
    fusion: float = Field(ge=0, le=1, description="share of the learnt scores")
    draws: int = Field(ge=1, description="of random weights within a seed, averaged")
    expansion: int = Field(ge=1, description="random features of RAIL and RanPAC")
    ridges: list[Annotated[float, Field(gt=0)]] = Field(min_length=1, description="RanPAC's grid")
    thetas: list[Theta] = Field(min_length=1, description="of the sweep")
    fine_tuning: FineTuning

    @model_validator(mode="after")
    def _b0(self) -> "Merge":
        for name, protocols in self.protocols.items():
            if "b0" not in protocols:
                raise ValueError(f"protocols.{name} must have b0")
        return self


class Evaluate(StepConfig):
    """Everything is measured on all test images."""


def check(block: Block) -> Iterator[tuple[str, Any, str]]:
    """Yield (key, value, rule) of what does not fit together: see `steps.shared.config.Block`."""
    for row in block.rows:
        if row not in DATASETS:
            yield "rows", row, f"must be one of {', '.join(DATASETS)}"
        elif getattr(block.prepare, row) is None:
            yield f"prepare.{row}", None, "is missing, and rows names it"
        elif row not in block.merge.protocols:
            yield "merge.protocols", sorted(block.merge.protocols), f"must have {row}"
    kinds = {row: data.kind for row in block.rows if (data := getattr(block.prepare, row, None))}
    if 0 < list(kinds.values()).count("hub") < len(kinds):
        yield "rows", block.rows, "must be of the hub, all of them or none: tables are for either"
    yield from _too_many_classes(block)


def _too_many_classes(block: Block) -> Iterator[tuple[str, Any, str]]:
    counts = {}
    if block.prepare.digits is not None and block.prepare.digits.kind == "glyphs":
        counts["digits"] = 10
    if block.prepare.emoji is not None and block.prepare.emoji.kind == "emoji":
        counts["emoji"] = block.prepare.emoji.num_classes
    for row, count in counts.items():
        for name, protocol in block.merge.protocols.get(row, {}).items():
            if row in block.rows and (
                protocol.first > count or (count - protocol.first) % protocol.step
            ):
                rule = f"must divide the {count} classes into whole tasks"
                yield f"merge.protocols.{row}.{name}", protocol.model_dump(), rule
