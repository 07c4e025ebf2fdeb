"""Prepare images: the packaged digits as tensors, or a note of where a hub data set is."""

import argparse
from typing import Any

from steps.quest.images_config import ImageData
from steps.shared import tensor_files
from steps.shared.digits import CLASSES, SIDE, read_digits
from steps.shared.runtime import InputError, sha256_file, write_json


def run(args: argparse.Namespace, config: ImageData) -> None:
    """Write images.json, and images.safetensors of the digits."""
    note = config.model_dump()
    note |= _digits(args, config) if config.kind == "asset" else _hub(config)
    write_json(args.out / "images.json", note)


def _digits(args: argparse.Namespace, config: ImageData) -> dict[str, Any]:
    from steps.quest import digits

    if len(args.assets) != 1:
        raise InputError(f"--assets: {len(args.assets)} files: the digits are in one")
    if config.image_size != SIDE:
        raise InputError(f"image_size = {config.image_size}: digits have {SIDE} pixels")
    table = read_digits(args.assets[0])
    sizes = {"num_validation": config.num_validation, "num_test": config.num_test}
    parts = digits.split_digits(table, **sizes, seed=0)  # refuses what does not fit
    path = args.out / "images.safetensors"
    tensor_files.write(path, table._asdict())
    return {
        "channels": 1,
        "classes": CLASSES,
        "sha256": sha256_file(path),
        "images": {split: len(part.labels) for split, part in parts.items()},
    }


def _hub(config: ImageData) -> dict[str, Any]:
    from steps.quest import hub_images

    return {"channels": 3, **hub_images.describe(config)}
