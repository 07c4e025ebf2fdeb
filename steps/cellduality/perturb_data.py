"""Simulated perturbations: knockdown and overexpression of each gene of a network, for PERT.

A cell grows from a progenitor for a random time and is measured; then one rule is fixed (0 for a
knockdown, 1 for overexpression) and it grows on and is measured again. Shapes: N cells, G genes, K
genes of a sentence, P = 2 G perturbations.
"""

from dataclasses import dataclass

import numpy as np

from steps.cellduality.cells_data import scanpy_file
from steps.cellduality.data_config import Perturbations
from steps.cellduality.sentences import ranked_genes
from steps.cellduality.simulator import Network, read_network
from steps.cellduality.splits import members, stratified
from steps.shared.runtime import InputError, stream

MODEL = "sim_models/krumsiek11.txt"  # in scanpy's package
CLAMPS = {"knockdown": 0.0, "overexpression": 1.0}
MARKERS = {  # of the four fates of the model, and above them a progenitor
    "erythrocyte": "EKLF",
    "megakaryocyte": "Fli1",
    "monocyte": "cJun",
    "granulocyte": "Gfi1",
}
TYPES = (*MARKERS, "progenitor")
DIFFERENTIATED = 0.3  # of a marker's expression; all are between 0 and 1


@dataclass(frozen=True)
class PerturbData:
    """Simulated cells of one seed, each before and after one perturbation."""

    genes: tuple[str, ...]  # G
    perturbations: tuple[tuple[str, str], ...]  # P pairs (operation, target)
    types: tuple[str, ...]  # names of fates
    before_NG: np.ndarray  # float32, measured expression
    after_NG: np.ndarray  # float32
    sentence_before_NK: np.ndarray  # int32, places in `genes`, -1 padded, K = G
    sentence_after_NK: np.ndarray
    perturbation_N: np.ndarray  # int64, places in `perturbations`
    type_N: np.ndarray  # int64, places in `types`: the fate before
    split_N: np.ndarray  # int8, codes of splits.SPLITS; ood = pairs held out

    def members(self, split: str) -> np.ndarray:
        """Return the places of a split's cells, in order."""
        return members(self.split_N, split)


def load(settings: Perturbations, seed: int) -> PerturbData:
    """Simulate all pairs (stream `data`), hold some out and split the others (stream `split`)."""
    network = read_network(scanpy_file(MODEL))
    perturbations = tuple((op, gene) for op in CLAMPS for gene in network.genes)
    rng = stream("cellduality", "split", seed)
    held_out = draw_held_out(len(network.genes), settings.num_held_out, rng)
    perturbation_N = np.repeat(np.arange(len(perturbations)), settings.cells)
    before_NG, after_NG, type_N = _grown(network, perturbation_N, settings, seed)
    split_N = stratified(
        perturbation_N,
        np.isin(perturbation_N, held_out),
        settings.validation_share,
        settings.test_share,
        rng,
    )
    return PerturbData(
        genes=network.genes,
        perturbations=perturbations,
        types=TYPES,
        before_NG=before_NG,
        after_NG=after_NG,
        sentence_before_NK=ranked_genes(before_NG, len(network.genes)),
        sentence_after_NK=ranked_genes(after_NG, len(network.genes)),
        perturbation_N=perturbation_N,
        type_N=type_N,
        split_N=split_N,
    )


def draw_held_out(num_genes: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return places of `count` pairs on distinct targets, the operations in turn.

    So each target and each operation is seen in training, but not the two together.
    """
    if count > num_genes:
        raise InputError(f"num_held_out = {count}: must be at most {num_genes} targets")
    return rng.permutation(num_genes)[:count] + num_genes * (np.arange(count) % len(CLAMPS))


def _grown(
    network: Network, perturbation_N: np.ndarray, settings: Perturbations, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what is measured before and after (N, G each) and the fates before (N)."""
    rng = stream("cellduality", "data", seed)
    count, num_genes = len(perturbation_N), len(network.genes)
    ages_N = rng.integers(0, settings.steps_before + 1, count)
    state_NG = network.start(count, rng)
    state_NG = network.simulate(state_NG, ages_N, settings.dynamic_noise, rng)
    clamp_NG = np.full(state_NG.shape, np.nan)
    operation_N, target_N = np.divmod(perturbation_N, num_genes)
    clamp_NG[np.arange(count), target_N] = np.array(list(CLAMPS.values()))[operation_N]
    steps_N = np.full(count, settings.steps_after)
    later_NG = network.simulate(state_NG, steps_N, settings.dynamic_noise, rng, clamp_NG)
    before_NG, after_NG = (_measured(state, settings, rng) for state in (state_NG, later_NG))
    return before_NG, after_NG, fates(before_NG, network.genes)


def _measured(
    state_NG: np.ndarray, settings: Perturbations, rng: np.random.Generator
) -> np.ndarray:
    noisy_NG = state_NG + settings.observation_noise * rng.standard_normal(state_NG.shape)
    return np.where(noisy_NG < settings.detection, 0, noisy_NG).clip(0).astype(np.float32)


def fates(expression_NG: np.ndarray, genes: tuple[str, ...]) -> np.ndarray:
    """Return the fate whose marker is highest (N), a progenitor where all are low; int64."""
    marker_N4 = expression_NG[:, [genes.index(gene) for gene in MARKERS.values()]]
    low_N = marker_N4.max(axis=1) < DIFFERENTIATED
    return np.where(low_N, TYPES.index("progenitor"), marker_N4.argmax(axis=1))
