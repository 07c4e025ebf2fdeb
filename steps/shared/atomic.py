"""Files and folders that appear whole or not at all, and what killed writers left of them."""

import glob
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Yield a file name to write to; on success the file becomes `path`, on error it goes.

    The folder of `path` is created, the contents reach the disk before the name does. The file is
    written in a folder of its own, `.<name>.<host>-<pid>.<random>.tmp` beside `path`, because some
    writers (safetensors) put a temporary file of their own beside the one that they are given.
    What a killed process left goes with the next write of the same path on its host.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_remains(path)
    prefix = f"{_prefix(path)}{os.getpid()}."
    folder = tempfile.mkdtemp(dir=path.parent, prefix=prefix, suffix=".tmp")
    temporary = Path(folder, path.name)
    try:
        yield temporary
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder to fill; on success it becomes `path`, on error it goes.

    For one writer at a time: what a killed one left goes with the next.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    try:
        yield temporary
        shutil.rmtree(path, ignore_errors=True)
        temporary.rename(path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _prefix(path: Path) -> str:
    # a process id says nothing about the processes of another host on a shared disk
    return f".{path.name}.{os.uname().nodename}-"


def _remove_remains(path: Path) -> None:
    prefix = _prefix(path)
    for remains in path.parent.glob(f"{glob.escape(prefix)}*.tmp"):
        writer = re.fullmatch(r"(\d+)\.[^.]+\.tmp", remains.name.removeprefix(prefix))
        if writer and not _is_alive(int(writer[1])):
            shutil.rmtree(remains, ignore_errors=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it is another user's
    return True


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
