"""Test every row of one seed on all four tasks, and the specialists on theirs.

What a row got is kept in `state/` until all are tested: an interrupted job goes on with the next.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from steps.cellduality.config import Evaluate
from steps.cellduality.plan import SPECIALISTS
from steps.cellduality.prompts import CLASSIFY, Sentence
from steps.cellduality.teacher import Case
from steps.cellduality.vocabulary import TASKS
from steps.shared import selection
from steps.shared.flags import read_config, step_parser
from steps.shared.histories import read_history
from steps.shared.job_state import job_key, training_state
from steps.shared.runs import Run, run_of, write_runs
from steps.shared.runtime import (
    deterministic,
    log,
    read_json,
    run_step,
    stream,
    torch_device,
    write_json,
)

SPLITS = ("test", "ood")
ABLATIONS = ("sft", "sft_no_reasoning", "sft_no_filter", "cellduality", "frozen_dual",
             "no_reasoning", "no_filter")  # fmt: skip
MAIN = ("base", "sft", "rl_gt", "cellduality", *SPECIALISTS)
REWARDED = ("rl_gt", "cellduality")
PROBED = 32  # questions of a task on which the identities are measured


def main(argv: list[str] | None = None) -> None:
    """Write seed<seed>.csv, its runs, and seed<seed>_answers.json, which figures are drawn from."""
    parser = step_parser(__doc__, "state", "threads", "device")
    parser.add_argument("--rows", nargs="+", required=True, help="the rows to test")
    parser.add_argument("--target", required=True, help="dual_target of the rows")
    parser.add_argument("--data", type=Path, required=True, help="manifest.json of the seed")
    parser.add_argument("--selection", type=Path, required=True, help="selection.json of merge")
    parser.add_argument("--trained", type=Path, required=True, help="folder of the train phase")
    parser.add_argument("--out", type=Path, required=True, help="folder for the outputs")
    args = parser.parse_args(argv)
    config = read_config(args, Evaluate)
    deterministic(args.threads)
    key = job_key(
        "steps.cellduality.evaluate",
        args,
        paper="cellduality",
        row="evaluate",
        config=config,
        inputs=[args.selection, args.data],  # both hold the hashes of the files that they describe
    )
    with training_state(args.state, {**key, "target": args.target}) as state:
        test = Test(args, config)
        tested = {row: tested_once(test, row, state) for row in [*args.rows, *SPECIALISTS]}
        lines = [line for own in tested.values() for line in own["lines"]] + test.rewards()
        runs = in_tables(lines, args.rows)
        write_runs(args.out / f"seed{args.seed}.csv", runs, seed=args.seed)
        answers = {row: own["answers"] for row, own in tested.items()}
        write_json(args.out / f"seed{args.seed}_answers.json", answers)


def tested_once(test: "Test", row: str, state: Path) -> dict[str, Any]:
    """Return what a row got, from the file that an interrupted job left if there is one."""
    path = state / f"{row}.json"
    if not path.exists():
        log(f"cellduality evaluate {row} seed {test.args.seed}")
        write_json(path, test.row(row))
    return read_json(path)  # also of a new one, so that an interruption makes no difference


def in_tables(lines: Sequence[Run], rows: Sequence[str]) -> Iterator[Run]:
    """Yield runs: a row's scores in each table it is in; ablations, where all are tested."""
    ablated = set(ABLATIONS) <= set(rows)
    for line in lines:
        if line["table"]:
            tables = [line["table"]]
        else:
            tables = ["main"] if line["row"] in MAIN else []
            tables += ["ablations"] if ablated and line["row"] in ABLATIONS else []
        for table in tables:
            yield {**line, "table": table}


