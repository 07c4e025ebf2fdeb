"""CellDuality's phases as a user would run them, on small tables and a model of two layers."""

import gzip
import json
from pathlib import Path

import numpy as np

from steps.cellduality import evaluate, merge, prepare, train

PREPARE = {
    "cells": {
        **{"length": 6, "num_genes": 24, "min_cells": 60, "validation_share": 0.1},
        **{"test_share": 0.2, "held_out": {"Dendritic": ["7"]}},
    },
    "drugs": {
        **{"length": 5, "drugs": [1, 2], "min_lines": 1, "validation_share": 0.2},
        **{"test_share": 0.2, "held_out": ["skin"]},
    },
    "perturbations": {
        **{"cells": 8, "steps_before": 20, "steps_after": 20, "dynamic_noise": 0.01},
        **{"observation_noise": 0.02, "detection": 0.05, "num_held_out": 2},
        **{"validation_share": 0.15, "test_share": 0.15},
    },
    "teacher": {
        **{"temperature": 3.0, "recall_temperature": 0.1, "num_markers": 1, "num_drafts": 2},
        "thresholds": {"generation": 0.1, "perturbation": 0.1},
    },
    "hub": None,
    **{"labelled_share": 0.5, "hidden_share": 0.5, "drug_pairs": 24},
    **{"perturbation_pairs": 24, "test_questions": 16},
}
STAGE = {
    **{"learning_rate": 0.03, "warmup_share": 0.1, "weight_decay": 0.0, "clip_norm": 1.0},
    **{"beta1": 0.9, "beta2": 0.999, "log_every": 1, "checkpoint_every": 2},
}
ROW = {
    **{"start": "", "reasoning": True, "filtering": True, "reward": "dual"},
    **{"dual": "current", "dual_target": "perturbation", "sft_lora": None},
    "pretrained": None,
    "model": {"width": 16, "layers": 1, "heads": 2, "context": 64},
    "sft": {**STAGE, "steps": 40, "batch_size": 16, "micro_batch": 8},
    "grpo": {
        **{**STAGE, "steps": 4, "batch_size": 8, "micro_batch": 8, "num_generations": 4},
        **{"updates_per_batch": 2, "beta": 0.04, "epsilon": 0.2, "temperature": 1.0},
        **{"completion_length": 10, "dual_batch": 16, "probe_every": 2},
    },
    "grpo_lora": {"rank": 2, "alpha": 4.0},
}
ROWS = {
    "base": {**ROW, "stage": "base"},
    "sft": {**ROW, "stage": "sft", "start": "base"},
    "rl_gt": {**ROW, "stage": "grpo", "start": "sft", "reward": "truth"},
    "cellduality": {**ROW, "stage": "grpo", "start": "sft"},
}
EVALUATE = {
    **{"completion_length": 10, "copies": 1, "temperature": 1.0, "batch_size": 32},
    "components": 3,
}


def tables() -> list[str]:
    """Write GDSC's two tables with 60 random lines; return their paths."""
    rng = np.random.default_rng(0)
    lines = range(60)
    response, features = Path("IC50_v17.csv.gz"), Path("genomic_features_v17.csv.gz")
    with gzip.open(response, "wt") as file:
        file.write("COSMIC_ID,Drug_1_IC50,Drug_2_IC50\n")
        file.writelines(f"{i},{rng.normal():.4f},{rng.normal():.4f}\n" for i in lines)
    names = [f"GENE{i}_mut" for i in range(9)]
    with gzip.open(features, "wt") as file:
        file.write(",".join(["COSMIC_ID", "TISSUE_FACTOR", *names]) + "\n")
        for i in lines:
            altered = ",".join(map(str, (rng.random(9) < 0.6).astype(int)))
            file.write(f"{i},{('skin', 'lung', 'breast')[i % 3]},{altered}\n")
    return [str(response), str(features)]


def prepared(out: str = "prepare/seed0") -> Path:
    """Prepare seed 0 in the working folder; return the manifest."""
    flags = ["--config", json.dumps(PREPARE), "--assets", *tables(), "--out", out]
    prepare.main(flags)
    return Path(out) / "manifest.json"


def trained(out: str, rows: dict = ROWS, data: str = "prepare/seed0/manifest.json") -> Path:
    """Train rows of seed 0."""
    flags = ["--config", json.dumps({"rows": rows}), "--rows", *rows, "--data", data]
    train.main([*flags, "--out", out])
    return Path(out)


def merged(folder: str, out: str, rows: dict = ROWS) -> Path:
    """Merge rows of seed 0."""
    starts = [row["start"] or name for name, row in rows.items()]
    adapters = [
        name
        for name, row in rows.items()
        if row["stage"] != "base" and row[f"{row['stage']}_lora"] is not None
    ]
    flags = ["--config", "{}", "--rows", *rows, "--starts", *starts, "--adapters", *adapters]
    flags += ["--trained", folder]
    merge.main([*flags, "--out", out])
    return Path(out) / "seed0/selection.json"


def evaluated(folder: str, models: Path, out: str, rows: dict = ROWS) -> Path:
    """Evaluate rows of seed 0."""
    flags = ["--config", json.dumps(EVALUATE), "--rows", *rows, "--target", "perturbation"]
    flags += ["--data", "prepare/seed0/manifest.json", "--selection", str(models)]
    evaluate.main([*flags, "--trained", folder, "--out", out])
    return Path(out)
