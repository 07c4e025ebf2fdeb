"""The vision transformer: patches, initialisation, attention maps, and that it learns."""

import pytest
import torch
import torch.nn.functional as F

from steps.quest.images_config import Shape
from steps.quest.row_names import ROWS
from steps.quest.vit import VisionTransformer
from steps.quest.vit import build as build_shape
from steps.shared.runtime import InputError

SHAPE = {"patch": 4, "width": 16, "layers": 2, "heads": 2, "mlp_ratio": 2}


def build(row: str, *, seed: int = 0, **change) -> VisionTransformer:
    sizes = {"image_size": 8, "channels": 1, "classes": 3, "drop_path": 0.0}
    sizes = {name: change.pop(name, value) for name, value in sizes.items()}
    return build_shape(row, Shape(**(SHAPE | change)), seed=seed, **sizes)


def images(count: int = 5) -> torch.Tensor:
    return torch.rand(count, 8, 8, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("row", ROWS)
def test_maps_and_logits_have_their_shapes(row):
    model = build(row, seed=0)
    assert model(images()).shape == (5, 3)
    maps = model.attention_maps(images())
    assert maps.shape == (2, 5, 2, 5, 5)
    torch.testing.assert_close(maps.sum(dim=-1), torch.ones(2, 5, 2, 5))


def test_maps_are_those_that_the_forward_pass_uses():
    """Attention of every layer to nothing but one token: the class logits see that patch only."""
    model = build("standard", seed=0, layers=1)
    x, target = images(), 3
    with torch.no_grad():
        # a key along one direction for the target only, which every query looks for strongly
        attention = model.blocks[0].attention
        attention.qkv.weight[:32] = 0.0
        attention.qkv.bias[:16] = 100.0
        model.positions[target] = torch.linspace(-50, 50, 16)
        attention.qkv.weight[16:32] = torch.linspace(-50, 50, 16)
    assert model.attention_maps(x)[0, :, :, :, target].min() > 0.999
    changed = x.clone()
    changed[:, :4, :] = 0.5  # patches 1 and 2, not 3
    torch.testing.assert_close(model(changed), model(x))
    changed[:, 4:, :4] = 0.5
    assert not torch.allclose(model(changed), model(x))


def test_patches_are_read_row_by_row():
    model = build("standard", seed=0)
    with torch.no_grad():
        model.positions.zero_()
        model.embed.weight.fill_(1 / 16)
    x = torch.zeros(1, 8, 8)
    x[0, :4, 4:] = 1.0  # the upper right patch is white: mean 1 where the others have -1
    assert model._tokens(x)[0, 1:, 0].tolist() == pytest.approx([-1, 1, -1, -1])


def test_every_row_starts_from_the_same_matrices_and_each_seed_from_others():
    first = dict(build("standard", seed=0).named_parameters())
    for row in ROWS:
        model = dict(build(row, seed=0).named_parameters())
        assert all(torch.equal(model[name], value) for name, value in first.items())
    other = dict(build("standard", seed=1).named_parameters())
    assert not torch.equal(other["embed.weight"], first["embed.weight"])


def test_matrices_have_the_variance_that_the_rule_names():
    model = build("quest", seed=0, width=128, heads=4)
    attention = model.blocks[1].attention
    # 49,152 and 16,384 entries: the standard error of a deviation is below 0.6 %
    assert attention.qkv.weight.std().item() * 128**0.5 == pytest.approx(1, abs=0.02)
    assert attention.out.weight.std().item() * (128 * 4) ** 0.5 == pytest.approx(1, abs=0.02)
    assert not attention.qkv.bias.any()


def test_the_metric_reaches_the_second_layer():
    plain, metric = (build(row, seed=0) for row in ("quest", "elliptical_quest"))
    ours, theirs = (model(images(), explicit=True)[1] for model in (metric, plain))
    assert torch.equal(ours[0], theirs[0])
    assert not torch.allclose(ours[1], theirs[1])


def test_it_learns_which_half_is_brighter():
    model = build("quest", seed=0, classes=2)
    x = images(64)
    y = (x[:, :, 4:].mean((1, 2)) > x[:, :, :4].mean((1, 2))).long()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(60):
        optimizer.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
    assert (model(x).argmax(-1) == y).float().mean() > 0.95


def test_what_does_not_fit_is_refused():
    with pytest.raises(InputError, match="patch = 3"):
        build("quest", seed=0, patch=3)
    with pytest.raises(InputError, match=r"images \(1, 8, 9\)"):
        build("quest", seed=0)(torch.zeros(1, 8, 9))
