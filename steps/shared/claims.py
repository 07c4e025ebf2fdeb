"""The claims of a paper, tested: from `claims.yaml` and `runs.csv` to effects and verdicts.

A claim names a measure, which turns the runs of one seed into one scalar. The two-sided 95 % t
interval of that scalar over seeds decides; where a claim names item data, the wider of it and a
bootstrap over seeds and items; where every seed gives the same, the sign test of as many seeds.
Shapes: S seeds, P points (cells of a table), I items.
"""

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steps.shared.claim_spec import Claim, load_claims
from steps.shared.intervals import item_half_width, rank_correlation, t_interval, verdict
from steps.shared.runtime import InputError, read_csv, stream

if TYPE_CHECKING:
    from numpy import ndarray

__all__ = ["effect_text", "evaluate_claims", "is_test_node", "load_claims"]

ROOT = Path(__file__).resolve().parents[2]
NOT_TESTED = "not tested at this scale"
VERDICTS = ("holds", "fails", "inconclusive", NOT_TESTED)
CELL = ("table", "dataset", "split", "row", "metric")
SIGN_TEST_SEEDS = 6  # the least n whose least and greatest value bound the median to 95 %
ROUNDING = 1e-9  # a spread below this part of the values is rounding, not variance
Row = dict[str, Any]
Key = tuple[str, str, str, str, str, float | None]  # table, dataset, split, row, metric, x
Cells = dict[Key, dict[int, float]]


def evaluate_claims(
    spec: Sequence[Claim],
    runs: Iterable[Mapping[str, Any]],
    *,
    folder: str | Path | None = None,
    root: Path = ROOT,
) -> list[Row]:
    """Return one row of claims.json per claim, in the order of `spec`.

    `runs`: the rows of runs.csv. `folder` holds the item files that claims name (the columns of
    runs.csv and `item`). `root` is where the tests that identities name are looked up.
    """
    cells = collect(runs)
    return [_evaluate(claim, cells, folder, root) for claim in spec]


def collect(runs: Iterable[Mapping[str, Any]]) -> Cells:
    """Return {(table, dataset, split, row, metric, x): {seed: value}}; a repeat is an error."""
    cells: Cells = {}
    for run in runs:
        names = (str(run[name]) for name in CELL)
        key = (*names, None if run["x"] in ("", None) else float(run["x"]))
        values, seed = cells.setdefault(key, {}), int(run["seed"])
        if seed in values:
            raise InputError(f"runs: {key_text(key)}, seed {seed} appears twice")
        values[seed] = float(run["value"])
    return cells


def key_text(key: Key) -> str:
    """Return a key as a reader would say it: table/dataset/split/row/metric, x = 1."""
    return "/".join(key[:5]) + ("" if key[5] is None else f", x = {key[5]:g}")


def effect_text(claim: Mapping[str, Any]) -> str:
    """Return 'effect [low, high] unit, n = 5' of a row of claims.json, or '' without effect."""
    if claim["effect"] is None:
        return ""
    ends = [claim["ci_low"], claim["ci_high"]]
    interval = "" if None in ends else " [{:.3g}, {:.3g}]".format(*ends)
    return f"{claim['effect']:.3g}{interval} {claim['unit']}".rstrip() + f", n = {claim['n']}"


def is_test_node(node: str, root: Path) -> bool:
    """Say whether the pytest node `file.py::[Class::]test` is defined under `root`."""
    file, *names = node.split("::")
    if not names or not (root / file).is_file():
        return False
    scope: list[ast.stmt] = ast.parse((root / file).read_text(encoding="utf-8")).body
    for name in (name.split("[")[0] for name in names):
        found = [part for part in scope if getattr(part, "name", None) == name]
        if not found:
            return False
        scope = getattr(found[0], "body", [])
    return True


def _evaluate(claim: Claim, cells: Cells, folder: str | Path | None, root: Path) -> Row:
    keep = ("id", "statement", "kind", "side", "delta", "unit", "paper_effect", "table")
    row: Row = {name: getattr(claim, name) for name in keep}
    row |= {"effect": None, "ci_low": None, "ci_high": None, "n": 0, "interval": "none"}
    row |= {"verdict": NOT_TESTED, "note": claim.not_tested or ""}
    if claim.measure is None:
        return row
    sides = _keys(claim, cells)
    read = [key for side in sides for key in side]
    missing = [key for key in read if key not in cells]
    if missing:
        return row | {"note": claim.not_tested or f"no runs of {key_text(missing[0])}"}
    seeds = _common_seeds(claim, [cells[key] for key in read])
    if claim.kind == "identity":
        return row | {"note": ""} | _identity(claim, _array(cells, read, seeds), root)
    return row | {"note": ""} | _interval(claim, cells, sides, seeds, folder)


def _keys(claim: Claim, cells: Cells) -> list[list[Key]]:
    """Return the keys that a and b read, every x of the runs where the claim names none."""
    sides: list[list[Key]] = []
    for side in claim.sides():
        keys: list[Key] = []
        for cell, xs in side:
            found = sorted({key[5] for key in cells if key[:5] == cell}, key=lambda x: x or 0.0)
            keys += [(*cell, x) for x in xs or found or [None]]
        sides.append(keys)
    return sides


def _common_seeds(claim: Claim, cells: Sequence[Mapping[int, float]]) -> list[int]:
    seeds = sorted(set().union(*cells))
    if any(len(cell) != len(seeds) for cell in cells):
        raise InputError(f"claim {claim.id}: a run is missing, since its cells differ in seeds")
    return seeds


