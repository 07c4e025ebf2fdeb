"""Checkpoints written to disk, atomically and with the same bytes for the same tensors.

Parts of tensors come in any order and from any thread, so that no whole tensor need be in memory.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from steps.shared.checkpoint_files import INDEX, STORAGE, WEIGHTS, Spec


class CheckpointWriter:
    """A checkpoint being written beside `path`, which appears when the `with` block ends well.

    `path` is a `.safetensors` file or a folder; `specs` says which tensors go to which file of the
    folder; `extra` holds other small files by name. A new or empty folder appears by one rename; in
    an old one the checkpoint's files are replaced one by one and other files stay. After an error
    nothing has changed at `path`.
    """

    def __init__(
        self, path: str | Path, specs: Mapping[str, Spec], extra: Mapping[str, bytes]
    ) -> None:
        self.path = Path(path)
        self.single = self.path.suffix == ".safetensors"
        self.specs = {
            name: spec._replace(file=self.path.name) if self.single else spec
            for name, spec in specs.items()
        }
        self.extra = {} if self.single else dict(extra)

    def __enter__(self) -> "CheckpointWriter":
        self.path.parent.mkdir(parents=True, exist_ok=True)
        prefix = f".{self.path.name}."
        self._scratch = tempfile.mkdtemp(dir=self.path.parent, prefix=prefix, suffix=".tmp")
        self._folder = Path(self._scratch) / "new"  # unlike its parent, with the usual permissions
        self._folder.mkdir()
        self._files: dict[str, int] = {}
        self._offsets: dict[str, int] = {}
        for file in sorted({spec.file for spec in self.specs.values()} or {WEIGHTS}):
            self._begin(file)
        return self

    def _begin(self, file: str) -> None:
        order = list(STORAGE)
        names = [name for name, spec in self.specs.items() if spec.file == file]
        names.sort(key=lambda name: (-order.index(self.specs[name].dtype), name))
        header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
        end = 0
        for name in names:
            spec, self._offsets[name] = self.specs[name], end
            end += spec.num_bytes
            entry = {"dtype": spec.dtype, "shape": spec.shape}
            header[name] = entry | {"data_offsets": [self._offsets[name], end]}
        text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
        text += b" " * (-len(text) % 8)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        self._files[file] = os.open(self._folder / file, flags, 0o666)
        _write(self._files[file], len(text).to_bytes(8, "little") + text, 0)
        for name in names:
            self._offsets[name] += 8 + len(text)
        os.ftruncate(self._files[file], 8 + len(text) + end)

    def write(self, name: str, values: np.ndarray, *, start: int) -> None:
        """Write elements `start`, `start + 1`, ... of a tensor; `values` are as `STORAGE` says."""
        offset = self._offsets[name] + start * values.itemsize
        _write(self._files[self.specs[name].file], values.view(np.uint8), offset)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            for handle in self._files.values():
                if kind is None:
                    os.fsync(handle)
                os.close(handle)
            if kind is None:
                self._publish()
        finally:
            shutil.rmtree(self._scratch)

    def _publish(self) -> None:
        if len(self._files) > 1 or (not self.single and WEIGHTS not in self._files):
            self.extra[INDEX] = _index(self.specs)
        for name, content in self.extra.items():
            (self._folder / name).write_bytes(content)
        if self.single:
            os.replace(self._folder / self.path.name, self.path)
        elif not self.path.exists() or not any(self.path.iterdir()):
            os.rename(self._folder, self.path)
        else:
            _replace_files(self._folder, self.path)


def _index(specs: Mapping[str, Spec]) -> bytes:
    total = sum(spec.num_bytes for spec in specs.values())
    weight_map = {name: spec.file for name, spec in specs.items()}
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    return (json.dumps(index, indent=2, sort_keys=True) + "\n").encode()


def _replace_files(new: Path, old: Path) -> None:
    names = {file.name for file in new.iterdir()}
    for name in sorted(names, key=lambda name: (name == INDEX, name)):
        os.replace(new / name, old / name)
    for stale in _weight_files(old):
        if stale.name not in names:
            stale.unlink()


def _weight_files(folder: Path) -> Iterable[Path]:
    yield from folder.glob("model*.safetensors")
    yield from folder.glob(INDEX)


def _write(handle: int, content: Any, offset: int) -> None:
    view = memoryview(content)
    while view:
        written = os.pwrite(handle, view, offset)
        view, offset = view[written:], offset + written
