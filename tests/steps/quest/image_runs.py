"""Small settings of the tasks on images, and their phases as a user would run them."""

import json
from pathlib import Path

from job_helpers import random_digits, write_digits
from phase_runs import merged

from steps.quest import evaluate, prepare, train

SHAPE = {"patch": 14, "width": 8, "layers": 2, "heads": 2, "mlp_ratio": 2}
DATA = {
    **{"kind": "asset", "name": "mnist_5k", "image_size": 28},
    **{"num_validation": 20, "num_test": 30},
}
IMAGES = {
    **{
        "shape": SHAPE,
        "drop_path": 0.0,
        "label_smoothing": 0.0,
        "max_shift": 1,
    },
    **{"steps": 4, "warmup_share": 0.25, "learning_rate": 0.01, "beta1": 0.9, "beta2": 0.98},
    **{"weight_decay": 0.05, "clip_norm": 1.0, "batch_size": 8, "micro_batch": 8},
    **{"precision": "no", "log_every": 2, "checkpoint_every": 2},
}
MEASURES = {
    **{"batch_size": 16, "corrupted": "digits", "corruptions": ["blur", "contrast"]},
    **{"severities": [1, 3], "num_attacked": 10, "radii": [0.05, 0.1], "pgd_steps": 2},
    **{"pgd_step": 0.25, "pattern_size": 14},
}
SWEEP = {
    **{"shape": SHAPE, "num_probe": 250, "learning_rates": [0.001, 0.01, 0.1]},
    **{"weight_decay": 0.05, "beta1": 0.9, "beta2": 0.98, "steps": 4, "warmup_share": 0.25},
    **{"batch_size": 8, "max_shift": 1, "log_every": 2, "checkpoint_every": 2},
}
SWEEP_MEASURES = {"final_lines": 2, "stable_factor": 2.0, "learned_share": 0.5}
TRAIN = {"images": IMAGES, "sweep": SWEEP}
EVALUATE = {"images": MEASURES, "sweep": SWEEP_MEASURES}


def prepared(out: str = "prepare", **change) -> Path:
    """Prepare 120 random digits, once made, in the working folder."""
    if not Path("digits.csv.gz").exists():
        write_digits("digits.csv.gz", random_digits(120))
    config = json.dumps({"images": {**DATA, **change}})
    flags = ["--task", "images", "--config", config, "--assets", "digits.csv.gz"]
    prepare.main([*flags, "--out", out])
    return Path(out) / "images.json"


def trained(task: str, out: str, *rows: str, seed: int = 0, **change) -> Path:
    """Train rows of a task on the data of `prepared`."""
    config = json.dumps({task: {**TRAIN[task], **change}})
    flags = ["--task", task, "--config", config, "--data", "prepare/images.json"]
    train.main([*flags, "--seed", str(seed), "--rows", *rows, "--out", out])
    return Path(out)


def measured(task: str, runs: str, *rows: str, **change) -> Path:
    """Merge and evaluate what `trained` left for seed 0."""
    selection = merged(runs, *rows)
    config = json.dumps({task: {**EVALUATE[task], **change}})
    flags = ["--task", task, "--config", config, "--data", "prepare/images.json"]
    evaluate.main([*flags, "--selection", str(selection), "--out", "evaluate"])
    return Path("evaluate")
