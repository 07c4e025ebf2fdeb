"""What every race shares: sides take turns, medians are compared, the table names the machine."""

import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from steps.shared.runtime import log, write_csv

FIELDS = (
    "race", "size", "peer", "peer_version", "unit", "ours", "theirs", "ratio", "ratio_low",
    "ratio_high", "max_error", "machine",
)  # fmt: skip


def alternate(
    repeats: int, ours: Callable[[], float], theirs: Callable[[], float]
) -> list[tuple[float, float]]:
    """Warm both sides up once, then let them take turns."""
    ours(), theirs()
    return [(ours(), theirs()) for _ in range(repeats)]


def seconds(side: Callable[..., Any], *given: Any) -> float:
    """Return the wall seconds of one call."""
    start = time.perf_counter()
    side(*given)
    return time.perf_counter() - start


def difference(found: np.ndarray, expected: np.ndarray, tolerance: float) -> float:
    """Return the largest difference, relative to the largest value; too large ends the race."""
    error = float(np.abs(found - expected).max() / np.abs(expected).max())
    if not error <= tolerance:
        raise SystemExit(f"results differ: {error:.2g} of the largest value")
    return error


def outcome(
    race: str,
    size: str,
    peer: str,
    version: str,
    pairs: list[tuple[float, float]],
    *,
    unit: str,
    error: float | None,
) -> dict[str, Any]:
    """Return one line of the table: medians, and the ratio theirs / ours with its range."""
    ours, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
    ratios = [theirs / ours for ours, theirs in pairs]
    ratio = f"{ours:.4g} vs {theirs:.4g} {unit}, x{theirs / ours:.2f}"
    log(f"{race} [{size}] vs {peer}: {ratio}")
    named = {"race": race, "size": size, "peer": peer, "peer_version": version, "unit": unit}
    measured = {"ours": ours, "theirs": theirs, "ratio": theirs / ours, "max_error": error}
    return named | measured | {"ratio_low": min(ratios), "ratio_high": max(ratios)}


def write_table(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write the lines of all races, each with the machine."""
    machine = f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores"
    write_csv(path, FIELDS, [row | {"machine": machine} for row in rows])
