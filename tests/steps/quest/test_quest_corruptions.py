"""Corruptions: each against what it must do to plain pictures, and all of them reproducible."""

import pytest
import torch
import torch.nn.functional as F

from steps.quest.corruptions import CORRUPTIONS, corrupt
from steps.quest.images_config import DIGIT_CORRUPTIONS, DIGIT_SEVERITIES
from steps.shared.runtime import InputError


def pictures(count: int = 300) -> torch.Tensor:
    """A bright bar of 3 x 16 pixels, upright, in the middle, as a stroke."""
    x = torch.zeros(count, 28, 28)
    x[:, 6:22, 13:16] = 0.9
    return x


def grey(value: float = 0.5) -> torch.Tensor:
    return torch.full((300, 28, 28), value)


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_images_stay_in_range_and_severities_do_more_and_more(name):
    # bars at every place within a cell of pixels
    x = torch.cat([pictures(20).roll(shift, dims=-1) for shift in range(14)])
    change = []
    for severity in DIGIT_SEVERITIES:
        found = corrupt(x, name, severity=severity, seed=0)
        assert found.shape == x.shape and found.dtype == x.dtype
        assert found.min() >= 0 and found.max() <= 1
        change.append(float((found - x).square().mean()))
    assert 0 < change[0] < change[1] < change[2]


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_seed_gives_the_same_images_and_another_seed_others(name):
    x = pictures(20)
    first, again, other = (corrupt(x, name, severity=2, seed=seed) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    drawn = name in ("gaussian_noise", "impulse_noise", "occlusion", "rotation")
    assert torch.equal(first, other) != drawn
    # images are corrupted one by one, not all alike
    assert torch.equal(first[:1].expand_as(first), first) != drawn


def test_the_input_is_left_alone():
    x = pictures(3)
    for name in CORRUPTIONS:
        corrupt(x, name, severity=3, seed=0)
    assert torch.equal(x, pictures(3))


def test_gaussian_noise_has_its_deviation():
    noise = corrupt(grey(), "gaussian_noise", severity=1, seed=0) - 0.5
    # 235,200 draws; clipping at 3.3 deviations takes away less than 0.1 %
    assert noise.mean() == pytest.approx(0, abs=0.002)
    assert noise.std() == pytest.approx(0.15, rel=0.01)


def test_impulse_noise_hits_its_share_with_black_and_white_alike():
    found = corrupt(grey(), "impulse_noise", severity=2, seed=0)
    assert (found != 0.5).float().mean() == pytest.approx(0.2, abs=0.005)
    assert (found == 1).float().mean() == pytest.approx(0.1, abs=0.005)


def test_blur_spreads_a_point_by_its_variance_and_keeps_its_light():
    x = torch.zeros(1, 28, 28)
    x[0, 14, 14] = 1.0
    found = corrupt(x, "blur", severity=2, seed=0)[0]
    assert found.sum() == pytest.approx(1, abs=1e-5)
    offsets = torch.arange(28) - 14.0
    for profile in (found.sum(0), found.sum(1)):
        # of a sampled Gaussian cut at four pixels, 3.2 deviations
        assert (profile * offsets**2).sum() == pytest.approx(1.25**2, rel=0.03)


def test_contrast_keeps_the_middle_and_divides_differences():
    found = corrupt(pictures(1), "contrast", severity=1, seed=0)
    assert sorted(found.unique().tolist()) == pytest.approx([0.15, 0.78])
    assert torch.equal(corrupt(grey(), "contrast", severity=3, seed=0), grey())


def test_occlusion_covers_one_square_inside_the_image():
    found = corrupt(grey(0.0), "occlusion", severity=2, seed=0) > 0
    assert torch.equal(found.sum((1, 2)), torch.full((300,), 100))
    rows, columns = found.any(2), found.any(1)
    assert torch.equal(found, rows[:, :, None] & columns[:, None, :])
    first = rows.int().argmax(1)
    assert torch.equal(rows.sum(1), torch.full((300,), 10))
    assert first.min() == 0 and first.max() == 18  # each of the 19 places, the outermost too


def test_rotation_turns_the_bar_by_its_angle_to_both_sides():
    found = corrupt(pictures(), "rotation", severity=2, seed=0)
    y, x = torch.meshgrid(torch.arange(28.0), torch.arange(28.0), indexing="ij")
    light = found.sum((1, 2))
    moment = [[(found * a * b).sum((1, 2)) / light for b in (x - 14, y - 13.5)]
              for a in (x - 14, y - 13.5)]  # fmt: skip
    tilt = 0.5 * torch.atan2(2 * moment[0][1], moment[1][1] - moment[0][0])
    assert tilt.rad2deg().abs().mean() == pytest.approx(25, abs=1.5)
    assert 0.4 < (tilt > 0).float().mean() < 0.6
    torch.testing.assert_close(light, pictures().sum((1, 2)), rtol=0.02, atol=0)


def test_pixelate_shows_the_mean_of_each_cell():
    x = torch.rand(2, 28, 28, generator=torch.Generator().manual_seed(0))
    found = corrupt(x, "pixelate", severity=3, seed=0)
    means = F.avg_pool2d(x[:, None], 4)[:, 0]
    torch.testing.assert_close(found, means.repeat_interleave(4, 1).repeat_interleave(4, 2))


def test_unknown_names_and_severities_are_refused():
    with pytest.raises(InputError, match="corruption 'fog'"):
        corrupt(grey(), "fog", severity=1, seed=0)
    with pytest.raises(InputError, match="severity = 4"):
        corrupt(grey(), "blur", severity=4, seed=0)


def test_the_configuration_knows_every_corruption_and_severity():
    assert tuple(CORRUPTIONS) == DIGIT_CORRUPTIONS
    assert all(len(each.amounts) == len(DIGIT_SEVERITIES) for each in CORRUPTIONS.values())
