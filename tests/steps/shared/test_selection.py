"""selection.json: what merge writes is what evaluation reads, and odd files are refused."""

import pytest

from steps.shared import selection
from steps.shared.runtime import InputError, read_json, sha256_file


def test_what_is_written_comes_back(tmp_path):
    one, two = tmp_path / "train/a/seed0", tmp_path / "train/b/seed0"
    for folder, names in ((one, ["y.safetensors", "x.safetensors"]), (two, ["x.safetensors"])):
        folder.mkdir(parents=True)
        for name in names:
            (folder / name).write_text(f"{folder} {name}")
    merge = tmp_path / "merge/seed0"
    models = {"b": [two / "x.safetensors"], "a": [one / "y.safetensors", one / "x.safetensors"]}
    selection.write(merge, models, {"b": {"error": 0.5}})
    entry = read_json(merge / "selection.json")["b"]
    assert entry["folder"] == "../../train/b/seed0"
    assert entry["sha256"] == {"x.safetensors": sha256_file(two / "x.safetensors")}
    found = selection.read(merge / "selection.json")
    assert list(found) == ["a", "b"]
    assert [path.name for path in found["a"].files] == ["x.safetensors", "y.safetensors"]
    assert found["a"].folder.resolve() == one
    assert [found[row].notes for row in ("a", "b")] == [{}, {"error": 0.5}]


def test_a_model_that_is_missing_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"model\.safetensors: no such file, the model of row a"):
        selection.write(tmp_path, {"a": [tmp_path / "a/model.safetensors"]})
    assert not (tmp_path / "selection.json").exists()


@pytest.mark.parametrize("text", ["[]", "{}", '{"a": 1}', '{"a": {"folder": "x"}}', "{", None,
                                  '{"a": {"folder": 1, "sha256": {}}}',
                                  '{"a": {"folder": "x", "sha256": "0"}}'])  # fmt: skip
def test_an_odd_or_missing_file_is_refused_in_one_line(tmp_path, text):
    path = tmp_path / "selection.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=r"selection\.json: not a (readable|selection)") as caught:
        selection.read(path)
    assert "\n" not in str(caught.value)
