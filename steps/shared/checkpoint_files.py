"""Checkpoints on disk, Hugging Face style: safetensors files mapped into memory, not copied.

A checkpoint is a folder with `model.safetensors`, or with shards and an index, or one
`.safetensors` file. Arrays are numpy's (torch is needed only to make tensors of them): bfloat16 is
held as uint16 and float16 as int16.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from steps.shared.runtime import InputError, read_json

if TYPE_CHECKING:
    import torch

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"

# Safetensors dtypes and how numpy holds their elements, in the order in which files keep tensors
# (last first, then by name). Other dtypes (float8, complex) are refused.
STORAGE = {
    "BOOL": np.dtype(np.uint8),
    "U8": np.dtype(np.uint8),
    "I8": np.dtype(np.int8),
    "I16": np.dtype(np.int16),
    "U16": np.dtype(np.uint16),
    "F16": np.dtype(np.int16),
    "BF16": np.dtype(np.uint16),
    "I32": np.dtype(np.int32),
    "U32": np.dtype(np.uint32),
    "F32": np.dtype(np.float32),
    "F64": np.dtype(np.float64),
    "I64": np.dtype(np.int64),
    "U64": np.dtype(np.uint64),
}
FLOATS = ("F16", "BF16", "F32", "F64")
SIDE_FILES = (".json", ".txt", ".model", ".jinja")  # configuration and tokenizer
TORCH_NAMES = {
    "BOOL": "bool",
    "BF16": "bfloat16",
    **{f"F{bits}": f"float{bits}" for bits in (16, 32, 64)},
    **{f"I{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"U{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}


class Spec(NamedTuple):
    """What a file says of a tensor: its safetensors dtype, its shape, the file it belongs to."""

    dtype: str
    shape: tuple[int, ...]
    file: str

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def num_bytes(self) -> int:
        """Bytes on disk."""
        return self.size * STORAGE[self.dtype].itemsize


@dataclass(frozen=True)
class Checkpoint:
    """An opened checkpoint: `specs` and flat, read-only, mapped `data` (as `STORAGE`) by name."""

    path: Path
    specs: dict[str, Spec]
    data: dict[str, np.ndarray]


def open_checkpoint(path: str | Path) -> Checkpoint:
    """Map a checkpoint folder or `.safetensors` file; a damaged one is an InputError."""
    path = Path(path)
    if path.is_file():
        files = {path.name: None}
    elif (path / WEIGHTS).is_file():
        files = {WEIGHTS: None}
    elif (path / INDEX).is_file():
        files = _shards(path / INDEX)
    else:
        raise InputError(f"{path}: no checkpoint here (allowed: {WEIGHTS}, {INDEX}, a file)")
    specs: dict[str, Spec] = {}
    data: dict[str, np.ndarray] = {}
    for name, wanted in files.items():
        shard_specs, shard_data = _map_file(path if path.is_file() else path / name)
        for tensor in shard_specs if wanted is None else wanted:
            if tensor not in shard_specs:
                raise InputError(
                    f"{path}: tensor {tensor} is missing from {name}, where {INDEX} puts it"
                )
            specs[tensor], data[tensor] = shard_specs[tensor], shard_data[tensor]
    return Checkpoint(path, specs, data)


def _shards(index: Path) -> dict[str, list[str]]:
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise InputError(f"{index}: no weight_map of tensor names to files")
    shards: dict[str, list[str]] = {}
    for tensor, name in weight_map.items():
        shards.setdefault(name, []).append(tensor)
    return shards


def _map_file(path: Path) -> tuple[dict[str, Spec], dict[str, np.ndarray]]:
    try:
        raw = np.memmap(path, mode="r", dtype=np.uint8).view(np.ndarray)
        start = 8 + int(raw[:8].view("<u8")[0])
        header = json.loads(raw[8:start].tobytes())
        entries = {name: _entry(path, name, header[name]) for name in header if name[:2] != "__"}
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: not a readable safetensors file ({error})") from None
    end = start + max((end for _, _, end in entries.values()), default=0)
    if end != raw.size:
        raise InputError(f"{path}: truncated or damaged: {raw.size} bytes, its header says {end}")
    specs = {name: spec for name, (spec, _, _) in entries.items()}
    data = {
        # An odd header (legal, rare) leaves tensors unaligned: those are copied.
        name: np.require(raw[start + a : start + b].view(STORAGE[spec.dtype]), requirements="A")
        for name, (spec, a, b) in entries.items()
    }
    return specs, data


def _entry(path: Path, name: str, entry: Mapping[str, Any]) -> tuple[Spec, int, int]:
    start, end = entry["data_offsets"]
    if entry["dtype"] not in STORAGE:
        allowed = ", ".join(STORAGE)
        raise InputError(f"{path}: tensor {name} has dtype {entry['dtype']} (allowed: {allowed})")
    spec = Spec(entry["dtype"], tuple(entry["shape"]), path.name)
    if start < 0 or end - start != spec.num_bytes:
        raise InputError(f"{path}: tensor {name} has {end - start} bytes, not {spec.num_bytes}")
    return spec, start, end


def to_tensor(values: np.ndarray, spec: Spec) -> "torch.Tensor":
    """Return flat stored values (not copied) as the tensor that `spec` describes."""
    import torch

    return (
        torch.from_numpy(values).view(getattr(torch, TORCH_NAMES[spec.dtype])).reshape(spec.shape)
    )


def from_tensors(path: str, tensors: "Mapping[str, torch.Tensor]") -> Checkpoint:
    """Return tensors in memory as a checkpoint; `path` names it in messages."""
    import torch

    codes = {getattr(torch, name): code for code, name in TORCH_NAMES.items()}
    specs, data = {}, {}
    for name, tensor in tensors.items():
        if tensor.dtype not in codes:
            raise InputError(f"{path}: tensor {name} has dtype {tensor.dtype}")
        specs[name] = Spec(codes[tensor.dtype], tuple(tensor.shape), WEIGHTS)
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        data[name] = flat.view(torch.uint8).numpy().view(STORAGE[specs[name].dtype])
    return Checkpoint(Path(path), specs, data)


def side_files(path: Path) -> dict[str, bytes]:
    """Return a folder's small files by name."""
    if path.is_file():
        return {}
    files = [file for file in sorted(path.iterdir()) if file.suffix in SIDE_FILES]
    return {file.name: file.read_bytes() for file in files if file.name != INDEX}
