"""What every step needs to run: seeded streams, atomic files, threads, logs, accounting.

Imports neither torch nor pandas, so that a step's `--help` and the workflow stay quick.
"""

import csv
import ctypes
import hashlib
import io
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from steps.shared.atomic import atomic_path
from steps.shared.errors import InputError, reading, remedy

LOG_EVERY_SECONDS = 5.0
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
# read by huggingface_hub and transformers, by datasets and by tqdm when they are imported
NO_BARS = ("HF_HUB_DISABLE_PROGRESS_BARS", "HF_DATASETS_DISABLE_PROGRESS_BARS", "TQDM_DISABLE")


def stream(paper: str, purpose: str, seed: int) -> "Any":
    """Return the numpy Generator of (paper, purpose, seed).

    Row and phase are left out on purpose: two rows of one seed draw the same batches, which is
    what makes their difference a paired one.
    """
    import numpy as np

    return np.random.default_rng(np.random.SeedSequence([_word(paper), _word(purpose), seed]))


def torch_generator(paper: str, purpose: str, seed: int) -> "Any":
    """Return a CPU `torch.Generator` seeded from `stream(paper, purpose, seed)`."""
    import torch

    return torch.Generator().manual_seed(int(stream(paper, purpose, seed).integers(2**63)))


def _word(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def deterministic(threads: int) -> None:
    """Make torch use exactly `threads` threads and only deterministic algorithms."""
    import torch

    torch.set_num_threads(threads)
    torch.set_deterministic_debug_mode(
        "error"
    )  # use_deterministic_algorithms imports inductor, 1 s
    torch.backends.cudnn.benchmark = False
    _keep_freed_memory()


def _keep_freed_memory() -> None:
    """Let glibc reuse freed buffers; to hand them back and fault them in again is 15 % of training.

    Elsewhere (macOS, musl) there is no `mallopt`, and nothing happens.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, 2**30)
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def sha256_file(path: str | Path) -> str:
    """Return the hex sha256 of a file, read in blocks."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fingerprint(value: Any) -> str:
    """Return a 16-digit hash of a JSON-able value, independent of key order."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def write_text(path: str | Path, text: str) -> None:
    """Write `text` (UTF-8) to `path` atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: str | Path, value: Any) -> None:
    """Write `value` as JSON with sorted keys, atomically."""
    write_text(path, json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False) + "\n")


def read_json(path: str | Path, *keys: str) -> Any:
    """Read a JSON file; a missing or broken one is an `InputError`.

    With `keys` it must be an object that has them.
    """
    with reading(path, "a readable JSON file"):
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    if keys and not isinstance(content, dict):
        found = type(content).__name__
        raise InputError(f"{path}: must be a JSON object, is a {found}{remedy(path)}")
    if missing := [key for key in keys if key not in content]:
        raise InputError(f"{path}: lacks {', '.join(missing)}{remedy(path)}")
    return content


def write_csv(path: str | Path, fields: Sequence[str], rows: Iterable[dict[str, Any]]) -> None:
    """Write rows (dicts) under `fields` atomically; floats by `repr`, None as an empty cell."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fields, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({key: _cell(value) for key, value in row.items()})
    write_text(path, buffer.getvalue())


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    return repr(float(value)) if isinstance(value, float) else value


def read_csv(path: str | Path, *columns: str) -> list[dict[str, str]]:
    """Read a CSV file as a list of dicts of strings; an unreadable one is an `InputError`.

    It must have these `columns`; others may be there.
    """
    with reading(path, "a readable CSV file"):
        with open(path, encoding="utf-8", newline="") as file:
            text = file.read()
        reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
        lines, fields = list(reader), reader.fieldnames
    if not fields:
        problem = "is empty, must begin with a line of column names"
    elif missing := [name for name in columns if name not in fields]:
        problem = f"lacks the column {', '.join(missing)}"
    elif odd := [n for n, line in enumerate(lines, 1) if None in line or None in line.values()]:
        problem = f"record {odd[0]} must have {len(fields)} cells, as its header"
    elif not text.endswith("\n"):
        problem = "is cut short: must end with a whole line"
    else:
        return lines
    raise InputError(f"{path}: {problem}{remedy(path)}")


def is_main_process() -> bool:
    """Say whether this process writes the outputs: of several launched together, the first."""
    return os.environ.get("RANK", "0") == "0"


def log(message: str) -> None:
    """Write one line to the log (standard error)."""
    print(message, file=sys.stderr, flush=True)


def progress(items: Iterable[Any], *, total: int, label: str, start: int = 0) -> Iterator[Any]:
    """Yield `items`, showing how far they are: a bar on a terminal, else a line now and then."""
    if sys.stderr.isatty():
        from tqdm import tqdm

        yield from tqdm(items, total=total, initial=start, desc=label)
        return
    begin = last = time.monotonic()
    for done, item in enumerate(items, start + 1):
        yield item
        now = time.monotonic()
        if now - last >= LOG_EVERY_SECONDS:
            last = now
            left = (now - begin) / (done - start) * (total - done)
            log(f"{label}: {done}/{total}, about {left:.0f} s left")


def torch_device(name: str) -> str:
    """Return where models are, 'cuda' or 'cpu', by the flag --device: 'auto' or 'cpu'."""
    import torch

    return "cuda" if name == "auto" and torch.cuda.is_available() else "cpu"


def usage() -> dict[str, float]:
    """Return CPU seconds (this process and its finished children) and peak memory in MiB."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
    return {"cpu_seconds": cpu, "peak_mib": max(own.ru_maxrss, children.ru_maxrss) / 1024}


def run_step(main: Callable[[], None]) -> None:
    """Run a step's `main`; bad input becomes one line and exit code 1; always log what it cost.

    In a log, other packages' progress bars are off: each of their refreshes would be a line.
    """
    if not sys.stderr.isatty():
        for name in NO_BARS:
            os.environ.setdefault(name, "1")
    try:
        main()
    except InputError as error:
        log(f"error: {error}")
        raise SystemExit(1) from None
    except OSError as error:
        if error.filename is None:
            raise
        log(f"error: {error.filename}: {error.strerror}{remedy(str(error.filename))}")
        raise SystemExit(1) from None
    finally:
        cost = usage()
        log(f"cost: {cost['cpu_seconds']:.2f} CPU s, peak {cost['peak_mib']:.0f} MiB")
