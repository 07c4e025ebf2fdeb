"""Small checkpoints for the tests of merging."""

import json

import numpy as np
import torch
from safetensors.torch import save_file

from steps.shared.checkpoints import save_model

DTYPES = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
OPTIONS = {"accumulate": "float32", "threads": 1}


def state(seed: int, dtype: torch.dtype = torch.float32) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shapes = {"embed": (13, 7), "norm": (7,), "scale": (), "empty": (0, 3)}
    tensors = {
        name: torch.randn(shape, generator=generator).to(dtype) for name, shape in shapes.items()
    }
    return tensors | {"count": torch.tensor([seed]), "mask": torch.tensor([seed % 2 == 0, True])}


def write(folder, states) -> list:
    paths = [folder / f"step{i}" for i in range(len(states))]
    for path, tensors in zip(paths, states, strict=True):
        save_model(path, tensors)
    return paths


def shard(path, tensors: dict[str, torch.Tensor], files: dict[str, list[str]]) -> None:
    path.mkdir()
    for file, names in files.items():
        save_file({name: tensors[name] for name in names}, path / file, metadata={"format": "pt"})
    weight_map = {name: file for file, names in files.items() for name in names}
    index = {"metadata": {"total_size": 1}, "weight_map": weight_map}
    (path / "model.safetensors.index.json").write_text(json.dumps(index))


def random_weights(curves: int, n: int, seed: int = 0) -> np.ndarray:
    weights = np.random.default_rng(seed).random((curves, n))
    return weights / weights.sum(axis=1, keepdims=True)
