"""What the tests of every task's phases share."""

from pathlib import Path

from steps.quest import merge


def merged(trained: str, *rows: str, into: str = "merge") -> Path:
    """Merge what training left for seed 0; return selection.json."""
    folders = [Path(trained) / row / "seed0" for row in rows]
    models = [str(path) for folder in folders for path in sorted(folder.glob("*.safetensors"))]
    merge.main(["--models", *models, "--out", into])
    return Path(into) / "selection.json"
