"""Checkpoints: what is averaged, what is copied, and that bits do not wander."""

import json
import struct
import warnings

import numpy as np
import pytest
import torch
from checkpoint_states import DTYPES, OPTIONS, random_weights, shard, state, write
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from steps.shared import checkpoint_memory
from steps.shared import checkpoints as merging
from steps.shared.checkpoint_memory import TensorMemory
from steps.shared.checkpoints import (
    load_model,
    merge_checkpoints,
    merged_tensors,
    save_model,
)


def average(states: list[dict[str, torch.Tensor]], weights) -> dict[str, torch.Tensor]:
    """Return the average of state dicts in memory, summed in float32."""
    opened = [merging.from_tensors(str(i), own) for i, own in enumerate(states)]
    merge = merging._merge(opened, np.reshape(weights, (1, -1)), "float32")
    return {name: own for name, (own,) in merging._in_memory(merge, 1, TensorMemory())}


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


@settings(max_examples=25)
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
    merge = merging._merge(opened, weights, "float32")
    together = dict(merging._in_memory(merge, 1, TensorMemory()))["w"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "BLOCK", block)
        split = dict(merging._in_memory(merge, threads, TensorMemory()))["w"]
    for curve, tensor in enumerate(together):
        alone = average(states, weights[curve])["w"]
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
    expected = average(states, [0.25, 0.75])
    for name, tensor in load_model(out).items():
        assert torch.equal(tensor, expected[name])
    single = tmp_path / "one.safetensors"
    merge_checkpoints(
        [first, tmp_path / "last"], [[0.25, 0.75]], [single], accumulate="float32", threads=1
    )
    for name, tensor in load_file(single).items():
        assert torch.equal(tensor, expected[name])


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


def test_weights_that_do_not_sum_to_one_warn(tmp_path):
    states = [state(0)]
    with pytest.warns(UserWarning, match="sum to 1"):
        average(states, [2.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        average(states, [1.0])


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


@pytest.mark.parametrize("block", [1, 4096, 2**21, 2**24])
def test_kept_tensors_keep_their_values_while_others_are_dropped(tmp_path, monkeypatch, block):
    """Dropped memory is used again; what the caller holds, even a view of it, is not."""
    monkeypatch.setattr(checkpoint_memory, "BLOCK", block)
    states = [
        {f"w{i:02d}": torch.full((1 + 37 * i,), float(i + step)) for i in range(40)}
        for step in range(2)
    ]
    pairs = merged_tensors(
        write(tmp_path, states), [[0.5, 0.5], [0.0, 1.0]], accumulate="float32", threads=1
    )
    kept = {name: (pair[0], pair[1][-1:]) for name, pair in pairs if int(name[1:]) % 3 == 0}
    for name, (whole, last) in kept.items():
        assert (whole == int(name[1:]) + 0.5).all()
        assert last.tolist() == [int(name[1:]) + 1]


def test_dropped_memory_is_used_again(monkeypatch):
    monkeypatch.setattr(checkpoint_memory, "BLOCK", 4096)
    memory = TensorMemory()
    used = {memory.take(1000, np.dtype(np.float32)).ctypes.data for _ in range(50)}
    assert len(used) == 1
    kept = [memory.take(1000, np.dtype(np.float32)) for _ in range(50)]
    assert len({array.ctypes.data for array in kept}) == 50


def test_a_merge_may_use_the_memory_of_an_earlier_one_but_not_what_is_held(tmp_path):
    paths = write(tmp_path, [{"w": torch.full((5000,), float(step))} for step in range(2)])
    memory = TensorMemory()

    def merged(last: float) -> torch.Tensor:
        options = {"accumulate": "float32", "threads": 1, "memory": memory}
        return dict(merged_tensors(paths, [[1 - last, last]], **options))["w"][0]

    places = {merged(0.5).data_ptr() for _ in range(3)}
    assert len(places) == 1
    held, other = merged(0.25), merged(0.75)
    assert (held == 0.25).all() and (other == 0.75).all()
