"""The three data sets of a seed, from packages or, at the paper's scale, from annotated files."""

from collections.abc import Sequence
from pathlib import Path

from steps.cellduality import cells_data, drug_data, perturb_data
from steps.cellduality.config import Prepare
from steps.cellduality.questions import Data


def load(config: Prepare, seed: int, assets: Sequence[Path]) -> Data:
    """Return the data sets; `assets` are the tables of drug response."""
    return Data(
        cells=cells_data.load(config.cells, seed),
        drugs=drug_data.load(config.drugs, seed, assets),
        perturbations=perturb_data.load(config.perturbations, seed),
    )


def described(config: Prepare) -> dict[str, str]:
    """Return what each task's data are: measured or simulated."""
    return {
        "annotation": "measured: pbmc68k_reduced",
        "generation": "measured: pbmc68k_reduced",
        "drug": "measured: GDSC release 17",
        "perturbation": "simulated: krumsiek11",
    }
