"""Measure trained vision transformers: clean, corrupted and attacked images, logits, attention.

Shapes: N images, L layers, H heads, T tokens.
"""

import argparse
from collections.abc import Iterator
from statistics import fmean
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from steps.quest import vit
from steps.quest.attacks import fgsm, pgd
from steps.quest.images_config import ImageMeasures
from steps.quest.images_data import Chunks, ImageSet, first_images, open_images
from steps.quest.images_measure import accuracy, measure
from steps.shared import selection
from steps.shared.runs import Run, run_of, write_runs
from steps.shared.runtime import deterministic, progress, torch_device, torch_generator, write_csv

MAP = ["split", "row", "place", "value"]
SHOWN = 28  # pixels along the side of the image in the figure


class TestImages(NamedTuple):
    """What every row of a seed is measured on."""

    clean: Chunks
    corrupted: dict[tuple[str, int], Chunks]  # by corruption and severity
    attacked: tuple[Tensor, Tensor]


def run(args: argparse.Namespace, config: ImageMeasures) -> None:
    """Write the runs of one seed, and how the class token attends with and without a pattern."""
    deterministic(args.threads)
    device = torch_device(args.device)
    images = open_images(args.data, workers=args.threads - 1)
    tests = test_images(images, config, args.seed)
    runs, maps = [], []
    models = selection.read(args.selection)
    label = f"quest evaluate images seed {args.seed}"
    for row, chosen in progress(models.items(), total=len(models), label=label):
        model = vit.load(chosen.folder / "model.safetensors").to(device)
        for found in measure_row(model, tests, config, args.seed):
            runs.append({"dataset": "images", **found, "row": row})
        maps += [{**line, "row": row} for line in attention_lines(model, tests, config)]
    maps += image_lines(tests, config)
    write_runs(args.out / f"images_seed{args.seed}.csv", runs, seed=args.seed)
    write_csv(args.out / f"images_seed{args.seed}_maps.csv", MAP, maps)


def test_images(images: ImageSet, config: ImageMeasures, seed: int) -> TestImages:
    """Return the test images of a seed, corrupted ones included."""
    options = {"seed": seed, "batch_size": config.batch_size}
    clean = images.chunks("test", **options)
    corrupted = {
        (name, severity): images.corrupted(config.corrupted, name, severity=severity, **options)
        for name in config.corruptions
        for severity in config.severities
    }
    return TestImages(clean, corrupted, first_images(clean, config.num_attacked))


def measure_row(
    model: nn.Module, tests: TestImages, config: ImageMeasures, seed: int
) -> Iterator[Run]:
    """Yield the runs of one model; the paper's tables average over severities and radii."""
    found = measure(model, tests.clean)
    yield run_of("images", "clean", "accuracy", found["accuracy"])
    yield run_of("images", "clean", "max_logit", found["max_logit"])
    shares = {key: accuracy(model, chunks) for key, chunks in tests.corrupted.items()}
    yield run_of("images", "corrupted", "accuracy", fmean(shares.values()))
    for severity in config.severities:
        own = {name: shares[name, severity] for name in config.corruptions}
        yield run_of("images_corruption", "corrupted", "accuracy", fmean(own.values()), severity)
        if config.corrupted == "digits":  # the tables name these corruptions
            for name, value in own.items():
                yield run_of("images_corruption", name, "accuracy", value, severity)
    attacks = list(_attacks(model, tests.attacked, config, seed))
    for split in ("fgsm", "pgd"):
        own = [(radius, value) for name, radius, value in attacks if name == split]
        yield run_of("images", split, "accuracy", fmean(value for _, value in own))
        for radius, value in own:
            yield run_of("images_attack", split, "accuracy", value, radius)


def _attacks(
    model: nn.Module, attacked: tuple[Tensor, Tensor], config: ImageMeasures, seed: int
) -> Iterator[tuple[str, float, float]]:
    """Yield (attack, radius, accuracy in %); every row gets the same random starts."""
    device = next(model.parameters()).device
    images, labels = (part.to(device) for part in attacked)
    size = config.batch_size
    for radius in config.radii:
        moved = fgsm(model, images, labels, radius=radius, batch_size=size)
        yield "fgsm", radius, accuracy(model, _split(moved, labels, size))
        moved = pgd(
            model,
            images,
            labels,
            radius=radius,
            step_size=config.pgd_step * radius,
            steps=config.pgd_steps,
            generator=torch_generator("quest", f"attack pgd {radius:g}", seed),
            batch_size=size,
        )
        yield "pgd", radius, accuracy(model, _split(moved, labels, size))


def _split(images: Tensor, labels: Tensor, size: int) -> Chunks:
    return zip(images.split(size), labels.split(size), strict=True)


def with_pattern(images: Tensor, size: int) -> Tensor:
    """Return images with a white square of `size` pixels in the upper left corner."""
    images = images.clone()
    images[..., :size, :size] = 1.0
    return images


@torch.no_grad()
def attention_lines(
    model: nn.Module, tests: TestImages, config: ImageMeasures
) -> Iterator[dict[str, Any]]:
    """Yield the class token's attention to each patch of the first test image, by split.

    The mean over layers and heads; `pattern` is the image with a white square in a corner.
    """
    image = tests.attacked[0][:1].to(next(model.parameters()).device)
    for split, shown in (("plain", image), ("pattern", with_pattern(image, config.pattern_size))):
        maps_LBHTT = model.attention_maps(shown)
        weights_T = maps_LBHTT[:, 0, :, 0].mean(dim=(0, 1)).tolist()
        for place, value in enumerate(weights_T[1:]):
            yield {"split": split, "place": place, "value": value}


def image_lines(tests: TestImages, config: ImageMeasures) -> Iterator[dict[str, Any]]:
    """Yield the grey pixels of that image, small, as lines of the row `image`."""
    image = tests.attacked[0][:1]
    for split, shown in (("plain", image), ("pattern", with_pattern(image, config.pattern_size))):
        grey_YX = shown[0] if shown.ndim == 3 else shown[0].mean(0)
        small = F.adaptive_avg_pool2d(grey_YX[None], min(SHOWN, len(grey_YX)))
        for place, value in enumerate(small.flatten().tolist()):
            yield {"split": split, "row": "image", "place": place, "value": value}
