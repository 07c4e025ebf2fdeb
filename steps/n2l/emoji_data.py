"""Emoji: artwork of two vendors to learn and test, of a third to train the CLIP, as noisy images.

The files are an emoji.json, two sheets of 64 x 64 pixels (Twitter, EmojiOne), a colour font (Noto),
the weights of EfficientNet-Lite0 and a folder of MiniLM. Shapes: N images, F features of a frozen
tower.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from steps.n2l.data_config import Emoji
from steps.shared.runtime import InputError, read_json, reading, remedy, stream

CATEGORIES = ("Nature", "Foods", "Places", "Activity", "Objects")
CELL = 64  # pixels of an artwork in a sheet
STRIKE = 109  # the only size of the bitmaps in Noto's font
VENDORS = ("twitter", "emojione")


class Name(NamedTuple):
    """An emoji that both vendors drew."""

    name: str
    text: str  # its characters
    column: int  # of the sheets
    row: int


def prepare(config: Emoji, assets: list[Path]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the manifest and the features that training reads, of images and of names."""
    from steps.n2l.frozen_towers import image_features, name_features

    files = {path.name: path for path in assets}
    names = read_names(_file(files, "emoji.json"))
    if config.num_classes > len(names):
        raise InputError(f"num_classes = {config.num_classes}: must be at most {len(names)} names")
    chosen = sorted(stream("n2l", "classes", 0).permutation(len(names))[: config.num_classes])
    source = sorted({*chosen, *range(min(config.source_names, len(names)))})
    sheets = [sheet(_file(files, f"sheet_{vendor}_64.png")) for vendor in VENDORS]
    weights = next((path for path in assets if path.suffix == ".pth"), None)
    if weights is None:
        raise InputError("--assets: none ends in .pth, the weights of EfficientNet-Lite0")
    artwork = [[cut(image, names[place]) for image in sheets] for place in chosen]
    font_file = _file(files, "NotoColorEmoji.ttf")
    with reading(font_file, "a font with pictures"):
        font = ImageFont.truetype(str(font_file), STRIKE)
    noto = [[glyph(font, names[place])] for place in source]
    arrays = {}
    jobs = (("images", artwork, config.renderings), ("source", noto, config.source_renderings))
    for key, groups, count in jobs:
        labels = np.repeat(np.arange(len(groups)), count * len(groups[0]))
        drawn = renderings(groups, count, config.image_size, key)
        arrays[key] = image_features(drawn, len(labels), weights, f"n2l {key} of emoji")
        arrays["labels" if key == "images" else "source_labels"] = labels
    if config.num_test >= len(arrays["labels"]):
        raise InputError(f"num_test = {config.num_test}: must be below {len(arrays['labels'])}")
    texts = [names[place].name for place in source]
    arrays["names"] = name_features(
        [f"a picture of a {text}" for text in texts], _file(files, "model.safetensors").parent
    )
    manifest = {
        "kind": "emoji",
        "classes": [names[place].name for place in chosen],
        "names": texts,
        "num_test": config.num_test,
        "vendors": list(VENDORS),
    }
    return manifest, arrays


def _file(files: dict[str, Path], name: str) -> Path:
    if name not in files:
        raise InputError(f"--assets: {name} is missing")
    return files[name]


def read_names(path: Path) -> list[Name]:
    """Return what both vendors drew, of the categories, in their order."""
    found = []
    with reading(path, "emoji-datasource's list"):
        for entry in read_json(path):
            if entry["category"] in CATEGORIES and all(entry[f"has_img_{v}"] for v in VENDORS):
                # variation selectors have no picture of their own
                points = [int(p, 16) for p in entry["unified"].split("-") if p != "FE0F"]
                name = (entry["name"] or entry["short_name"].replace("_", " ")).lower()
                place = (CATEGORIES.index(entry["category"]), entry["sort_order"])
                text = "".join(map(chr, points))
                found.append((place, Name(name, text, entry["sheet_x"], entry["sheet_y"])))
    if len({name.name for _, name in found}) < max(1, len(found)):
        problem = f"no emoji of {', '.join(VENDORS)}, or two of one name"
        raise InputError(f"{path}: {problem}{remedy(path)}")
    return [name for _, name in sorted(found)]


def sheet(path: Path) -> Image.Image:
    """Return a sheet of artwork with its transparency."""
    with reading(path, "an image"):
        return Image.open(path).convert("RGBA")


def cut(image: Image.Image, name: Name) -> Image.Image:
    """Return one artwork of a sheet."""
    left, top = name.column * CELL, name.row * CELL
    return image.crop((left, top, left + CELL, top + CELL))


def glyph(font: ImageFont.FreeTypeFont, name: Name) -> Image.Image:
    """Return the picture of an emoji in a colour font."""
    image = Image.new("RGBA", (136, 136))
    ImageDraw.Draw(image).text((0, 4), name.text, font=font, embedded_color=True)
    if image.getbbox() is None:
        raise InputError(f"the font has no picture of {name.name}")
    return image


def renderings(
    groups: list[list[Image.Image]], count: int, size: int, purpose: str
) -> Iterator[np.ndarray]:
    """Yield `count` noisy images (Y, X, 3) of every artwork, group by group."""
    rng = stream("n2l", f"renderings {purpose}", 0)
    for group in groups:
        for artwork in group:
            for _ in range(count):
                yield rendering(artwork, size, rng)


def rendering(artwork: Image.Image, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return an artwork on a plain ground: scaled, turned, moved, blurred, its colours changed."""
    side = round(size * rng.uniform(0.45, 0.9))
    turned = artwork.resize((side, side), Image.Resampling.BICUBIC)
    turned = turned.rotate(rng.uniform(-30, 30), Image.Resampling.BICUBIC, expand=True)
    ground = tuple(int(value) for value in rng.integers(0, 256, 3))
    image = Image.new("RGB", (size, size), ground)
    room = [size - length for length in turned.size]
    place = [int(rng.integers(min(0, free), max(0, free) + 1)) for free in room]
    image.paste(turned, place, turned)
    image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0, 1.5)))
    gain_3, noise = rng.uniform(0.6, 1.4, 3), rng.normal(0, rng.uniform(0, 20), (size, size, 1))
    changed = (np.asarray(image, dtype=np.float32) - 128) * gain_3 + 128 + noise
    return np.clip(changed, 0, 255).astype(np.uint8)
