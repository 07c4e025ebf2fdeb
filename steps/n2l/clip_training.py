"""How the CLIP of a data set and seed is made: trained here, or given with hub data."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from steps.n2l import embeddings
from steps.n2l.clip import Clip, ConvTower, FeatureTower, LetterTower, as_letters, contrastive
from steps.n2l.config import Train
from steps.shared import tensor_files
from steps.shared.fit import Fit
from steps.shared.runtime import is_main_process, read_json, stream
from steps.shared.schedules import epochs, warmup_cosine


def read_data(manifest: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return what prepare left: the manifest and the tensors beside it."""
    note = read_json(manifest, "kind", "names", "classes")
    path = manifest.with_suffix(".safetensors")
    return note, tensor_files.read(path, "data as prepare writes them", framework="torch")


def build(note: dict[str, Any], data: dict[str, Tensor], config: Train, seed: int) -> Clip:
    """Return an untrained CLIP; weights are drawn from (n2l, init, seed)."""
    torch.manual_seed(int(stream("n2l", "init", seed).integers(2**63)))
    width, dim = config.width, config.embed_dim
    if note["kind"] == "glyphs":
        image = ConvTower(data["source"].shape[-1], width, dim)
        text = LetterTower(as_letters(note["names"]).shape[1], 4 * width, dim)
    else:
        image = FeatureTower(data["source"].shape[1], width, dim, config.dropout)
        text = FeatureTower(data["names"].shape[1], width, dim, config.dropout)
    return Clip(image, text, config.temperature)


def names_of(note: dict[str, Any], data: dict[str, Tensor]) -> Tensor:
    """Return the text tower's input for every name of the source."""
    return as_letters(note["names"]) if note["kind"] == "glyphs" else data["names"]


def train(
    note: dict[str, Any],
    data: dict[str, Tensor],
    config: Train,
    args: argparse.Namespace,
    state: Path,
    on_log: Callable[[int, dict[str, float]], None] = lambda step, metrics: None,
) -> Fit:
    """Train on the source, from where an interrupted job left it."""
    rng = stream("n2l", "data", args.seed)
    batches = epochs(rng, len(data["source"]), config.batch_size, config.steps)
    dropout = stream("n2l", "dropout", args.seed).integers(2**63, size=config.steps).tolist()
    names = names_of(note, data)

    def batch(update: int) -> tuple[Tensor, ...]:
        torch.manual_seed(dropout[update - 1])  # the same after an interruption
        chosen = torch.from_numpy(batches[update - 1])
        return data["source"][chosen], data["source_labels"][chosen]

    fit = Fit(
        build(note, data, config, args.seed),
        config,
        batch=batch,
        loss=lambda model, pair: contrastive(model, *pair, names),
        rate=warmup_cosine(config.steps, config.warmup_share),
        state=state,
        cpu=args.device == "cpu",
    )
    fit.resume()
    fit.run(config.steps, label=f"n2l {args.row} seed {args.seed}", on_log=on_log)
    return fit


@torch.inference_mode()
def embedded(model: Clip, note: dict[str, Any], data: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    """Return embeddings of all images (N x D) and of the class names (C x D), unscaled."""
    model.eval()
    images = torch.cat([model.image(chunk) for chunk in data["images"].split(500)])
    places = [note["names"].index(name) for name in note["classes"]]
    return images, model.text(names_of(note, data)[places])


def write(
    args: argparse.Namespace, note: dict[str, Any], data: dict[str, Tensor], fit: Fit | None
) -> None:
    """Write both embedding files; of a given CLIP there is no `fit`."""
    labels = data["labels"].numpy()
    if fit is None:
        found = embeddings.Embeddings(
            data["images"].numpy(), labels, data["names"].numpy(), note["scale"]
        )
        test, test_labels = data["test"].numpy(), data["test_labels"].numpy()
    else:
        model = fit.bare_model.cpu()
        images, text = (part.numpy() for part in embedded(model, note, data))
        learn, held = embeddings.split(len(labels), note["num_test"], args.seed)
        scale = float(model.scale.detach())
        found = embeddings.Embeddings(images[learn], labels[learn], text, scale)
        test, test_labels = images[held], labels[held]
    if is_main_process():
        embeddings.save(args.out, found, test, test_labels)
