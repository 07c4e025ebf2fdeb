"""Files of tensors: the bytes of safetensors' own writers, and one line for a file that is odd."""

import json

import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch

from steps.shared import tensor_files
from steps.shared.runtime import InputError

ARRAYS = {"b": np.arange(6.0).reshape(2, 3), "a": np.array([1, 2], np.uint8)}


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_the_bytes_are_those_of_safetensors_and_come_back(tmp_path, kind):
    tensors = ARRAYS
    if kind == "torch":
        tensors = {name: torch.from_numpy(value) for name, value in ARRAYS.items()}
    note = {"own": json.dumps({"x": 1})}
    path = tmp_path / "new/tensors.safetensors"
    tensor_files.write(path, tensors, note)
    for library in (safetensors.numpy, safetensors.torch):
        own = ARRAYS if library is safetensors.numpy else safetensors.torch.load_file(path)
        library.save_file(own, tmp_path / "other", note)
        assert path.read_bytes() == (tmp_path / "other").read_bytes()
    found = tensor_files.read(path, "mine", names=("a", "b"), framework=kind)
    assert all(type(found[name]) is type(tensors[name]) for name in tensors)
    assert all((found[name] == tensors[name]).all() for name in tensors)
    assert tensor_files.read_note(path, "mine", "own") == {"x": 1}
    assert tensor_files.read_note(path, "mine", "own", dict.keys) == {"x"}


def test_arrays_are_written_in_c_order_whatever_they_lie_in(tmp_path):
    across = np.asfortranarray(ARRAYS["b"])
    tensor_files.write(tmp_path / "x", {"b": across, "t": ARRAYS["b"].T})
    found = tensor_files.read(tmp_path / "x", "mine", framework="numpy")
    np.testing.assert_array_equal(found["b"], across)
    np.testing.assert_array_equal(found["t"], across.T)


def test_a_file_that_is_odd_or_missing_is_refused_in_one_line(tmp_path):
    (tmp_path / "cut").write_bytes(b"no tensors")
    tensor_files.write(tmp_path / "whole", ARRAYS, {"own": "[1]"})
    (tmp_path / "short").write_bytes((tmp_path / "whole").read_bytes()[:-1])
    for framework in ("numpy", "torch"):
        for name in ("cut", "short", "absent"):
            with pytest.raises(InputError, match=f"{name}: not mine .*make it") as caught:
                tensor_files.read(tmp_path / name, "mine", framework=framework)
            assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=r"whole: not mine \(has no tensor c\)"):
        tensor_files.read(tmp_path / "whole", "mine", names=("a", "c"), framework="numpy")
    for name in ("cut", "absent"):
        with pytest.raises(InputError, match=f"{name}: not mine"):
            tensor_files.read_note(tmp_path / name, "mine", "own")
    with pytest.raises(InputError, match=r"not mine \(has no note other\); remove it"):
        tensor_files.read_note(tmp_path / "whole", "mine", "other")
    with pytest.raises(InputError, match=r"whole: not mine \(.*\)"):
        tensor_files.read_note(tmp_path / "whole", "mine", "own", lambda value: value["key"])
