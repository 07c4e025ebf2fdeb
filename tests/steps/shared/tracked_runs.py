"""A training run for the tests of tracking, and what is left of it in the folder of runs."""

from pathlib import Path
from typing import Any

from steps.shared import tracking

RUN: dict[str, Any] = {"scale": "mini", "paper": "wsm", "row": "alpha", "seed": 3}
CONFIG = {"lr": 0.1, "model": {"width": 64, "layers": [1, 2]}}
KEY = "0" * 40


def log(**change: Any) -> None:
    """Log the run, with some arguments changed."""
    given = {"phase": "train", "config": CONFIG, "history": None, "summary": {}}
    tracking.log_run(**{**RUN, **given, **change})


def folders(tmp_path: Path) -> list[str]:
    """Return all that is in the folder of runs."""
    return sorted(path.name for path in (tmp_path / "wandb").glob("*"))
