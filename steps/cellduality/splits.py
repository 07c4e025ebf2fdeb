"""Splits of cells and cell lines: stratified, redrawn by every seed."""

import numpy as np

from steps.shared.runtime import InputError

SPLITS = ("train", "validation", "test", "ood")  # the codes 0 to 3
TRAIN, VALIDATION, TEST, OOD = range(4)


def stratified(
    group_N: np.ndarray,
    held_out_N: np.ndarray,
    validation_share: float,
    test_share: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return the code of each item's split (N), int8.

    What is held out is `ood`. Of each group's other items, shuffled, round(share x count) go to
    validation and to test, at least one to each and to train.
    """
    if validation_share + test_share >= 1:
        raise InputError(
            f"validation_share + test_share = {validation_share + test_share}: must be below 1"
        )
    split_N = np.full(len(group_N), OOD, dtype=np.int8)
    for group in np.unique(group_N[~held_out_N]):
        members = rng.permutation(np.flatnonzero((group_N == group) & ~held_out_N))
        counts = [max(1, round(share * len(members))) for share in (validation_share, test_share)]
        if sum(counts) >= len(members):
            raise InputError(f"group {group}: {len(members)} items are too few for three splits")
        validation, test, train = np.split(members, np.cumsum(counts))
        split_N[validation], split_N[test], split_N[train] = VALIDATION, TEST, TRAIN
    return split_N


def members(split_N: np.ndarray, name: str) -> np.ndarray:
    """Return the places of the items of a split, in order."""
    return np.flatnonzero(split_N == code(name))


def code(name: str) -> int:
    """Return the code of a split; an unknown name is an `InputError`."""
    if name not in SPLITS:
        raise InputError(f"split {name!r}: must be one of {', '.join(SPLITS)}")
    return SPLITS.index(name)
