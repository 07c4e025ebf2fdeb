"""The fine-tuning that follows pre-training (the paper's SFT), the same for every model."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from steps.shared.fit import Fit
from steps.shared.runtime import stream
from steps.shared.token_files import Batch
from steps.wsm.config import Continuation
from steps.wsm.data import padded
from steps.wsm.model import answer_loss, context_of


def continue_training(
    model: nn.Module,
    items: list[dict[str, Any]],
    config: Continuation,
    seed: int,
    *,
    label: str,
    cpu: bool,
) -> None:
    """Train `model` in place to answer `items` (only answers count), the rate falling to zero.

    Batches come from the stream (wsm, continuation, seed): the same for every model of a seed.
    """
    context = context_of(model)
    pairs = [
        (item["prompt"] + item["options"][item["answer"]], len(item["prompt"])) for item in items
    ]
    rng = stream("wsm", "continuation", seed)
    order = rng.integers(0, len(pairs), size=(config.steps, config.batch_size))

    def batch(update: int) -> Batch:
        return padded([pairs[index] for index in np.asarray(order[update - 1])], context)

    # so short that an interruption may cost all of it: the state folder is a passing one
    with tempfile.TemporaryDirectory() as state:
        fit = Fit(
            model,
            config.fit(),
            batch=batch,
            loss=answer_loss,
            rate=lambda update: 1 - (update - 1) / config.steps,
            state=Path(state),
            cpu=cpu,
        )
        fit.run(config.steps, label=label)
