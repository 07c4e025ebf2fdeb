"""What params.yaml may say about CellDuality (OpenReview I4meJN28Ol)."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from steps.cellduality.data_config import Cells, Drugs, Perturbations
from steps.cellduality.hub_config import Hub
from steps.cellduality.vocabulary import TASKS
from steps.shared.config import Block, StepConfig
from steps.shared.fit_config import AdamWConfig, Heads, Scheduled

Share = Annotated[float, Field(gt=0, le=1)]
Threshold = Annotated[float, Field(ge=0, le=1)]


class TeacherConfig(StepConfig):
    """The teacher's drafts and how they are filtered."""

    temperature: float = Field(gt=0, description="of the draws of labels, in nats")
    recall_temperature: float = Field(gt=0, description="of the draws of cells, in cosines")
    num_markers: int = Field(ge=1, description="items named in a reasoning, of each kind")
    num_drafts: int = Field(ge=1, description="drafts of a case; the first accepted one is kept")
    thresholds: dict[Literal["generation", "perturbation"], Threshold] = Field(
        min_length=2, description="least RWJS of the true and a drafted sentence to be kept"
    )


class Prepare(StepConfig):
    """The data of the tasks, and how they become questions."""

    cells: Cells
    drugs: Drugs
    perturbations: Perturbations
    hub: Hub | None = Field(description="data in place of these three, at the paper's scale")
    teacher: TeacherConfig
    labelled_share: Share = Field(description="of the training cases: SFT's; RL gets the others")
    hidden_share: float = Field(gt=0, lt=1, description="of a sentence, that the dual must restore")
    drug_pairs: int = Field(ge=2, description="(cell line, drug) pairs of training")
    perturbation_pairs: int = Field(ge=2, description="(cell, perturbation) pairs of training")
    test_questions: int = Field(ge=2, description="at most, of a task and split")


class NewModel(Heads):
    """A small Llama with a tokenizer of the vocabulary's words, from scratch."""

    context: int = Field(ge=16, description="tokens")


class Pretrained(StepConfig):
    """A pretrained causal language model with its own tokenizer."""

    name: str = Field(description="hub id or folder")
    gguf: str = Field(description="the file in it, if it is a GGUF model, else empty")
    dtype: Literal["float32", "bfloat16"]


class Stage(Scheduled, AdamWConfig):
    """Optimization of one stage, linear decay."""

    batch_size: int = Field(ge=1, description="sequences or completions of an update, of a process")


class Grpo(Stage):
    """GRPO as first released: beta above 0, loss averaged by sequence, rewards scaled by group."""

    num_generations: int = Field(ge=2, description="G, candidates of a prompt")
    updates_per_batch: int = Field(ge=1, description="mini-batches of one generated batch")
    beta: float = Field(gt=0, description="weight of the KL divergence to the SFT model")
    epsilon: float = Field(gt=0, lt=1, description="clip range of the probability ratio")
    temperature: float = Field(gt=0, description="of sampling")
    completion_length: int = Field(ge=4, description="tokens of a completion, at most")
    dual_batch: int = Field(ge=1, description="dual prompts answered at once")
    probe_every: int = Field(ge=1, description="updates; the dual is tested on real cells then")


class Lora(StepConfig):
    """Low-rank adapters on all linear layers."""

    rank: int = Field(ge=1)
    alpha: float = Field(gt=0, description="the adapter's product is scaled by alpha / rank")


class Train(StepConfig):
    """How a row trains: a base model, SFT of it, or GRPO from the model of an SFT row."""

    stage: Literal["base", "sft", "grpo"]
    start: str = Field(description="row whose model it starts from; empty for the base model")
    reasoning: bool = Field(description="the teacher's reasoning before answers")
    filtering: bool = Field(description="only accepted drafts of the teacher")
    reward: Literal["dual", "truth"]
    dual: Literal["current", "frozen"] = Field(description="the policy itself, or after SFT")
    dual_target: Literal["perturbation", "cell_type"]
    model: NewModel
    pretrained: Pretrained | None = Field(description="in place of `model`")
    sft: Stage
    sft_lora: Lora | None
    grpo: Grpo
    grpo_lora: Lora | None


