"""What params.yaml may say about WSM (arXiv 2507.17634)."""

from typing import Annotated, Literal

from pydantic import Field

from steps.shared.config import StepConfig
from steps.shared.fit_config import FitConfig

Steps = Annotated[int, Field(ge=1, description="updates")]


class Source(StepConfig):
    """Where a corpus comes from: a packaged asset, or a data set of the hub by id."""

    kind: Literal["asset", "hub"]
    name: str = Field(description="asset name, or hub id")
    subset: str = Field(description="hub configuration name; empty for none")
    train_tokens: int = Field(ge=1000, description="largest number of training tokens kept")
    test_tokens: int = Field(ge=100, description="largest number of test tokens kept")


class Prepare(StepConfig):
    """Corpora, tokenizer, and the sizes of the downstream tasks."""

    general: Source
    anneal: Source
    tokenizer: str = Field(description="'characters', or a hub id")
    num_choice_items: int = Field(ge=1, description="gloss multiple-choice items")
    num_questions: int = Field(ge=2, description="hypernym questions; a fifth is held out")


class Trunk(FitConfig):
    """The constant-rate run up to the switch of data."""

    model: Literal["gpt", "llama"]
    width: int = Field(ge=8)
    layers: int = Field(ge=1)
    heads: int = Field(ge=1)
    context: int = Field(ge=8, description="tokens per sequence")
    warmup_steps: Steps
    stable_steps: Steps = Field(description="updates on the general corpus, warm-up included")


class Train(Trunk):
    """A branch: the trunk continued on the annealing corpus, decayed or not."""

    decay: str = Field(description="'constant', or a decay curve of curves.py")
    keep: Literal["last", "window"] = Field(description="checkpoints kept for merging")
    anneal_steps: Steps
    save_every: Steps = Field(description="updates between checkpoints of the window")


class MergeRow(StepConfig):
    """One merged row of the main table."""

    source: str = Field(description="trained row whose checkpoints are merged")
    curve: str
    control: Literal["none", "reversed", "scrambled"]


class Continuation(FitConfig):
    """Fine-tuning on questions and answers, from several models alike."""

    rows: list[str] = Field(min_length=1)
    steps: Steps


class Merge(StepConfig):
    """Merged rows and the two sweeps; durations and the window are in updates."""

    window: Steps = Field(description="updates that the merges of the main table span")
    count: Steps = Field(description="checkpoints in that window")
    grid: Literal["i/n", "i/k", "(i-1)/k"]
    rows: dict[str, MergeRow]
    durations: list[int]
    duration_count: Steps = Field(description="checkpoints at every duration")
    counts: list[int] = Field(description="checkpoints at the fixed window")
    sweep_curve: str


class Evaluate(StepConfig):
    """How much is measured."""

    batch_size: int = Field(ge=1, description="sequences per forward pass")
    continuation: Continuation
