"""The three data sets of a seed, from packages or, at the paper's scale, from annotated files."""

from collections.abc import Sequence
from pathlib import Path

from steps.cellduality import cells_data, drug_data, hub_data, perturb_data
from steps.cellduality.config import Prepare
from steps.cellduality.questions import Data


def load(config: Prepare, seed: int, assets: Sequence[Path]) -> Data:
    """Return the data sets; `assets` are the packaged tables of drug response."""
    if config.hub is not None:
        return Data(
            cells=hub_data.cells(config.hub.cells, seed),
            drugs=hub_data.drugs(config.hub.drugs, seed),
            perturbations=hub_data.perturbations(config.hub.perturbations, seed),
        )
    return Data(
        cells=cells_data.load(config.cells, seed),
        drugs=drug_data.load(config.drugs, seed, assets),
        perturbations=perturb_data.load(config.perturbations, seed),
    )


def described(config: Prepare) -> dict[str, str]:
    """Return what each task's data are: measured or simulated."""
    cells, drugs, after = "pbmc68k_reduced", "GDSC release 17", "simulated: krumsiek11"
    if config.hub is not None:
        cells, drugs = config.hub.cells.known.repo, config.hub.drugs.known.repo
        after = f"measured: {config.hub.perturbations.known.repo}"
    measured = {"annotation": cells, "generation": cells, "drug": drugs}
    return {"perturbation": after} | {task: f"measured: {name}" for task, name in measured.items()}
