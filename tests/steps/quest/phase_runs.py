"""What the tests of every task's phases share."""

from pathlib import Path

from steps.quest import merge


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file below a folder, by path."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def merged(trained: str, *rows: str, into: str = "merge") -> Path:
    """Merge what training left for seed 0; return selection.json."""
    folders = [Path(trained) / row / "seed0" for row in rows]
    models = [str(path) for folder in folders for path in sorted(folder.glob("*.safetensors"))]
    merge.main(["--models", *models, "--out", into])
    return Path(into) / "selection.json"
