"""Prepare the toy: b and the test samples of both kinds, the same for every seed."""

import argparse

from steps.quest import toy
from steps.quest.toy_config import SPLITS, Problem
from steps.shared import tensor_files
from steps.shared.runtime import sha256_file, stream, write_json


def run(args: argparse.Namespace, problem: Problem) -> None:
    """Write toy.safetensors and, with the problem itself, toy.json."""
    import torch

    bias = toy.bias_vector(problem)
    tensors = {"bias": torch.from_numpy(bias)}
    for split, share in (("robust", 0.0), ("biased", 1.0)):
        rng = stream("quest", f"toy-test-{split}", 0)
        samples = toy.draw(problem, bias, rng, problem.num_test, biased_share=share)
        tensors |= {f"{split}.{name}": value for name, value in samples._asdict().items()}
    path = args.out / "toy.safetensors"
    tensor_files.write(path, tensors)
    note = {"problem": problem.model_dump(), "samples": dict.fromkeys(SPLITS, problem.num_test)}
    write_json(args.out / "toy.json", {**note, "sha256": sha256_file(path)})
