"""Stage 1: supervised fine-tuning on primal and dual tasks (D_SFT = D_primal and D_dual)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steps.cellduality import policy, trainers
from steps.cellduality.config import Train
from steps.cellduality.prompts import DualTarget, answer_text, dual_of, primal_prompt
from steps.cellduality.questions import Labelled
from steps.cellduality.vocabulary import Vocabulary
from steps.shared.runtime import InputError

HISTORY = ("step", "loss", "learning_rate", "grad_norm", "mean_token_accuracy")


def examples(
    labelled: Sequence[Labelled],
    vocabulary: Vocabulary,
    *,
    reasoning: bool,
    filtering: bool,
    target: DualTarget,
) -> list[dict[str, str]]:
    """Return prompts and completions: the teacher's drafts, and duals made from true answers."""
    pairs = []
    for item in labelled:
        question = item.case.question
        draft = item.kept if filtering else item.first
        if draft is not None:
            thought = draft.reasoning if reasoning else ""
            text = answer_text(question.task, thought, draft.answer)
            pairs.append({"prompt": primal_prompt(question), "completion": text})
        dual = dual_of(question, item.case.truth, target, vocabulary)
        if dual is not None and dual.target:
            pairs.append({"prompt": dual.prompt, "completion": " ".join(["", *dual.target])})
    return pairs


def train(
    config: Train,
    labelled: Sequence[Labelled],
    vocabulary: Vocabulary,
    *,
    start: Path,
    job: trainers.Job,
) -> tuple[Any, list[dict[str, Any]]]:
    """Train from the model in `start`; return TRL's trainer and the history."""
    from datasets import Dataset
    from trl import SFTConfig, SFTTrainer

    model, tokenizer = policy.to_train(start)
    pairs = examples(
        labelled,
        vocabulary,
        reasoning=config.reasoning,
        filtering=config.filtering,
        target=config.dual_target,
    )
    if not pairs:
        raise InputError("prepare.teacher.thresholds: no example is left; lower them")
    for pair in pairs:  # else a word tokenizer would join it to the last word
        pair["completion"] += f" {tokenizer.eos_token}"
    arguments = SFTConfig(
        **trainers.arguments(config.sft, job),
        per_device_train_batch_size=config.sft.micro_batch,
        gradient_accumulation_steps=config.sft.batch_size // config.sft.micro_batch,
        max_length=None,
    )
    trainer = SFTTrainer(
        model=model,
        args=arguments,
        train_dataset=Dataset.from_list(pairs),
        processing_class=tokenizer,
        peft_config=policy.lora(config.sft_lora),
    )
    return trainer, trainers.run(trainer, job, HISTORY)
