"""What params.yaml may say about QUEST (arXiv 2604.00199)."""

import argparse
from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import Field, model_validator

from steps.shared.config import Block, StepConfig, read_config

ROWS = (
    *("standard", "qnorm", "qknorm", "qknorm_hs", "qknorm_ds", "quest"),
    *("elliptical", "elliptical_quest"),
)
Form = Literal["minimal", "full"]
Task = Literal["toy"]
Rate = Annotated[float, Field(gt=0, le=1, description="peak learning rate")]
Decay = Annotated[float, Field(ge=0, lt=1, description="decoupled weight decay; matrices only")]


class Problem(StepConfig):
    """The toy retrieval problem; see toy.py."""

    num_tokens: int = Field(ge=2, description="tokens a sample")
    dim: int = Field(ge=1, description="dimensions of a token's key")
    num_answers: int = Field(ge=2, description="different answers")
    answer_sd: float = Field(gt=0, description="of the answer token's key in a robust sample")
    bias_norm: float = Field(gt=0, description="length of the mean key of biased answer tokens")
    bias_variance: float = Field(gt=0, description="of their keys around it, a dimension")
    biased_share: float = Field(ge=0, le=1, description="of the training samples")
    num_test: int = Field(ge=2, description="test samples, of each kind")


class ToyPrepare(StepConfig):
    """What preparing the toy reads."""

    toy: Problem


class Prepare(ToyPrepare):
    """The data of every task."""


class Toy(StepConfig):
    """The grid of toy models of one row and seed, trained as one stack by AdamW."""

    num_seeds: int = Field(ge=1, description="of the paper's seeds, the first ones")
    rows: dict[Form, list[str]] = Field(
        description="by form ('minimal', one layer; 'full', network)"
    )
    width: int = Field(ge=4, description="of the full network")
    layers: int = Field(ge=2, description="of the full network")
    heads: int = Field(ge=1, description="of the full network")
    learning_rates: list[Rate] = Field(min_length=1)
    weight_decays: list[Decay] = Field(min_length=1)
    beta1: float = Field(ge=0, lt=1)
    beta2: float = Field(ge=0, lt=1)
    steps: dict[Form, Annotated[int, Field(ge=1)]] = Field(description="updates, by form")
    batch_size: int = Field(ge=1, description="samples per update")
    num_probe: int = Field(ge=2, description="samples that a history line is measured on")
    log_every: int = Field(ge=1, description="updates per line of history.csv")
    checkpoint_every: int = Field(ge=1, description="updates; what an interruption can lose")

    @model_validator(mode="after")
    def _fits(self) -> "Toy":
        if self.width % self.heads:
            raise ValueError(f"width = {self.width} must be a multiple of heads = {self.heads}")
        if missing := set(self.rows) - set(self.steps):
            raise ValueError(f"steps must name the updates of {', '.join(sorted(missing))}")
        return self


def forms_of(toy: Toy, row: str) -> list[str]:
    """Return the forms that a row trains in, in one order whatever the file's."""
    return [form for form in get_args(Form) if row in toy.rows.get(form, [])]


class ToyTrain(StepConfig):
    """What training the toy reads."""

    toy: Toy


class Train(ToyTrain):
    """A row, and the tasks whose tables it is in."""

    tasks: list[Task]


class Merge(StepConfig):
    """Nothing is averaged: a model is evaluated as it was trained."""


class ToyMeasures(StepConfig):
    """How the toy is judged."""

    success_accuracy: float = Field(gt=0, le=1, description="share of robust samples to answer")
    num_maps: int = Field(ge=1, description="samples of each kind whose attention is kept")


class ToyEvaluate(StepConfig):
    """What evaluating the toy reads."""

    toy: ToyMeasures


class Evaluate(ToyEvaluate):
    """How much is measured, by task."""


TaskModel = TypeVar("TaskModel", bound=StepConfig)


def read_task(
    args: argparse.Namespace, whole: type[StepConfig], part: type[TaskModel]
) -> TaskModel:
    """Return what one task reads of a phase: the rules pass just that, params.yaml holds `whole`.

    So a change of one task's parameters does not rerun another task.
    """
    if args.config.lstrip().startswith("{"):
        return read_config(args, part)
    value = read_config(args, whole)
    return part.model_validate({name: getattr(value, name) for name in part.model_fields})


def check(block: Block) -> Iterator[tuple[str, Any, str]]:
    """Yield (key, value, rule) of what does not fit together: see `steps.shared.config.Block`."""
    for row in block.rows:
        if row not in ROWS:
            yield "rows", row, f"must be one of {', '.join(ROWS)}"
    if not any("toy" in block.train[row].tasks for row in block.rows):
        yield "rows", block.rows, "must hold a row of the task toy"
    first = block.train[block.rows[0]].toy
    for row, train in block.train.items():
        if train.toy != first:
            yield f"train.rows.{row}.toy", "...", "must be the same in every row: set it in common"
        if "toy" in train.tasks and not forms_of(train.toy, row):
            yield f"train.rows.{row}.toy.rows", "...", f"must name {row} in a form: it has the task"
        if train.toy.num_seeds > len(block.seeds):
            rule = f"must be at most the {len(block.seeds)} seeds"
            yield f"train.rows.{row}.toy.num_seeds", train.toy.num_seeds, rule
