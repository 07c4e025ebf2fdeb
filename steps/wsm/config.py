"""What params.yaml may say about WSM (arXiv 2507.17634)."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from steps.shared.config import Block, StepConfig
from steps.shared.fit_config import FitConfig, Heads, Optimization
from steps.shared.text_config import Source, TokenizerName


def _known_curve(name: str) -> str:
    from steps.wsm.curves import parse_curve

    parse_curve(name)  # an InputError, which is a ValueError, names what is allowed
    return name


Steps = Annotated[int, Field(ge=1, description="updates")]
Curve = Annotated[str, AfterValidator(_known_curve)]


class Prepare(StepConfig):
    """Corpora, tokenizer, and the sizes of the downstream tasks."""

    general: Source
    anneal: Source
    tokenizer: TokenizerName
    num_choice_items: int = Field(ge=1, description="gloss multiple-choice items")
    num_questions: int = Field(ge=2, description="category questions; a fifth is held out")


class Trunk(Heads, FitConfig):
    """The constant-rate run up to the switch of data."""

    model: Literal["gpt", "llama"]
    context: int = Field(ge=8, description="tokens per sequence")
    warmup_steps: Steps
    stable_steps: Steps = Field(description="updates on the general corpus, warm-up included")

    @model_validator(mode="after")
    def _stable_after_warmup(self) -> "Trunk":
        if self.warmup_steps > self.stable_steps:
            raise ValueError(
                f"warmup_steps = {self.warmup_steps} must be at most"
                f" stable_steps = {self.stable_steps}"
            )
        return self


class Train(Trunk):
    """A branch: the trunk continued on the annealing corpus, decayed or not."""

    decay: str = Field(description="'constant', or a decay curve of curves.py")
    keep: Literal["last", "window"] = Field(description="checkpoints kept for merging")
    anneal_steps: Steps
    save_every: Steps = Field(description="updates between checkpoints of the window")

    @field_validator("decay")
    @classmethod
    def _decay(cls, name: str) -> str:
        return name if name == "constant" else _known_curve(name)

    @model_validator(mode="after")
    def _saved_at_the_end(self) -> "Train":
        if self.anneal_steps % self.save_every:
            raise ValueError(
                f"anneal_steps = {self.anneal_steps} must be a multiple of"
                f" save_every = {self.save_every}"
            )
        return self


class MergeRow(StepConfig):
    """One merged row of the main table."""

    source: str = Field(description="trained row whose checkpoints are merged")
    curve: Curve
    control: Literal["none", "reversed", "scrambled"]


class Continuation(Optimization):
    """Fine-tuning on questions and answers, from several models alike."""

    rows: list[str] = Field(min_length=1)
    steps: Steps
    batch_size: int = Field(ge=1, description="questions per update")
    precision: Literal["no", "bf16"]

    def fit(self) -> FitConfig:
        """Return what `Fit` reads; it is so short that nothing is logged or kept before its end."""
        own = self.model_dump(exclude={"rows", "steps"})
        return FitConfig(**own, log_every=self.steps, checkpoint_every=self.steps)


class Merge(StepConfig):
    """Merged rows and the two sweeps; durations and the window are in updates."""

    window: Steps = Field(description="updates that the merges of the main table span")
    count: Steps = Field(description="checkpoints in that window")
    grid: Literal["i/n", "i/k", "(i-1)/k"]
    rows: dict[str, MergeRow]
    durations: list[Steps]
    duration_count: Steps = Field(description="checkpoints at every duration")
    counts: list[Steps] = Field(description="checkpoints at the fixed window")
    sweep_curve: Curve


class Evaluate(StepConfig):
    """How much is measured."""

    batch_size: int = Field(ge=1, description="sequences per forward pass")
    continuation: Continuation


def check(block: Block) -> Iterator[tuple[str, Any, str]]:
    """Yield (key, value, rule) of what does not fit together: see `steps.shared.config.Block`."""
    from steps.wsm.plan import SWEEPS, merged_models, saved_updates

    named = {name: row.source for name, row in block.merge.rows.items()}
    for name, source in named.items():
        if source not in block.rows:
            yield f"merge.rows.{name}.source", source, f"must be one of rows: {block.rows}"
    for row in block.evaluate.continuation.rows:
        if row not in (*block.rows, *named):
            yield "evaluate.continuation.rows", row, "must name trained or merged rows"
    for name in named:
        if name in block.rows:
            yield f"merge.rows.{name}", "...", "must not have the name of a trained row"
        if name.startswith(SWEEPS):
            yield f"merge.rows.{name}", "...", f"{' and '.join(SWEEPS)} begin the sweeps' names"
    yield from _window_problems(block.merge)
    if "constant" not in block.rows:
        yield "rows", block.rows, "must hold 'constant', whose checkpoints the sweeps merge"
        return
    saved = {row: saved_updates(block.train[row].model_dump()) for row in block.rows}
    for model in merged_models(block.merge.model_dump(), saved["constant"][-1]):
        absent = set(model.updates) - set(saved.get(model.source, model.updates))
        if absent:
            rule = f"{model.name} needs the checkpoint of update {min(absent)} of {model.source}"
            yield "merge", "...", f"{rule}, which keep and save_every do not give"


def _window_problems(merge: Merge) -> Iterator[tuple[str, Any, str]]:
    """Yield windows that their number of checkpoints does not divide."""
    spans = [
        ("count", merge.window, merge.count),
        *(("counts", merge.window, n) for n in merge.counts),
    ]
    for key, span, count in spans:
        if span % count:
            yield f"merge.{key}", count, f"must divide window = {span}"
    for duration in merge.durations:
        if duration % merge.duration_count:
            rule = f"must be a multiple of duration_count = {merge.duration_count}"
            yield "merge.durations", duration, rule
