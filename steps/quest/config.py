"""What params.yaml may say about QUEST (arXiv 2604.00199): the models of its tasks, together."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from steps.quest.images_config import (
    DIGIT_CORRUPTIONS,
    DIGIT_SEVERITIES,
    ImageData,
    ImageMeasures,
    Images,
)
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
    num_seeds: dict[Task, Annotated[int, Field(ge=1)]] = Field(
        description="of the paper's seeds, the first ones, by task"
    )
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


def check(block: Block) -> Iterator[tuple[str, Any, str]]:
    """Yield (key, value, rule) of what does not fit together: see `steps.shared.config.Block`."""
    for row in block.rows:
        if row not in ROWS:
            yield "rows", row, f"must be one of {', '.join(ROWS)}"
    first = block.train[block.rows[0]]
    for row, train in block.train.items():
        for key in ("num_seeds", *get_args(Task)):
            if getattr(train, key) != getattr(first, key):
                rule = "must be the same in every row: set it in common"
                yield f"train.rows.{row}.{key}", "...", rule
    for task in get_args(Task):
        count = first.num_seeds.get(task)
        if count is None or count > len(block.seeds):
            rule = f"must be given, and be at most the {len(block.seeds)} seeds"
            yield f"train.common.num_seeds.{task}", count, rule
    yield from _toy_problems(block)
    yield from _image_problems(block)
    yield from _sweep_problems(block)


def _toy_problems(block: Block) -> Iterator[tuple[str, Any, str]]:
    for form, names in block.train[block.rows[0]].toy.rows.items():
        for name in set(names) - set(ROWS):
            yield f"train.common.toy.rows.{form}", name, f"must be one of {', '.join(ROWS)}"
    for row, train in block.train.items():
        if "toy" in train.tasks and not forms_of(train.toy, row):
            yield f"train.rows.{row}.toy.rows", "...", f"must name {row} in a form: it has the task"


def _image_problems(block: Block) -> Iterator[tuple[str, Any, str]]:
    data, measures = block.prepare.images, block.evaluate.images
    for name, most in (("num_attacked", data.num_test), ("pattern_size", data.image_size)):
        value = getattr(measures, name)
        if value > most:
            yield f"evaluate.images.{name}", value, f"must be at most {most}"
    if measures.corrupted == "digits":
        for name in set(measures.corruptions) - set(DIGIT_CORRUPTIONS):
            rule = f"must be one of {', '.join(DIGIT_CORRUPTIONS)}"
            yield "evaluate.images.corruptions", name, rule
        for severity in set(measures.severities) - set(DIGIT_SEVERITIES):
            yield "evaluate.images.severities", severity, "must be 1, 2 or 3 for digits"
    size = data.image_size
    first = block.train[block.rows[0]]
    for task in ("images", "sweep"):
        patch = getattr(first, task).shape.patch
        if size % patch:
            rule = f"must divide the {size} pixels of prepare.images.image_size"
            yield f"train.common.{task}.shape.patch", patch, rule


def _sweep_problems(block: Block) -> Iterator[tuple[str, Any, str]]:
    sweep, final = block.train[block.rows[0]].sweep, block.evaluate.sweep.final_lines
    lines = -(-sweep.steps // sweep.log_every)  # of the history, the one before training aside
    if final > lines:
        rule = f"must be at most the {lines} lines of a history after its first"
        yield "evaluate.sweep.final_lines", final, rule
