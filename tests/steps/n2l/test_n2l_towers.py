"""The towers of N2L's CLIPs and their loss: EfficientNet-Lite0, letters, features."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from steps.n2l import clip, efficientnet
from steps.shared.asset_manifest import load_manifest
from steps.shared.assets import cache_root
from steps.shared.runtime import InputError


# towers and loss
# ---------------
def test_convolutions_pad_as_tensorflow_does():
    conv = efficientnet.SameConv2d(1, 1, 3, 2, bias=False)
    nn.init.ones_(conv.weight)
    found = conv(torch.ones(1, 1, 4, 4))[0, 0]
    # the padding is at the lower right alone: the first window is full
    assert found.tolist() == [[9, 6], [6, 4]]
    assert conv(torch.ones(1, 1, 5, 5)).shape[-1] == 3


def test_folded_norms_change_nothing(tmp_path):
    torch.manual_seed(0)
    model = efficientnet.EfficientNetLite0().eval()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.1, 0.1)
            nn.init.uniform_(module.running_var, 0.5, 2)
            nn.init.uniform_(module.weight, 0.5, 1.5)
    torch.save(model.state_dict(), tmp_path / "weights.pth")
    images = torch.rand(2, 3, 32, 32) * 2 - 1
    folded = efficientnet.load(tmp_path / "weights.pth")
    with torch.no_grad():
        torch.testing.assert_close(folded(images), model(images), atol=1e-4, rtol=1e-4)
    with pytest.raises(InputError, match="not the weights of EfficientNet-Lite0"):
        efficientnet.load(__file__)


def test_the_packaged_weights_see_buildings_and_a_daisy():
    asset = load_manifest()["efficientnet_lite0"]
    path = cache_root() / "assets" / asset.folder / asset.members[0]
    if not path.is_file():
        pytest.skip("the weights are not in the cache")
    from sklearn.datasets import load_sample_image

    model = efficientnet.load(path)
    images = [
        np.asarray(Image.fromarray(load_sample_image(name)).resize((224, 224)))
        for name in ("china.jpg", "flower.jpg")
    ]
    pixels = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float() / 127.5 - 1
    with torch.no_grad():
        building, flower = model(pixels).topk(5).indices.tolist()
    assert set(building) & {442, 663, 698}  # bell cote, monastery, palace
    assert flower[0] == 985  # daisy


def test_the_loss_is_clips_where_every_name_comes_once():
    torch.manual_seed(0)
    model = clip.Clip(nn.Linear(6, 4), nn.Linear(5, 4), temperature=0.1)
    images, names = torch.randn(3, 6), torch.randn(7, 5)
    labels = torch.tensor([4, 0, 6])
    f, g = model(images, names[labels])
    logits = 10 * f @ g.T
    expected = sum(
        nn.functional.cross_entropy(part, torch.arange(3)) for part in (logits, logits.T)
    )
    found = clip.contrastive(model, images, labels, names)
    torch.testing.assert_close(found, expected / 2)
    twice = clip.contrastive(model, images[[0, 0]], torch.tensor([4, 4]), names)
    torch.testing.assert_close(twice, torch.log(torch.tensor(2.0)) / 2)  # one name, two images


def test_names_are_letters_and_towers_tell_them_apart():
    letters = clip.as_letters(["ab", "b2c"])
    assert letters.tolist() == [[1, 2, 0], [2, 0, 3]]
    tower = clip.LetterTower(3, 8, 4)
    found = tower(clip.as_letters(["ab ", "ba ", "ab "]))
    assert torch.equal(found[0], found[2]) and not torch.equal(found[0], found[1])