class Merge(StepConfig):
    """Adapters are added to the weights that they were trained on."""


class Evaluate(StepConfig):
    """How much is measured."""

    completion_length: int = Field(ge=4, description="tokens of a completion, at most")
    copies: int = Field(ge=1, description="cells generated for each real test cell, of its type")
    temperature: float = Field(gt=0, description="of generating cells; all else is greedy")
    batch_size: int = Field(ge=1, description="prompts answered at once")
    components: int = Field(ge=1, description="dimensions in which generated cells are compared")


NEEDED = ("base", "sft", "rl_gt", "cellduality")  # by figures and claims
SHARED = ("dual_target", "pretrained")  # by merging and evaluation, for all rows


def check(block: Block) -> Iterator[tuple[str, Any, str]]:
    """Yield (key, value, rule) of what does not fit together: see `steps.shared.config.Block`."""
    if missing := [row for row in NEEDED if row not in block.rows]:
        yield "rows", list(block.rows), f"must name {missing[0]}, which figures and claims read"
    for name in SHARED:
        values = {row: getattr(block.train[row], name) for row in block.rows}
        first = next(iter(values.values()))
        if other := [row for row, value in values.items() if value != first]:
            key = f"train.rows.{other[0]}.{name}"
            yield key, values[other[0]], "must be that of the other rows"
    for row in block.rows:
        own = block.train[row]
        key = f"train.rows.{row}"
        wanted = {"base": None, "sft": "base", "grpo": "sft"}[own.stage]
        start = block.train.get(own.start)
        if (start.stage if start else None) != wanted:
            rule = f"must be a row of stage {wanted}" if wanted else "must be empty: it is the base"
            yield f"{key}.start", own.start, rule
            continue
        if start and own.start not in block.rows:
            yield f"{key}.start", own.start, "must be among rows"
        if own.stage == "grpo":
            if (own.reasoning, own.filtering) != (start.reasoning, start.filtering):
                yield f"{key}.reasoning", own.reasoning, "must be that of the row it starts from"
            yield from _grpo_problems(key, own)
        yield from _stage_problems(key, own)


def _grpo_problems(key: str, own: Train) -> Iterator[tuple[str, Any, str]]:
    grpo = own.grpo
    if grpo.batch_size * grpo.updates_per_batch % grpo.num_generations:
        rule = f"times updates_per_batch must divide into groups of {grpo.num_generations}"
        yield f"{key}.grpo.batch_size", grpo.batch_size, rule
    if grpo.checkpoint_every % grpo.updates_per_batch:
        rule = f"must be a multiple of updates_per_batch = {grpo.updates_per_batch}"
        yield f"{key}.grpo.checkpoint_every", grpo.checkpoint_every, rule
    if grpo.steps % grpo.updates_per_batch:
        rule = f"must be a multiple of updates_per_batch = {grpo.updates_per_batch}"
        yield f"{key}.grpo.steps", grpo.steps, rule
    if grpo.steps * grpo.batch_size // grpo.num_generations < len(TASKS):
        rule = f"must give a prompt of each of the {len(TASKS)} tasks: steps x batch_size / G"
        yield f"{key}.grpo.steps", grpo.steps, rule
    if grpo.probe_every % grpo.log_every:
        rule = f"must be a multiple of log_every = {grpo.log_every}: a probe joins a line"
        yield f"{key}.grpo.probe_every", grpo.probe_every, rule


def _stage_problems(key: str, own: Train) -> Iterator[tuple[str, Any, str]]:
    for name, stage in (("sft", own.sft), ("grpo", own.grpo)):
        if stage.batch_size % stage.micro_batch:
            rule = f"must divide batch_size = {stage.batch_size}"
            yield f"{key}.{name}.micro_batch", stage.micro_batch, rule
        if stage.log_every > stage.steps:
            rule = f"must be at most the {stage.steps} updates, or nothing is logged"
            yield f"{key}.{name}.log_every", stage.log_every, rule
