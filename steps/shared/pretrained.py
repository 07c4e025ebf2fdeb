"""Models of transformers from folders, whole: a weight that is missing would be a random one."""

from pathlib import Path
from typing import Any

from steps.shared.runtime import reading


def load_pretrained(kind: Any, folder: Path, what: str, **options: Any) -> Any:
    """Return `kind.from_pretrained(folder)`; a folder that is not all of `what` is refused."""
    with reading(folder, what):
        model, found = kind.from_pretrained(folder, output_loading_info=True, **options)
        if missing := sorted(found["missing_keys"]):
            raise ValueError(f"lacks {len(missing)} tensors, such as {missing[0]}")
    return model
