"""Stage 2: GRPO on unlabelled questions of all tasks, rewarded by their duals or by the truth."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steps.cellduality import policy, trainers
from steps.cellduality.config import Train
from steps.cellduality.dual import Duals
from steps.cellduality.prompts import columns
from steps.cellduality.rewarding import GroundTruth, SelfSupervised
from steps.cellduality.teacher import Case
from steps.cellduality.vocabulary import TASKS, Vocabulary
from steps.shared.runtime import InputError, stream

HISTORY = (
    *("step", "loss", "learning_rate", "grad_norm", "reward", "reward_std", "kl"),
    *("frac_reward_zero_std", "completions/mean_length", "completions/clipped_ratio"),
    *(f"reward_{task}" for task in TASKS),
    *(f"dual_{task}" for task in TASKS),
)


def prompts(cases: Sequence[Case], count: int, seed: int, *, truth: bool) -> list[dict[str, Any]]:
    """Return `count` questions as columns, the tasks in turn, each task's in a random order.

    Every row of a seed is asked the same. True answers are there for the oracle alone.
    """
    rng = stream("cellduality", "data", seed)
    own = {task: [case for case in cases if case.question.task == task] for task in TASKS}
    if empty := [task for task, found in own.items() if not found]:
        raise InputError(f"no unlabelled question of {', '.join(empty)}: lower labelled_share")
    turns = -(-count // len(TASKS))
    order = {}
    for task, found in own.items():
        rounds = -(-turns // len(found))
        order[task] = [int(i) for _ in range(rounds) for i in rng.permutation(len(found))]
    rows = []
    for number in range(count):
        task = TASKS[number % len(TASKS)]
        case = own[task][order[task][number // len(TASKS)]]
        rows.append(row(case, truth=truth))
    return rows


def row(case: Case, *, truth: bool) -> dict[str, Any]:
    """Return what TRL hands to a reward function of a case; its true answer, if at all."""
    return columns(case.question) | ({"truth": list(case.truth)} if truth else {})


def train(
    config: Train,
    unlabelled: Sequence[Case],
    probes: Sequence[Case],
    vocabulary: Vocabulary,
    *,
    start: Path,
    lengths: dict[str, int],
    job: trainers.Job,
) -> tuple[Any, list[dict[str, Any]]]:
    """Train from the SFT model in `start`, which the KL divergence is to; return trainer, history.

    `probes` are real cells with their labels: on them the dual is tested now and then, so that
    primal and dual that drift together are seen. They change nothing.
    """
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    grpo, oracle = config.grpo, config.reward == "truth"
    model, tokenizer = policy.to_train(start)
    duals = Duals(tokenizer, vocabulary, grpo.dual_batch)
    itself = SelfSupervised(duals, vocabulary, config.dual_target, lengths)
    groups = grpo.steps * grpo.batch_size * job.processes // grpo.num_generations
    accumulate = grpo.batch_size // grpo.micro_batch
    arguments = GRPOConfig(
        **trainers.arguments(grpo, job),
        per_device_train_batch_size=grpo.micro_batch,
        gradient_accumulation_steps=accumulate,
        steps_per_generation=accumulate * grpo.updates_per_batch,
        num_generations=grpo.num_generations,
        max_completion_length=grpo.completion_length,
        beta=grpo.beta,
        epsilon=grpo.epsilon,
        temperature=grpo.temperature,
        # what the first releases did, and what is no longer the default
        loss_type="grpo",
        scale_rewards="group",
        shuffle_dataset=False,
    )
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=GroundTruth(vocabulary, lengths) if oracle else itself,
        args=arguments,
        train_dataset=Dataset.from_list(prompts(unlabelled, groups, job.seed, truth=oracle)),
        processing_class=tokenizer,
        peft_config=policy.lora(config.grpo_lora),
    )
    if config.dual == "frozen":
        frozen, _ = policy.load(start, str(trainer.accelerator.device))
        itself.model = lambda: frozen
    else:
        itself.model = lambda: trainer.accelerator.unwrap_model(trainer.model)
    trainer.add_callback(trainers.probing(_probe(itself, probes), grpo.probe_every))
    return trainer, trainers.run(trainer, job, HISTORY)


def _probe(itself: SelfSupervised, probes: Sequence[Case]) -> Any:
    """Return what tests the dual: its mean reward, by task, for the true answers of real cells."""

    def measure() -> dict[str, float]:
        """Return dual_<task>, the mean reward, of every task that has probes."""
        questions = [case.question for case in probes]
        answers = [case.truth for case in probes]
        rewards = itself.of_answers(itself.model(), questions, answers)
        return {
            f"dual_{task}": float(own.mean())
            for task in TASKS
            if (own := rewards[[q.task == task for q in questions]]).size
        }

    return measure