def _array(cells: Cells, keys: Sequence[Key], seeds: Sequence[int]) -> "ndarray":
    """Return the values S x P."""
    import numpy as np

    values = [[cells[key][seed] for key in keys] for seed in seeds]
    return np.array(values, dtype=float).reshape(len(seeds), len(keys))


def _identity(claim: Claim, a_SP: "ndarray", root: Path) -> Row:
    """Judge an identity by its largest error; it holds only while a test guards it."""
    import numpy as np

    error = float(np.abs(a_SP).max())
    if not np.isfinite(error):
        return {"n": a_SP.size, "verdict": "fails", "note": "an error is not finite"}
    found = {"n": a_SP.size, "effect": error}
    if error > claim.delta:
        return found | {"verdict": "fails"}
    if not is_test_node(claim.test or "", root):
        return found | {"verdict": "inconclusive", "note": f"there is no test {claim.test}"}
    return found | {"verdict": "holds"}


def _interval(
    claim: Claim, cells: Cells, keys: list[list[Key]], seeds: list[int], folder: str | Path | None
) -> Row:
    import numpy as np

    sides = [_array(cells, side, seeds) for side in keys]
    found: Row = {"n": len(seeds), "verdict": "inconclusive"}
    if not all(np.isfinite(side).all() for side in sides):
        return found | {"note": "a run has no finite value"}
    scalar = _scalar(claim, keys[0])
    effect, sd, low, high = (float(value) for value in t_interval(scalar(*sides)))
    zero = ROUNDING * _scale(claim, sides)
    effect = 0.0 if abs(effect) <= zero else effect
    ratio = claim.measure.function == "ratio"
    shown = (lambda value: float(np.exp(value))) if ratio else float
    found["effect"] = shown(effect)
    if len(seeds) < 2:
        return found | {"note": "one seed gives no interval"}
    flat = sd <= zero
    over = "none" if flat else "seeds"
    if claim.items:
        data = _item_arrays(claim, keys, sides, seeds, folder)
        rng = stream("claims", claim.id, 0)
        half = item_half_width(data, scalar, seeds_vary=not flat, rng=rng)
        if half > (zero if flat else (high - low) / 2):
            low, high, over = effect - half, effect + half, "items" if flat else "seeds x items"
    if over == "none":
        if len(seeds) < SIGN_TEST_SEEDS:
            return found | {"note": f"the same in every seed: {SIGN_TEST_SEEDS} would decide"}
        low, high, over = effect, effect, "median"
    delta = float(np.log1p(claim.delta)) if ratio else claim.delta
    decided = verdict(low, high, kind=claim.kind, side=claim.side or "", delta=delta)
    found |= {"ci_low": shown(low), "ci_high": shown(high), "interval": over}
    if decided == "holds" and claim.side in ("above", "below") and max(-low, high) < delta:
        found["note"] = f"smaller than the smallest difference that matters ({claim.delta:g})"
    return found | {"verdict": decided}


def _scalar(claim: Claim, keys: Sequence[Key]) -> Callable[..., "ndarray"]:
    """Return the measure as a function of the sides, each (..., P), to (...)."""
    import numpy as np

    measure = claim.measure
    if measure.function == "rank_correlation":
        against = [measure.against[key[3]] if measure.against else key[5] for key in keys]
        if len(set(against)) < 2:
            raise InputError(f"claim {claim.id}: a rank correlation needs two different points")
        return lambda a: rank_correlation(a, against)
    if measure.function == "ratio":
        return lambda a, b: _log_mean(claim, a) - _log_mean(claim, b)
    if measure.function == "spread_difference":
        return lambda a, b: np.ptp(a, axis=-1) - np.ptp(b, axis=-1)
    return lambda a, b: a.mean(-1) - b.mean(-1)


def _scale(claim: Claim, sides: Sequence["ndarray"]) -> float:
    """Return the size of the values whose rounding could look like variance of the measure."""
    import numpy as np

    if claim.measure.function in ("ratio", "rank_correlation"):
        return 1.0
    return max(float(np.abs(side).max(initial=0.0)) for side in sides)


def _log_mean(claim: Claim, values: "ndarray") -> "ndarray":
    import numpy as np

    means = values.mean(-1)
    if (means <= 0).any():
        raise InputError(f"claim {claim.id}: a ratio needs values above 0")
    return np.log(means)


def _item_arrays(
    claim: Claim,
    keys: list[list[Key]],
    sides: list["ndarray"],
    seeds: list[int],
    folder: str | Path | None,
) -> list["ndarray"]:
    """Return the item values of both sides, S x P x I, checked against the runs they explain."""
    import numpy as np

    if folder is None or not (Path(folder) / claim.items).is_file():
        raise InputError(f"claim {claim.id}: no item file {claim.items} beside the runs")
    by_item: dict[str, list[Mapping[str, str]]] = {}
    read = {key[:5] for side in keys for key in side}
    for record in read_csv(Path(folder) / claim.items):
        # the file may hold other data sets, with items of their own
        if tuple(record[name] for name in CELL) in read:
            by_item.setdefault(record["item"], []).append(record)
    cells = [collect(records) for _, records in sorted(by_item.items())]
    try:
        arrays = [np.stack([_array(c, side, seeds) for c in cells], axis=-1) for side in keys]
    except KeyError:
        raise InputError(f"claim {claim.id}: {claim.items} lacks an item of some run") from None
    for runs_SP, items_SPI in zip(sides, arrays, strict=True):
        if not np.allclose(items_SPI.mean(-1), runs_SP, rtol=1e-4, atol=1e-9):
            raise InputError(f"claim {claim.id}: the means of {claim.items} are not the runs")
    return arrays
