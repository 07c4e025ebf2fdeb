"""N2L's data: digits and glyphs, emoji, frozen towers, the paper scale's loading path, the plan."""

import json
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from job_helpers import changed
from n2l_runs import learnt, trained
from PIL import Image
from torch import nn

from steps.n2l import digits_data, emoji_data, hub_data, prepare, report
from steps.n2l.data_config import Hub
from steps.n2l.plan import FIGURES, Files
from steps.shared.config import validate
from steps.shared.config_files import load
from steps.shared.runtime import InputError, write_json

ROOT = Path(__file__).resolve().parents[3]


# digits
# ------
def test_glyphs_fill_the_box_of_a_digit_and_are_drawn_in_turn():
    found = list(digits_data.glyphs(40))
    assert [label for _, label in found] == [index % 34 for index in range(40)]
    again = [image for image, _ in digits_data.glyphs(40)]
    assert all((image == other).all() for (image, _), other in zip(found, again, strict=True))
    for image, _ in found:
        rows, columns = (np.flatnonzero(image.any(axis)) for axis in (1, 0))
        assert max(np.ptp(rows), np.ptp(columns)) + 1 in (19, 20)  # a faint edge may round to 0
    assert (found[0][0] != found[34][0]).any()  # another face


# emoji
# -----
def test_names_are_those_of_both_vendors_without_selectors(tmp_path):
    entry = {
        **{"category": "Foods", "name": "GREEN APPLE", "short_name": "apple", "sort_order": 2},
        **{"unified": "1F34F-FE0F", "sheet_x": 3, "sheet_y": 1},
        **{"has_img_twitter": True, "has_img_emojione": True},
    }
    others = [
        {**entry, "name": None, "short_name": "a_dog", "category": "Nature", "sort_order": 9},
        {**entry, "name": "FLAG", "category": "Flags"},
        {**entry, "name": "LATE", "has_img_twitter": False},
    ]
    write_json(tmp_path / "emoji.json", [entry, *others])
    found = emoji_data.read_names(tmp_path / "emoji.json")
    assert [name.name for name in found] == ["a dog", "green apple"]
    assert found[1] == ("green apple", "\U0001f34f", 3, 1)


def test_a_rendering_shows_the_artwork_and_changes_with_every_draw():
    red = Image.new("RGBA", (64, 64), (255, 0, 0, 255))
    one, two = (list(emoji_data.renderings([[red]], 2, 96, "test")) for _ in range(2))
    assert all((a == b).all() for a, b in zip(one, two, strict=True))
    assert one[0].shape == (96, 96, 3) and (one[0] != one[1]).any()
    sheet = Image.new("RGBA", (256, 256))
    sheet.paste(red, (64, 128))
    cut = emoji_data.cut(sheet, emoji_data.Name("x", "x", column=1, row=2))
    assert np.asarray(cut).min(axis=(0, 1)).tolist() == [255, 0, 0, 255]


# the paper scale
# ---------------
class TinyClip(nn.Module):
    """Stands in for an open_clip model: embeds mean colours, and names by their first letter."""

    logit_scale = torch.tensor(2.0)

    def encode_image(self, images):
        return images.mean((2, 3)) - 0.5

    def encode_text(self, tokens):
        return nn.functional.one_hot(tokens, 3).double()


def pretend_open_clip(monkeypatch) -> None:
    fake = types.ModuleType("open_clip")

    def to_tensor(image):
        return torch.from_numpy(np.array(image.resize((8, 8)))).permute(2, 0, 1) / 255.0

    def create(name, pretrained):
        return TinyClip(), None, to_tensor

    order = {"r": 0, "g": 1, "b": 2}
    fake.create_model_and_transforms = create
    fake.get_tokenizer = lambda name: (
        lambda texts: torch.tensor([order[text.removeprefix("a photo of a ")[0]] for text in texts])
    )
    monkeypatch.setitem(sys.modules, "open_clip", fake)


def hub_config(name: Path) -> dict:
    return {
        **{"kind": "hub", "name": str(name), "subset": "", "train_split": "train"},
        **{"test_split": "test", "label": "label", "model": "ViT-B-16"},
        "pretrained": "laion400m_e32",
        **{"template": "a photo of a {}.", "batch_size": 4},
    }


