"""Images of a hub data set as features of a pretrained open_clip model: the paper's setting.

open_clip and datasets are imported here alone. Shapes: N images, C classes, D features.
"""

import re
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from steps.n2l.data_config import Hub
from steps.shared.errors import one_line
from steps.shared.runtime import InputError, progress, torch_device


def prepare(config: Hub, assets: list[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the manifest and the features of both splits and of the class names."""
    model, preprocess, tokenizer = load_model(config.model, config.pretrained)
    device = torch_device("auto")
    model = model.to(device).eval()
    names = (config.train_split, config.test_split)
    splits = [load_split(config, name) for name in names]
    classes, tested = (found[-1] for found in splits)
    if classes != tested:
        raise InputError(
            f"data set {config.name}: {len(classes)} classes in split {config.train_split},"
            f" {len(tested)} in {config.test_split}: must be the same, in the same order"
        )
    arrays: dict[str, Any] = {}
    for key, split, (data, image_key, _) in zip(("images", "test"), names, splits, strict=True):
        if min(data[config.label]) < 0:
            raise InputError(f"data set {config.name}: split {split} has images without labels")
        batches = _batches(data, image_key, config.label, preprocess, config.batch_size)
        found = progress(batches, total=-(-len(data) // config.batch_size), label=f"n2l {split}")
        pairs = [(_encoded(model, images.to(device)), labels) for images, labels in found]
        arrays[key] = torch.cat([features for features, _ in pairs])
        arrays["labels" if key == "images" else "test_labels"] = torch.cat([y for _, y in pairs])
    with torch.inference_mode():
        texts = [config.template.format(name) for name in classes]
        arrays["names"] = model.encode_text(tokenizer(texts).to(device)).float().cpu()
        scale = float(model.logit_scale.exp())
    manifest = {"kind": "hub", "classes": classes, "names": classes, "scale": scale}
    return manifest, arrays


def load_model(name: str, pretrained: str) -> tuple[Any, Any, Any]:
    """Return open_clip's (model, image preprocessing, tokenizer)."""
    try:
        import open_clip
    except ImportError:
        raise InputError(
            "open_clip is not installed, which data of kind hub need: pip install open-clip-torch"
        ) from None
    model, _, preprocess = open_clip.create_model_and_transforms(name, pretrained=pretrained)
    return model, preprocess, open_clip.get_tokenizer(name)


def load_split(config: Hub, split: str) -> tuple[Any, str, list[str]]:
    """Return (data, name of the image column, class names without numbers before them)."""
    import datasets

    try:
        data = datasets.load_dataset(config.name, config.subset or None, split=split)
    except (OSError, ValueError) as error:
        raise InputError(
            f"data set {config.name}, split {split}: cannot be read ({one_line(error)})"
        ) from None
    image = [key for key, kind in data.features.items() if isinstance(kind, datasets.Image)]
    label = [key for key, kind in data.features.items() if isinstance(kind, datasets.ClassLabel)]
    if not image or config.label not in label:
        raise InputError(
            f"data set {config.name}: needs a column of images and one of class labels named"
            f" {config.label}; has {', '.join(image + label) or 'neither'}"
        )
    names = [re.sub(r"^\d+\.", "", name) for name in data.features[config.label].names]
    return data, image[0], [name.replace("_", " ") for name in names]


def _batches(
    data: Any, image_key: str, label_key: str, preprocess: Any, size: int
) -> Iterator[tuple[Tensor, Tensor]]:
    for begin in range(0, len(data), size):
        rows = data[begin : begin + size]
        images = torch.stack([preprocess(image.convert("RGB")) for image in rows[image_key]])
        yield images, torch.tensor(rows[label_key])


@torch.inference_mode()
def _encoded(model: Any, images: Tensor) -> Tensor:
    return model.encode_image(images).float().cpu()
