"""Common corruptions of grey images in [0, 1], each at three severities, in the manner of MNIST-C.

The scales fit strokes of 2 to 3 pixels in a 28 x 28 image: severity 1 leaves a digit plain to a
reader, severity 3 leaves it legible with effort. Shapes: N images, Y rows, X columns.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor

from steps.quest.images_config import DIGIT_CORRUPTIONS, DIGIT_SEVERITIES
from steps.shared.runtime import InputError, torch_generator


class Corruption(NamedTuple):
    """`apply(images, amount, generator)`, and the amount at each severity."""

    apply: Callable[[Tensor, float, Generator], Tensor]
    amounts: tuple[float, float, float]


def corrupt(images_NYX: Tensor, name: str, *, severity: int, seed: int) -> Tensor:
    """Return corrupted images in [0, 1], on the CPU; name of CORRUPTIONS, severity 1, 2 or 3.

    What is random comes from the stream (quest, corruption <name>, seed): the severities of one
    corruption share their draws.
    """
    if name not in DIGIT_CORRUPTIONS:
        raise InputError(f"corruption {name!r}: must be one of {', '.join(DIGIT_CORRUPTIONS)}")
    if severity not in DIGIT_SEVERITIES:
        raise InputError(f"severity = {severity}: must be 1, 2 or 3")
    corruption = CORRUPTIONS[name]
    generator = torch_generator("quest", f"corruption {name}", seed)
    amount = corruption.amounts[severity - 1]
    return corruption.apply(images_NYX, amount, generator).clamp(0, 1)


def gaussian_noise(images_NYX: Tensor, deviation: float, generator: Generator) -> Tensor:
    """Add N(0, deviation^2) to every pixel."""
    return images_NYX + deviation * torch.randn(images_NYX.shape, generator=generator)


def impulse_noise(images_NYX: Tensor, share: float, generator: Generator) -> Tensor:
    """Set a share of the pixels to 0 or 1, either with probability one half."""
    hit = torch.rand(images_NYX.shape, generator=generator) < share
    value = (torch.rand(images_NYX.shape, generator=generator) < 0.5).to(images_NYX.dtype)
    return torch.where(hit, value, images_NYX)


def blur(images_NYX: Tensor, deviation: float, _: Generator) -> Tensor:
    """Convolve with a Gaussian of this standard deviation in pixels, cut at three of them."""
    radius = math.ceil(3 * deviation)
    offsets = torch.arange(-radius, radius + 1, dtype=images_NYX.dtype)
    kernel = torch.exp(-(offsets**2) / (2 * deviation**2))
    kernel = kernel / kernel.sum()
    blurred = F.conv2d(images_NYX[:, None], kernel[None, None, :, None], padding=(radius, 0))
    return F.conv2d(blurred, kernel[None, None, None, :], padding=(0, radius))[:, 0]


def contrast(images_NYX: Tensor, factor: float, _: Generator) -> Tensor:
    """Pull every pixel towards the middle grey, to `factor` of its distance."""
    return 0.5 + factor * (images_NYX - 0.5)


def occlusion(images_NYX: Tensor, side: float, generator: Generator) -> Tensor:
    """Cover a square of `side` pixels, wholly inside the image, with middle grey."""
    count, height, width = images_NYX.shape
    corner = torch.rand(count, 2, 1, generator=generator)
    covered = []
    for axis, size in enumerate((height, width)):
        begin = (corner[:, axis] * (size - side + 1)).floor()
        pixels = torch.arange(size)
        covered.append((pixels >= begin) & (pixels < begin + side))
    inside_NYX = covered[0][:, :, None] & covered[1][:, None, :]
    return images_NYX.masked_fill(inside_NYX, 0.5)


def rotation(images_NYX: Tensor, degrees: float, generator: Generator) -> Tensor:
    """Rotate about the centre by this angle, to either side, with bilinear interpolation."""
    count = len(images_NYX)
    side = 2.0 * (torch.rand(count, generator=generator) < 0.5) - 1
    angle = side * math.radians(degrees)
    cos, sin, zero = angle.cos(), angle.sin(), torch.zeros(count)
    matrix = torch.stack([cos, -sin, zero, sin, cos, zero], dim=-1).view(count, 2, 3)
    images = images_NYX[:, None]
    grid = F.affine_grid(matrix, list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, align_corners=False)[:, 0]


def pixelate(images_NYX: Tensor, size: float, _: Generator) -> Tensor:
    """Average over a grid of `size` x `size` cells and show each as one grey."""
    small = F.interpolate(images_NYX[:, None], size=(int(size), int(size)), mode="area")
    return F.interpolate(small, size=images_NYX.shape[1:], mode="nearest")[:, 0]


CORRUPTIONS = {
    # tenths of the full contrast, so that severity 3 puts a faint stroke within the noise
    "gaussian_noise": Corruption(gaussian_noise, (0.15, 0.3, 0.45)),
    # at 0.3 half of a stroke's hits, one pixel in seven, are holes in it
    "impulse_noise": Corruption(impulse_noise, (0.1, 0.2, 0.3)),
    # below, at and above half the width of a stroke
    "blur": Corruption(blur, (0.75, 1.25, 1.75)),
    # ink and background move together until they are 0.35 apart, on grey instead of on black
    "contrast": Corruption(contrast, (0.7, 0.5, 0.35)),
    # the area of one patch of 7 x 7, then about twice and three times as much
    "occlusion": Corruption(occlusion, (7, 10, 12)),
    # from the slant of handwriting on; far from the half turn that makes a 6 of a 9
    "rotation": Corruption(rotation, (15, 25, 35)),
    # cells of 2, 2.8 and 4 pixels: a stroke's width and more
    "pixelate": Corruption(pixelate, (14, 10, 7)),
}
