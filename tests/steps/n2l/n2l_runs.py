"""Small settings of N2L, and its phases as a user would run them, on a few random digits."""

import json
from pathlib import Path

from job_helpers import random_digits, write_digits

from steps.n2l import evaluate, merge, prepare, train

DATA = {"kind": "glyphs", "num_glyphs": 68, "num_test": 40}
TRAIN = {
    **{"embed_dim": 8, "width": 4, "dropout": 0.0, "temperature": 0.05, "steps": 6},
    **{"warmup_share": 0.2, "learning_rate": 0.01, "beta1": 0.9, "beta2": 0.98},
    **{"weight_decay": 0.1, "clip_norm": 1.0, "batch_size": 16, "micro_batch": 16},
    **{"precision": "no", "log_every": 2, "checkpoint_every": 2},
}
MERGE = {
    "protocols": {
        "digits": {"b0": {"first": 2, "step": 2}, "bhalf": {"first": 4, "step": 2}},
    },
    **{"feature_norm": 10.0, "ridge": 0.1, "theta": "median", "iterations": 3, "scope": "class"},
    **{"entropy_scale": 10.0, "fusion": 0.8, "draws": 2, "expansion": 24},
    **{"ridges": [0.1, 1.0, 10.0], "thetas": [0.0, 10.0]},
    "fine_tuning": {"rate": 0.001, "epochs": 1, "batch_size": 8},
}


def prepared(out: str = "prepare", count: int = 200) -> Path:
    """Prepare random digits in the working folder; return the manifest."""
    if not Path("digits.csv.gz").exists():
        write_digits("digits.csv.gz", random_digits(count))
    config = json.dumps({"digits": DATA})
    flags = ["--row", "digits", "--config", config, "--assets", "digits.csv.gz"]
    prepare.main([*flags, "--out", out])
    return Path(out) / "digits.json"


def trained(out: str, *, seed: int = 0, data: str = "prepare/digits.json", **change) -> Path:
    """Train the CLIP of the prepared digits."""
    flags = ["--row", "digits", "--config", json.dumps({**TRAIN, **change}), "--data", data]
    train.main([*flags, "--seed", str(seed), "--out", out])
    return Path(out)


def learnt(folder: str, out: str, *, dataset: str = "digits", seed: int = 0, **change) -> Path:
    """Label the tasks and test the classifiers of what `trained` left."""
    config = json.dumps({**MERGE, **change})
    flags = ["--row", dataset, "--seed", str(seed), "--config", config]
    flags += ["--learn", f"{folder}/learn.safetensors"]
    merge.main([*flags, "--out", f"{out}/merge"])
    flags += ["--test", f"{folder}/test.safetensors", "--known", f"{out}/merge/labels.csv"]
    evaluate.main([*flags, "--labels", f"{out}/merge/labels.safetensors", "--out", out])
    return Path(out) / f"{dataset}_seed{seed}.csv"
