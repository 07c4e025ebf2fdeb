"""A small model and its optimization, for the tests of WSM that train."""

TRUNK = {
    "model": "gpt",
    "width": 8,
    "layers": 1,
    "heads": 2,
    "context": 8,
    "learning_rate": 0.01,
    "beta1": 0.9,
    "beta2": 0.95,
    "weight_decay": 0.1,
    "clip_norm": 1.0,
    "batch_size": 4,
    "micro_batch": 4,
    "precision": "no",
    "warmup_steps": 3,
    "stable_steps": 6,
    "log_every": 2,
    "checkpoint_every": 2,
}
BRANCH = {**TRUNK, "decay": "constant", "keep": "window", "anneal_steps": 4, "save_every": 2}