def test_the_paper_scales_path_from_a_folder_of_images_to_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for split, count in (("train", 6), ("test", 3)):
        for place, name in enumerate(("red_one", "green", "blue")):
            folder = tmp_path / "images" / split / name
            folder.mkdir(parents=True)
            for index in range(count):
                pixels = rng.integers(0, 80, (9, 9, 3), dtype=np.uint8)
                pixels[..., place] += 150
                Image.fromarray(pixels).save(folder / f"{index}.png")
    pretend_open_clip(monkeypatch)
    config = json.dumps({"aircraft": hub_config(tmp_path / "images")})
    prepare.main(["--row", "aircraft", "--config", config, "--out", "prepare"])
    trained("clip", data="prepare/aircraft.json")
    protocols = {"aircraft": {"b0": {"first": 1, "step": 1}}}
    runs = learnt("clip", "out", dataset="aircraft", protocols=protocols, ridges=[1.0])
    lines = [line.split(",") for line in runs.read_text().splitlines()]
    last = {
        line[3]: float(line[7])
        for line in lines
        if line[:3] == ["aircraft"] * 2 + ["b0"] and line[4] == "last"
    }
    assert last["zero_shot"] == last["n2l"] == 100
    flags = ["--rows", "aircraft", "--runs", str(runs)]
    flags += ["--learned", "out/merge/labels.safetensors"]
    flags += ["--claims", str(ROOT / "steps/n2l/claims.yaml"), "--scale", "paper"]
    flags += ["--tables", str(ROOT / "steps/n2l/tables_paper.yaml"), "--out", "report"]
    report.main(flags)
    assert "Aircraft, CLIP ViT-B/16" in Path("report/table.md").read_text()
    assert len(list(Path("report/figures").glob("*.svg"))) == len(FIGURES)


def in_memory(monkeypatch, *names: str) -> None:
    """Let `datasets` load two images whose labels have these names in train, test, ..."""
    import datasets

    parts = dict(zip(("train", "test"), names, strict=True))

    def loaded(name, subset, split):
        labels = {"coarse": ["a", "b"], "fine": parts[split].split()}
        kinds = {key: datasets.ClassLabel(names=found) for key, found in labels.items()}
        images = [np.zeros((4, 4, 3), np.uint8)] * 2
        return datasets.Dataset.from_dict(
            {"image": images, "coarse": [0, 1], "fine": [1, 0]},
            features=datasets.Features({"image": datasets.Image(), **kinds}),
        )

    monkeypatch.setattr("datasets.load_dataset", loaded)


def test_the_label_column_is_the_one_named_and_both_splits_have_its_classes(monkeypatch):
    pretend_open_clip(monkeypatch)
    in_memory(monkeypatch, "001.red_kite 002.gull", "001.red_kite 002.gull")
    note, arrays = hub_data.prepare(Hub(**{**hub_config(Path("x")), "label": "fine"}), [])
    assert note["classes"] == ["red kite", "gull"] and arrays["labels"].tolist() == [1, 0]
    with pytest.raises(InputError, match="named variant; has image, coarse, fine"):
        hub_data.prepare(Hub(**{**hub_config(Path("x")), "label": "variant"}), [])
    in_memory(monkeypatch, "red gull", "gull red")
    with pytest.raises(InputError, match="2 classes in split train, 2 in test: must be the same"):
        hub_data.prepare(Hub(**{**hub_config(Path("x")), "label": "fine"}), [])


def test_without_open_clip_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "open_clip", None)
    with pytest.raises(InputError, match="pip install open-clip-torch"):
        hub_data.prepare(Hub(**hub_config(Path("x"))), [])


# the plan and the configuration
# ------------------------------
def test_the_paper_scale_has_its_six_data_sets_and_no_assets():
    paper, mini = Files(load("paper")), Files(load("mini"))
    validate(load("paper"))
    assert paper.rows == ["aircraft", "cars", "cifar100", "cub", "objectnet", "ucf"]
    assert {paper.kind(row) for row in paper.rows} == {"hub"}
    assert not any(paper.assets(row) for row in paper.rows)
    assert mini.assets("digits") == ["mnist_5k"]
    assert len(mini.of_all(mini.runs)) == 12


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("rows", ["digits", "cats"], "cats"),
        ("merge.protocols.digits.b0", {"first": 3, "step": 2}, "must divide the 10 classes"),
        ("merge.protocols.emoji.bhalf", {"first": 60, "step": 7}, "must divide the 120 classes"),
        ("merge.protocols", {"digits": {"b0": {"first": 2, "step": 2}}}, "must have emoji"),
        ("prepare.emoji", hub_config(Path("x")), "must be of the hub, all of them or none"),
        ("merge.theta", "best", "theta"),
        ("merge.ridge", 0.0, "greater than 0"),
        ("prepare.digits.kind", "photos", "prepare.digits"),
        ("train.rows.digits.log_every", 3, "must be a multiple of log_every = 3"),
    ],
)
def test_what_does_not_fit_is_named(path, value, told):
    with pytest.raises(InputError) as error:
        validate(changed("n2l", path, value))
    lines = str(error.value).splitlines()
    assert any(told in line and line.startswith("params.yaml: papers.n2l.") for line in lines)
