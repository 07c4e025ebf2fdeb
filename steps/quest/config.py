"""What params.yaml may say about QUEST (arXiv 2604.00199): the models of its tasks, together."""

from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, get_args

from pydantic import create_model

from steps.quest.images_config import ImageData, ImageMeasures, Images
from steps.quest.language_config import Language, LanguageMeasures, TextData
from steps.quest.row_names import ROWS
from steps.quest.sweep_config import Sweep, SweepMeasures
from steps.quest.toy_config import Problem, Toy, ToyMeasures, forms_of
from steps.shared.config import Block, StepConfig

Task = Literal["toy", "images", "sweep", "language"]


class Prepare(StepConfig):
    """The data of the tasks; the sweep reads that of `images`."""

    toy: Problem
    images: ImageData
    language: TextData


class Train(StepConfig):
    """A row: the tasks whose tables it is in, and how each trains."""

    tasks: list[Task]
    toy: Toy
    images: Images
    sweep: Sweep
    language: Language


class Merge(StepConfig):
    """Nothing is averaged: a model is evaluated as it was trained."""


class Evaluate(StepConfig):
    """How much is measured, by task."""

    toy: ToyMeasures
    images: ImageMeasures
    sweep: SweepMeasures
    language: LanguageMeasures


@cache
def part(phase: type[StepConfig], task: str) -> type[StepConfig]:
    """Return the model of what one task reads of a phase: the field of its name, alone.

    So a change of one task's parameters does not rerun another task.
    """
    field = phase.model_fields[task].annotation
    return create_model(f"{phase.__name__}_{task}", __base__=StepConfig, **{task: (field, ...)})


def check(block: Block) -> Iterator[tuple[str, Any, str]]:
    """Yield (key, value, rule) of what does not fit together: see `steps.shared.config.Block`."""
    for row in block.rows:
        if row not in ROWS:
            yield "rows", row, f"must be one of {', '.join(ROWS)}"
    first = block.train[block.rows[0]]
    for task in get_args(Task):
        count = getattr(first, task).num_seeds
        if count > len(block.seeds):
            rule = f"must be at most the {len(block.seeds)} seeds"
            yield f"train.common.{task}.num_seeds", count, rule
        for row, train in block.train.items():
            if getattr(train, task) != getattr(first, task):
                key = f"train.rows.{row}.{task}"
                yield key, "...", "must be the same in every row: set it in common"
    for row, train in block.train.items():
        if "toy" in train.tasks and not forms_of(train.toy, row):
            yield f"train.rows.{row}.toy.rows", "...", f"must name {row} in a form: it has the task"
    yield from _patch_problems(block)


def _patch_problems(block: Block) -> Iterator[tuple[str, Any, str]]:
    size = block.prepare.images.image_size
    first = block.train[block.rows[0]]
    for task in ("images", "sweep"):
        patch = getattr(first, task).shape.patch
        if size % patch:
            rule = f"must divide the {size} pixels of prepare.images.image_size"
            yield f"train.common.{task}.shape.patch", patch, rule
