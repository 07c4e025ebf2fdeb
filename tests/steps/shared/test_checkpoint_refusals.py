"""Checkpoints, weights and outputs that are refused, by name, with nothing left behind."""

import struct

import pytest
import torch
from checkpoint_states import OPTIONS, random_weights, shard, state, write
from safetensors.torch import save_file

from steps.shared.checkpoints import load_model, merge_checkpoints, merged_tensors
from steps.shared.runtime import InputError


def nan(tensors):
    return tensors | {"norm": torch.full((7,), float("nan"))}


def infinite(tensors):
    return tensors | {"embed": torch.full((13, 7), float("inf"))}


REFUSED_STATES = {
    "missing": (
        lambda t: {name: t[name] for name in t if name != "norm"}, "step1: tensor norm is missing",
    ),
    "extra": (lambda t: t | {"more": torch.ones(1)}, "step0: tensor more is missing"),
    "shape": (lambda t: t | {"norm": torch.ones(8)}, r"step1: tensor norm is F32 \[8\]"),
    "dtype": (lambda t: t | {"norm": torch.ones(7).half()}, "step1: tensor norm is F16"),
    "nan": (nan, "step1: tensor norm holds NaN"),
    "infinity": (infinite, "step1: tensor embed holds NaN or infinity"),
    "float8": (
        lambda t: t | {"norm": torch.ones(7).to(torch.float8_e4m3fn)}, "norm has dtype F8_E4M3",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED_STATES)
def test_refused_checkpoints_leave_nothing(tmp_path, case):
    change, message = REFUSED_STATES[case]
    paths = write(tmp_path, [state(i) for i in range(3)])
    save_file(change(state(1)), paths[1] / "model.safetensors")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match=message):
        outs = [tmp_path / "out", tmp_path / "out2"]
        merge_checkpoints(paths, random_weights(2, 3), outs, **OPTIONS)
    assert sorted(tmp_path.rglob("*")) == before


def damage_truncate(path):
    path.write_bytes(path.read_bytes()[:-1])


def damage_header(path):
    content = bytearray(path.read_bytes())
    content[8] = 0
    path.write_bytes(content)


def damage_length(path):
    path.write_bytes(struct.pack("<Q", 2**63) + path.read_bytes()[8:])


def damage_empty(path):
    path.write_bytes(b"")


@pytest.mark.parametrize(
    "damage", [damage_truncate, damage_header, damage_length, damage_empty, lambda p: p.unlink()]
)
def test_damaged_or_missing_files_are_named(tmp_path, damage):
    paths = write(tmp_path, [state(i) for i in range(2)])
    damage(paths[1] / "model.safetensors")
    with pytest.raises(InputError, match="step1"):
        merge_checkpoints(paths, [[0.5, 0.5]], [tmp_path / "out"], **OPTIONS)
    assert not (tmp_path / "out").exists()


def test_missing_shard_and_tensor_missing_from_its_shard_are_named(tmp_path):
    files = {"model-1.safetensors": ["embed"], "model-2.safetensors": ["norm"]}
    shard(tmp_path / "a", state(0), files)
    (tmp_path / "a" / "model-2.safetensors").unlink()
    with pytest.raises(InputError, match=r"model-2\.safetensors"):
        load_model(tmp_path / "a")
    save_file({"scale": torch.ones(1)}, tmp_path / "a" / "model-2.safetensors")
    with pytest.raises(InputError, match=r"norm is missing from model-2\.safetensors"):
        load_model(tmp_path / "a")


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([[0.5, 0.5, 0.0]], "weights"),
        ([[0.5, float("nan")]], "finite"),
        ([[0.5, 0.5], [1.0]], "rectangle"),
        ([[0.5, 0.5]] * 2, "1 outputs for 2 rows"),
    ],
)
def test_refused_weights(tmp_path, weights, message):
    paths = write(tmp_path, [state(i) for i in range(2)])
    with pytest.raises(InputError, match=message):
        merge_checkpoints(paths, weights, [tmp_path / "out"], **OPTIONS)


def test_refused_outputs_and_options(tmp_path):
    paths = write(tmp_path, [state(i) for i in range(2)])
    half = [[0.5, 0.5]]
    with pytest.raises(InputError, match="neither an input"):
        merge_checkpoints(paths, half, [paths[0]], **OPTIONS)
    with pytest.raises(InputError, match="another output"):
        merge_checkpoints(paths, half * 2, [tmp_path / "out"] * 2, **OPTIONS)
    with pytest.raises(InputError, match="accumulate"):
        merge_checkpoints(paths, half, [tmp_path / "out"], accumulate="bfloat16", threads=1)
    with pytest.raises(InputError, match="no checkpoints"):
        merge_checkpoints([], [[]], [tmp_path / "out"], **OPTIONS)


def test_overflow_of_the_saved_dtype_is_refused(tmp_path):
    paths = write(tmp_path, [{"w": torch.tensor([60000.0]).half()}, {"w": torch.zeros(1).half()}])
    with pytest.raises(InputError, match="w: the merged values do not fit float16"):
        merge_checkpoints(paths, [[2.0, -1.0]], [tmp_path / "out"], **OPTIONS)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("position", range(7))
@pytest.mark.parametrize("at", [0, 1023, 1024, 2062])
def test_one_bad_number_anywhere_is_refused_even_at_weight_zero(tmp_path, bad, position, at):
    """7 sources are 1 + 5 + 1 in the kernel's groups; 2063 elements end in a part of a block."""
    states = [{"w": torch.ones(2063)} for _ in range(7)]
    states[position]["w"][at] = bad
    weights = random_weights(3, 7)
    weights[:, position] = 0
    weights /= weights.sum(axis=1, keepdims=True)
    paths = write(tmp_path, states)
    with pytest.raises(InputError, match=f"step{position}: tensor w holds NaN or infinity"):
        list(merged_tensors(paths, weights, accumulate="float32", threads=1))
