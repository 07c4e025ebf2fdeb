"""The toy retrieval problem: find the one token that is unlike the others, and say what it holds.

A sample has N tokens. Token i is a key x_i^k in R^d and an answer x_i^v, one of C. Keys are
N(0, I), but that of the answer token, at a uniform position L: N(0, s^2 I) in a robust sample, and
N(b, 0.1 I) with the same b in all biased ones. The target is x_L^v. A model can learn the pattern
b, which is easy, or the unusual spread, which serves both kinds.

Shapes: B samples, N tokens, D key dimensions.
"""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from steps.quest.toy_config import SPLITS, Problem
from steps.shared import tensor_files
from steps.shared.runtime import read_json, reading, stream

if TYPE_CHECKING:
    from numpy.random import Generator


class Samples(NamedTuple):
    """Keys (B, N, D) float32; answers (B, N), positions L (B) int64; biased (B) bool."""

    keys_BND: Tensor
    answers_BN: Tensor
    position_B: Tensor
    biased_B: Tensor

    @property
    def target_B(self) -> Tensor:
        """The answer of the answer token."""
        return self.answers_BN.gather(1, self.position_B[:, None]).squeeze(1)

    def part(self, begin: int, end: int) -> "Samples":
        """Return samples begin..end-1."""
        return Samples(*(part[begin:end] for part in self))


def bias_vector(problem: Problem) -> np.ndarray:
    """Return b (D), of length `bias_norm` in a random direction, the same for every seed."""
    direction = stream("quest", "toy-bias", 0).standard_normal(problem.dim)
    return problem.bias_norm * direction / np.linalg.norm(direction)


def draw(
    problem: Problem, bias: np.ndarray, rng: "Generator", count: int, *, biased_share: float
) -> Samples:
    """Draw `count` samples, each biased with probability `biased_share`."""
    N, D = problem.num_tokens, problem.dim
    keys = rng.standard_normal((count, N, D))
    answers = rng.integers(problem.num_answers, size=(count, N))
    position = rng.integers(N, size=count)
    biased = rng.random(count) < biased_share
    noise = rng.standard_normal((count, D))
    robust = problem.answer_sd * noise
    spurious = bias + problem.bias_variance**0.5 * noise
    keys[np.arange(count), position] = np.where(biased[:, None], spurious, robust)
    parts = (keys.astype(np.float32), answers, position, biased)
    return Samples(*map(torch.from_numpy, parts))


def training_samples(
    problem: Problem, bias: np.ndarray, *, seed: int, updates: int, batch: int
) -> Samples:
    """Return all samples of a run, update u (1-based) reading samples (u-1)*batch..u*batch-1.

    The same in every row, form and grid point of a seed.
    """
    rng = stream("quest", "toy-data", seed)
    return draw(problem, bias, rng, updates * batch, biased_share=problem.biased_share)


def load(manifest: Path) -> tuple[Problem, np.ndarray, dict[str, Samples]]:
    """Return the problem, b and the test samples by split, as `prepare` wrote them."""
    note = read_json(manifest, "problem")
    with reading(manifest, "the toy's problem"):
        problem = Problem.model_validate(note["problem"])
    names = [f"{split}.{field}" for split in SPLITS for field in Samples._fields]
    tensors = tensor_files.read(
        manifest.with_suffix(".safetensors"),
        "the toy's data as prepare writes it",
        names=["bias", *names],
        framework="torch",
    )
    tests = {
        split: Samples(*(tensors[f"{split}.{field}"] for field in Samples._fields))
        for split in SPLITS
    }
    return problem, tensors["bias"].numpy(), tests
