"""Checkpoints: what is averaged, what is copied, what is refused, and that bits do not wander."""

import json
import struct
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from steps.shared import checkpoints as merging
from steps.shared.checkpoints import (
    average,
    load_model,
    merge_checkpoints,
    merged_tensors,
    save_model,
)
from steps.shared.runtime import InputError

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


@pytest.mark.parametrize("dtype", DTYPES)
def test_save_model_writes_what_safetensors_would(tmp_path, dtype):
    tensors = state(0, dtype)
    save_model(tmp_path / "ours", tensors)
    save_file(tensors, tmp_path / "theirs.safetensors", metadata={"format": "pt"})
    ours = (tmp_path / "ours" / "model.safetensors").read_bytes()
    assert ours == (tmp_path / "theirs.safetensors").read_bytes()
    for name, tensor in load_model(tmp_path / "ours").items():
        assert tensor.dtype == tensors[name].dtype
        assert torch.equal(tensor, tensors[name])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("accumulate", ["float32", "float64"])
def test_merge_is_the_rounded_average(tmp_path, dtype, accumulate):
    """Within half a unit in the last place of the dtype, plus what summing in `accumulate` costs.

    16 products of size |c x| each err by at most 16 units of 2^-24 (float32) or 2^-53 (float64).
    """
    states = [state(i, dtype) for i in range(16)]
    (weights,) = random_weights(1, 16)
    merge_checkpoints(
        write(tmp_path, states), weights, [tmp_path / "out"], accumulate=accumulate, threads=1
    )
    merged = load_model(tmp_path / "out")
    double = "float64" in (accumulate, str(dtype).removeprefix("torch."))
    for name in ("embed", "norm", "scale"):
        terms = [c * s[name].double() for c, s in zip(weights, states, strict=True)]
        truth, size = sum(terms), sum(t.abs() for t in terms)
        bound = truth.abs() * torch.finfo(dtype).eps / 2 + 18 * size * 2.0 ** (
            -53 if double else -24
        )
        # Halves have a smallest step below which rounding is absolute.
        bound += torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps
        assert merged[name].dtype == dtype
        assert ((merged[name].double() - truth).abs() <= bound).all(), name


def test_weights_are_not_rounded_to_bfloat16(tmp_path):
    """A third in bfloat16 is 0.334: equal checkpoints would grow by 0.2 %, a step they can show."""
    tensors = {"w": torch.linspace(1, 2, 257).bfloat16()}
    merge_checkpoints(write(tmp_path, [tensors] * 3), [[1 / 3] * 3], [tmp_path / "out"], **OPTIONS)
    assert torch.equal(load_model(tmp_path / "out")["w"], tensors["w"])


def test_integers_and_booleans_come_from_the_last(tmp_path):
    paths = write(tmp_path, [state(i) for i in range(3)])
    merge_checkpoints(paths, [[0.5, 0.25, 0.25]], [tmp_path / "out"], **OPTIONS)
    merged = load_model(tmp_path / "out")
    assert merged["count"].tolist() == [2]
    assert merged["mask"].tolist() == [True, True]


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 13),
    curves=st.integers(1, 4),
    size=st.integers(1, 3000),
    threads=st.integers(2, 5),
    dtype=st.sampled_from(DTYPES),
    block=st.sampled_from([1, 64, 1000, 65536]),
)
def test_bits_depend_on_neither_curves_nor_threads_nor_blocks(
    n, curves, size, threads, dtype, block
):
    rng = np.random.default_rng(size)
    states = [{"w": torch.from_numpy(rng.standard_normal(size)).to(dtype)} for _ in range(n)]
    weights = random_weights(curves, n)
    opened = [merging.from_tensors(str(i), s) for i, s in enumerate(states)]
    merge = merging._merge(opened, weights, "float32", None)
    together = dict(merging._in_memory(merge, threads=1))["w"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "BLOCK", block)
        split = dict(merging._in_memory(merge, threads=threads))["w"]
    for curve, tensor in enumerate(together):
        alone = average(states, weights[curve], accumulate="float32")["w"]
        assert torch.equal(tensor, alone)
        assert torch.equal(tensor, split[curve])


def test_several_outputs_in_one_pass_and_threads_give_the_same_files(tmp_path):
    generator = torch.Generator().manual_seed(0)
    states = [{"w": torch.randn(200_001, generator=generator)} for _ in range(4)]
    paths, weights = write(tmp_path, states), random_weights(3, 4)
    outs = [tmp_path / f"together{j}" for j in range(3)]
    merge_checkpoints(paths, weights, outs, accumulate="float32", threads=2)
    for j, out in enumerate(outs):
        merge_checkpoints(paths, weights[j], [tmp_path / f"alone{j}"], **OPTIONS)
        alone = (tmp_path / f"alone{j}" / "model.safetensors").read_bytes()
        assert (out / "model.safetensors").read_bytes() == alone
    for (name, tensors), j in zip(
        merged_tensors(paths, weights, accumulate="float32", threads=2), range(1), strict=True
    ):
        assert torch.equal(tensors[j], load_file(outs[j] / "model.safetensors")[name])


