"""White-box attacks in the L-infinity norm: FGSM (one step) and PGD (several, random start).

The model is attacked as it is evaluated, with gradients through all of its operations except those
that a row defines without one (the metric of the elliptical rows). Images are in [0, 1], (N, Y, X)
or (N, channels, Y, X); a radius is in the same unit.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from steps.shared.runtime import InputError


def fgsm(
    model: nn.Module, images: Tensor, labels: Tensor, *, radius: float, batch_size: int
) -> Tensor:
    """Return `images + radius * sign(gradient of the loss)`, clipped to [0, 1]."""
    _check(images, radius=radius)
    pieces = zip(images.split(batch_size), labels.split(batch_size), strict=True)
    with _evaluation(model):
        return torch.cat([(x + radius * _direction(model, x, y)).clamp(0, 1) for x, y in pieces])


def pgd(
    model: nn.Module,
    images: Tensor,
    labels: Tensor,
    *,
    radius: float,
    step_size: float,
    steps: int,
    generator: Generator,
    batch_size: int,
) -> Tensor:
    """Return images found by projected gradient ascent on the loss.

    Starts at a uniform draw from the ball of `radius` around each image; after each of `steps`
    moves of `step_size` along the gradient's sign the image goes back into the ball and into
    [0, 1]. The draws do not depend on `batch_size`.
    """
    _check(images, radius=radius, step_size=step_size)
    noise = torch.empty(images.shape, dtype=images.dtype, device=generator.device)
    noise.uniform_(-radius, radius, generator=generator)
    starts = (images + noise.to(images.device)).clamp(0, 1)
    parts = (part.split(batch_size) for part in (images, labels, starts))
    found = []
    with _evaluation(model):
        for clean, target, moved in zip(*parts, strict=True):
            for _ in range(steps):
                moved = moved + step_size * _direction(model, moved, target)
                moved = (clean + (moved - clean).clamp(-radius, radius)).clamp(0, 1)
            found.append(moved)
    return torch.cat(found)


def _direction(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Return the sign of the loss's gradient in the images; parameters get none."""
    images = images.detach().requires_grad_()
    with torch.enable_grad():
        loss = F.cross_entropy(model(images), labels, reduction="sum")
    return torch.autograd.grad(loss, images)[0].sign()


def _check(images: Tensor, **sizes: float) -> None:
    if images.amin() < 0 or images.amax() > 1:
        low, high = float(images.amin()), float(images.amax())
        raise InputError(f"images from {low} to {high}: must be in [0, 1]")
    for name, value in sizes.items():
        if not 0 <= value <= 1:
            raise InputError(f"{name} = {value}: must be in [0, 1]")


@contextmanager
def _evaluation(model: nn.Module) -> Iterator[None]:
    """Put the model in evaluation mode, with constant parameters, and restore both."""
    training = model.training
    learned = [value for value in model.parameters() if value.requires_grad]
    model.eval().requires_grad_(False)
    try:
        yield
    finally:
        model.train(training)
        for value in learned:
            value.requires_grad_()
