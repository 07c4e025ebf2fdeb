"""Attacks: the closed form of a linear model, the invariants of the ball, and another library."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from steps.quest.attacks import fgsm, pgd
from steps.quest.images_config import Shape
from steps.quest.vit import build
from steps.shared.runtime import InputError

RADIUS = 0.1


class Linear(nn.Module):
    """Two classes, logits 0 and w . x + b: the loss grows fastest along the sign of w."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0, -2.0, 0.5, -0.1]).view(2, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        score = (x * self.weight).sum((1, 2))
        return torch.stack([torch.zeros_like(score), score], dim=1)


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(5)


def inputs(count: int = 6, size: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    drawn = torch.Generator().manual_seed(1)
    # many pixels at 0 and 1, where clipping matters
    images = (1.4 * torch.rand(count, size, size, generator=drawn) - 0.2).clamp(0, 1)
    return images, torch.arange(count) % 2


def attack_pgd(model: nn.Module, images, labels, **change) -> torch.Tensor:
    options = {"radius": RADIUS, "step_size": RADIUS / 4, "steps": 10, "batch_size": 4}
    return pgd(model, images, labels, generator=generator(), **{**options, **change})


def vit() -> nn.Module:
    shape = Shape(patch=4, width=16, layers=2, heads=2, mlp_ratio=2)
    return build("quest", shape, seed=0, image_size=8, channels=1, classes=2)


def test_on_a_linear_model_both_find_the_worst_corner():
    """The worst point of the ball: x - r sign(w) for class 1, x + r sign(w) for class 0."""
    images, labels = inputs()
    model = Linear()
    away = torch.where(labels == 1, -1.0, 1.0)[:, None, None] * model.weight.detach().sign()
    worst = (images + RADIUS * away).clamp(0, 1)
    torch.testing.assert_close(fgsm(model, images, labels, radius=RADIUS, batch_size=4), worst)
    torch.testing.assert_close(attack_pgd(model, images, labels), worst)


def test_both_stay_in_the_ball_and_in_the_image():
    images, labels = inputs(size=8)
    for found in (
        fgsm(vit(), images, labels, radius=RADIUS, batch_size=4),
        attack_pgd(vit(), images, labels, step_size=0.9 * RADIUS),
    ):
        assert (found - images).abs().max() <= RADIUS + 1e-6
        assert found.min() >= 0 and found.max() <= 1
        assert (found - images).abs().max() > 0.9 * RADIUS


def test_radius_zero_changes_nothing():
    images, labels = inputs(size=8)
    assert torch.equal(fgsm(vit(), images, labels, radius=0.0, batch_size=4), images)
    assert torch.equal(attack_pgd(vit(), images, labels, radius=0.0), images)


def test_no_step_leaves_the_uniform_start():
    images = torch.full((500, 8, 8), 0.5)
    start = attack_pgd(vit(), images, torch.zeros(500).long(), steps=0) - images
    # 32,000 uniform draws: mean 0, variance r^2 / 3
    assert start.mean() == pytest.approx(0, abs=0.002)
    assert start.var() == pytest.approx(RADIUS**2 / 3, rel=0.03)


def test_more_steps_raise_the_loss():
    images, labels = inputs(16, size=8)
    model = vit()
    found = [images, fgsm(model, images, labels, radius=RADIUS, batch_size=4)]
    found += [attack_pgd(model, images, labels, steps=steps) for steps in (1, 10)]
    with torch.no_grad():
        clean, one, few, many = (float(F.cross_entropy(model(x), labels)) for x in found)
    assert clean < one and few < many


def test_the_batch_size_does_not_matter():
    images, labels = inputs(size=8)
    for size in (1, 6):
        torch.testing.assert_close(
            attack_pgd(vit(), images, labels, batch_size=size), attack_pgd(vit(), images, labels)
        )


def test_the_model_is_attacked_in_evaluation_mode_and_left_as_it_was():
    seen = []

    class Watch(Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen.append((self.training, self.weight.requires_grad))
            return super().forward(x)

    model = Watch().train()
    fgsm(model, *inputs(), radius=RADIUS, batch_size=4)
    assert set(seen) == {(False, False)}
    assert model.training and model.weight.requires_grad and model.weight.grad is None


def test_images_and_sizes_out_of_range_are_refused():
    images, labels = inputs()
    with pytest.raises(InputError, match="images from 0.0 to 2.0"):
        fgsm(Linear(), 2 * images, labels, radius=RADIUS, batch_size=4)
    with pytest.raises(InputError, match="radius = 8"):
        fgsm(Linear(), images, labels, radius=8, batch_size=4)


class Channels(nn.Module):
    """The library's form of an image has channels."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x[:, 0])


def test_both_equal_torchattacks():
    library = pytest.importorskip("torchattacks", reason="torchattacks is not installed")
    images, labels = inputs(16, size=8)
    model = Channels(vit())
    theirs = library.FGSM(model, eps=RADIUS)(images[:, None], labels)
    ours = fgsm(model, images[:, None], labels, radius=RADIUS, batch_size=16)
    torch.testing.assert_close(ours, theirs)
    # the library draws its start from torch's own generator
    torch.manual_seed(5)
    attack = library.PGD(model, eps=RADIUS, alpha=RADIUS / 4, steps=10, random_start=True)
    theirs = attack(images[:, None], labels)
    torch.testing.assert_close(attack_pgd(model, images[:, None], labels, batch_size=16), theirs)