def test_sharded_like_the_last_with_side_files(tmp_path):
    states = [state(i) for i in range(2)]
    (first,) = write(tmp_path, states[:1])
    files = {
        "model-00001-of-00002.safetensors": ["embed", "count", "empty"],
        "model-00002-of-00002.safetensors": ["norm", "scale", "mask"],
    }
    shard(tmp_path / "last", states[1], files)
    (tmp_path / "last" / "config.json").write_text('{"dtype": "float32"}')
    (tmp_path / "last" / "optimizer.pt").write_bytes(b"not copied")
    out = tmp_path / "out"
    merge_checkpoints([first, tmp_path / "last"], [[0.25, 0.75]], [out], **OPTIONS)
    assert {file.name for file in out.iterdir()} == {
        *files, "config.json", "model.safetensors.index.json",
    }  # fmt: skip
    index = json.loads((out / "model.safetensors.index.json").read_text())
    assert index["weight_map"] == {name: file for file, names in files.items() for name in names}
    assert index["metadata"]["total_size"] == 4 * (13 * 7 + 7 + 1) + 8 + 2
    expected = average(states, [0.25, 0.75], accumulate="float32")
    for name, tensor in load_model(out).items():
        assert torch.equal(tensor, expected[name])
    single = tmp_path / "one.safetensors"
    merge_checkpoints(
        [first, tmp_path / "last"], [[0.25, 0.75]], [single],
        accumulate="float32", save_dtype="bfloat16", threads=1,
    )  # fmt: skip
    assert load_file(single)["embed"].dtype == torch.bfloat16
    assert load_file(single)["count"].dtype == torch.int64


def test_save_dtype_reaches_the_config(tmp_path):
    paths = write(tmp_path, [state(0)])
    (paths[0] / "config.json").write_text('{"dtype": "float32", "width": 7}')
    merge_checkpoints(
        paths, [[1.0]], [tmp_path / "out"], accumulate="float32", save_dtype="float16", threads=1
    )
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert config == {"dtype": "float16", "width": 7}


def test_replacing_a_sharded_output_removes_its_stale_shards(tmp_path):
    out = tmp_path / "out"
    shard(out, state(7), {"model-00001-of-00001.safetensors": list(state(7))})
    (out / "notes.md").write_text("mine")
    paths = write(tmp_path, [state(0), state(2)])
    merge_checkpoints(paths, [[0.0, 1.0]], [out], **OPTIONS)
    assert {file.name for file in out.iterdir()} == {"model.safetensors", "notes.md"}
    assert torch.equal(load_model(out)["embed"], state(2)["embed"])


def test_tensor_after_an_odd_header_is_read(tmp_path):
    header = b'{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}} '
    assert len(header) % 4
    content = struct.pack("<Q", len(header)) + header + struct.pack("<2f", 1.5, -2.0)
    (tmp_path / "odd.safetensors").write_bytes(content)
    out = tmp_path / "out.safetensors"
    merge_checkpoints([tmp_path / "odd.safetensors"], [1.0], [out], **OPTIONS)
    assert load_file(out)["w"].tolist() == [1.5, -2.0]


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


def test_weights_that_do_not_sum_to_one_warn(tmp_path):
    states = [state(0)]
    with pytest.warns(UserWarning, match="sum to 1"):
        average(states, [2.0], accumulate="float32")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        average(states, [1.0], accumulate="float32")


def test_transformers_llama_tied_and_reloaded(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=31, hidden_size=8, intermediate_size=16, num_hidden_layers=2,
        num_attention_heads=2, num_key_value_heads=1, tie_word_embeddings=True,
    )  # fmt: skip
    paths, models = [tmp_path / "a", tmp_path / "b"], []
    for seed, path in enumerate(paths):
        torch.manual_seed(seed)
        models.append(LlamaForCausalLM(config))
        models[-1].save_pretrained(path, max_shard_size="4KB")
    assert (paths[0] / "model.safetensors.index.json").exists()
    merge_checkpoints(paths, [[0.25, 0.75]], [tmp_path / "out"], **OPTIONS)
    merged = LlamaForCausalLM.from_pretrained(tmp_path / "out")
    assert merged.lm_head.weight is merged.model.embed_tokens.weight
    parts = [dict(model.named_parameters()) for model in models]
    for name, value in merged.named_parameters():
        expected = 0.25 * parts[0][name].double() + 0.75 * parts[1][name].double()
        assert (value.double() - expected).abs().max() < 1e-7, name