class Test:
    """The test questions of one seed, and what answers are compared with."""

    def __init__(self, args: Any, config: Evaluate) -> None:
        """Read what prepare left."""
        from steps.cellduality import arrays, questions
        from steps.cellduality.scores import Judge
        from steps.cellduality.vocabulary import Vocabulary

        self.args, self.config = args, config
        self.lengths = read_json(args.data, "lengths")["lengths"]
        self.vocabulary = Vocabulary.read(args.data.with_name("vocabulary.json"))
        self.arrays = arrays.read(args.data.with_name("arrays.safetensors"))
        _, parts = questions.read(args.data.with_name("questions.json"))
        self.cases = {
            (task, split): [case for case in parts[split] if case.question.task == task]
            for task in TASKS
            for split in SPLITS
            if (task, split) != ("generation", "ood")
        }
        self.cases["generation", "test"] *= config.copies
        self.judge = Judge(self.arrays, self.vocabulary, config.components)
        self.models = selection.read(args.selection)

    def row(self, row: str) -> dict[str, Any]:
        """Return the scores of a row or specialist, and its answers by "<task>/<split>"."""
        found = self.specialist(row) if row in SPECIALISTS else self.model(row)
        lines, kept = [], {}
        for (task, split), answers in found.items():
            kept[f"{task}/{split}"] = answers
            lines += self.scored(row, task, split, answers)
        lines += [] if row in SPECIALISTS else self.of_model(row, found)
        return {"lines": lines, "answers": kept}

    def model(self, row: str) -> dict[tuple[str, str], list[Sentence]]:
        """Return a row's answers to all questions: cells are sampled, all else is greedy."""
        import torch

        from steps.cellduality import answering, policy

        device = torch_device(self.args.device)
        self.loaded = policy.load(self.models[row].folder, device)
        draws = int(stream("cellduality", "sample", self.args.seed).integers(2**63))
        found = {}
        for (task, split), cases in self.cases.items():
            torch.manual_seed(draws)
            found[task, split] = answering.answers(
                *self.loaded,
                [case.question for case in cases],
                self.vocabulary,
                lengths=self.lengths,
                batch=self.config.batch_size,
                completion_length=self.config.completion_length,
                temperature=self.config.temperature if task == "generation" else 0.0,
            )
        return found

    def specialist(self, row: str) -> dict[tuple[str, str], list[Sentence]]:
        """Return a specialist's answers to the questions of its task."""
        from steps.cellduality import baselines

        found = {}
        for (task, split), cases in self.cases.items():
            answers = baselines.answers(row, task, cases, self.arrays, self.vocabulary)
            if answers is not None:
                found[task, split] = answers
        return found

    def scored(self, row: str, task: str, split: str, answers: Sequence[Sentence]) -> list[Run]:
        """Return the scores of one task's answers."""
        cases = self.cases[task, split]
        return [
            _line(row, task, split, metric, value)
            for metric, value in self.judge.of(task, split, cases, answers)
        ]

    def of_model(self, row: str, found: dict[tuple[str, str], list[Sentence]]) -> list[Run]:
        """Return dual consistency, the model's own dual of its answers; of one row, identities."""
        from steps.cellduality.dual import Duals
        from steps.cellduality.rewarding import SelfSupervised

        model, tokenizer = self.loaded
        duals = Duals(tokenizer, self.vocabulary, self.config.batch_size)
        itself = SelfSupervised(duals, self.vocabulary, self.args.target, self.lengths)
        lines = []
        for task in TASKS:
            questions = [case.question for case in self.cases[task, "test"]]
            rewards = itself.of_answers(model, questions, found[task, "test"])
            lines.append(_line(row, task, "test", "consistency", 100 * float(rewards.mean())))
            if row == "cellduality":
                lines += self._identities(task, itself, found[task, "test"])
        return lines

    def _identities(self, task: str, itself: Any, answers: Sequence[Sentence]) -> list[Run]:
        """Return how far a reward moves when labels are shuffled, and hidden items in prompts."""
        from steps.cellduality import grpo
        from steps.cellduality.prompts import MARKERS, dual_of, from_columns

        cases = self.cases[task, "test"][:PROBED]
        order = stream("cellduality", "shuffle", self.args.seed).permutation(len(cases))
        mixed = [
            Case(case.question, cases[i].truth, case.place)
            for case, i in zip(cases, order, strict=True)
        ]
        texts = [f"{MARKERS[task]} {' '.join(answer)}" for answer in answers[: len(cases)]]
        itself.model = lambda: self.loaded[0]
        rewards = []
        for own in (cases, mixed):
            # with the truth beside it, as the oracle's trainer hands it over
            rows = [grpo.row(case, truth=True) for case in own]
            rewards.append(itself([], texts, **{k: [r[k] for r in rows] for k in rows[0]}))
        moved = max(abs(a - b) for a, b in zip(*rewards, strict=True))
        lines = [_line("cellduality", task, "test", "label_error", moved, "identities")]
        if task in CLASSIFY:
            leaked = 0
            for case, answer in zip(cases, answers, strict=False):
                question = from_columns(grpo.row(case, truth=False))
                dual = dual_of(question, answer, self.args.target, self.vocabulary)
                leaked += len(set(question.parts()[1]) & set(dual.prompt.split())) if dual else 0
            lines.append(_line("cellduality", task, "test", "leaked", leaked, "identities"))
        return lines

    def rewards(self) -> list[Run]:
        """Return the mean reward of each task in the first and the last tenth of training (%)."""
        lines = []
        for row in REWARDED:
            path = self.args.trained / row / f"seed{self.args.seed}" / "history.csv"
            lines_of_row = read_history(path, *(f"reward_{task}" for task in TASKS))
            for task in TASKS:
                own = [float(v) for x in lines_of_row if (v := x[f"reward_{task}"])]
                tenth = max(1, len(own) // 10)
                for metric, part in (("reward_first", own[:tenth]), ("reward_last", own[-tenth:])):
                    value = 100 * fmean(part)
                    lines.append(_line(row, task, "train", metric, value, "rewards"))
        return lines


def _line(row: str, task: str, split: str, metric: str, value: float, table: str = "") -> Run:
    return run_of(table, split, metric, value) | {"dataset": task, "row": row}


if __name__ == "__main__":
    run_step(main)
