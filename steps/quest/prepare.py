"""Prepare the data of a task: of the toy, its bias vector and its test samples."""

import json
from pathlib import Path

from steps.quest.config import Prepare, Problem, ToyPrepare, read_task
from steps.shared.config import step_parser
from steps.shared.runtime import atomic_path, run_step, sha256_file, stream, write_json


def main(argv: list[str] | None = None) -> None:
    """Write <task>.safetensors and <task>.json; see the module's docstring."""
    parser = step_parser(__doc__)
    parser.add_argument("--task", choices=["toy"], required=True)
    parser.add_argument("--out", type=Path, required=True, help="folder for the outputs")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args(argv)
    prepare_toy(read_task(args, Prepare, ToyPrepare).toy, args.out)


def prepare_toy(problem: Problem, out: Path) -> None:
    """Write b and the test samples of both kinds, the same for every seed, and the problem."""
    import torch
    from safetensors.torch import save_file

    from steps.quest import toy

    bias = toy.bias_vector(problem)
    tensors = {"bias": torch.from_numpy(bias)}
    for split, share in (("robust", 0.0), ("biased", 1.0)):
        rng = stream("quest", f"toy-test-{split}", 0)
        samples = toy.draw(problem, bias, rng, problem.num_test, biased_share=share)
        named = samples._asdict().items()
        tensors |= {f"{split}.{name}": value.contiguous() for name, value in named}
    path = out / "toy.safetensors"
    with atomic_path(path) as temporary:
        save_file(tensors, temporary, metadata={"problem": json.dumps(problem.model_dump())})
    note = {"problem": problem.model_dump(), "samples": {"robust": problem.num_test}}
    note["samples"]["biased"] = problem.num_test
    write_json(out / "toy.json", {**note, "sha256": sha256_file(path)})


if __name__ == "__main__":
    run_step(main)
