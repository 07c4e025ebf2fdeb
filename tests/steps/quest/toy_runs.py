"""Small settings of the task `toy`, and its phases as a user would run them."""

import json
from pathlib import Path

from steps.quest import prepare, train

ROWS = ["standard", "qknorm_hs", "qknorm_ds", "quest"]
PROBLEM = {
    **{"num_tokens": 4, "dim": 3, "num_answers": 5, "answer_sd": 3.0, "bias_norm": 3.0},
    **{"bias_variance": 0.1, "biased_share": 0.5, "num_test": 30},
}
TOY = {
    **{
        "rows": {"minimal": ROWS, "full": ROWS},
        "width": 4,
        "layers": 2,
        "heads": 2,
    },
    **{"learning_rates": [0.01, 0.1], "weight_decays": [0.0, 0.1], "beta1": 0.9, "beta2": 0.99},
    **{
        "steps": {"minimal": 4, "full": 4},
        "batch_size": 8,
        "num_probe": 16,
        "log_every": 2,
        "checkpoint_every": 2,
    },
}
MEASURES = {"success_accuracy": 0.5, "num_maps": 2}
DATA = "prepare/toy.json"


def prepared(out: str = "prepare") -> None:
    """Prepare the problem in the working folder."""
    prepare.main(["--task", "toy", "--config", json.dumps({"toy": PROBLEM}), "--out", out])


def run(out: str, *rows: str, seed: int = 0, **changes) -> Path:
    """Train rows (default: two) on it."""
    config = json.dumps({"toy": {**TOY, **changes}})
    flags = ["--task", "toy", "--config", config, "--data", DATA, "--seed", str(seed)]
    train.main([*flags, "--rows", *(rows or ("standard", "quest")), "--out", out])
    return Path(out)
