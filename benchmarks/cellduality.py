"""The races of CellDuality: cell sentences, rewards, Frechet distances, E-distances.

    python benchmarks/cellduality.py
    python benchmarks/cellduality.py --cells 2000 --candidates 200 --repeats 2 --out small.csv

One thread a side, wall seconds; sides take turns, medians, with the smallest and largest ratio of
one turn; results are compared before anything is timed. The peers: cell2sentence's builder of
sentences; the rank-weighted Jaccard similarity on Python's sets; a Frechet distance by
scipy.linalg.sqrtm for each condition; E-distances by scperturb and by pertpy. cell2sentence and
scperturb are installed beside the environment (benchmarks/cellduality.txt), pertpy in one of its
own (benchmarks/pertpy.txt), on first use. Writes benchmarks/results/cellduality.csv.
"""

import argparse
import importlib.metadata
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "TQDM_DISABLE"):
    os.environ[name] = "1"  # read when numpy, numba and tqdm are imported

import numpy as np  # noqa: E402
from scipy import sparse  # noqa: E402
from scipy.linalg import sqrtm  # noqa: E402

from benchmarks.sides.peers import beside, environment, pinned  # noqa: E402
from benchmarks.sides.race import alternate, difference, outcome, seconds, write_table  # noqa: E402
from steps.cellduality.energy import energy_distances  # noqa: E402
from steps.cellduality.frechet import frechet_distances  # noqa: E402
from steps.cellduality.rewards import rank_weighted_jaccard  # noqa: E402
from steps.cellduality.sentences import PAD, ranked_genes  # noqa: E402

GENES, FILLED = 2000, 0.1
LENGTH = 32  # genes of a reward
TOLERANCE = 1e-6  # of the largest value compared; sqrtm itself has about 8 digits


def main() -> None:
    """Run every race and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cells", type=int, default=50_000, help="of the race of sentences")
    parser.add_argument("--candidates", type=int, default=2000, help="of the race of rewards")
    parser.add_argument("--conditions", type=int, default=50, help="of Frechet distances")
    parser.add_argument("--dims", type=int, default=50, help="of embedded cells")
    parser.add_argument("--groups", type=int, default=20, help="of E-distances")
    parser.add_argument("--group-cells", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/cellduality.csv")
    args = parser.parse_args()
    rows = [
        *sentences(args.cells, args.repeats),
        *rewards(args.candidates, args.repeats),
        *frechet(args.conditions, args.dims, args.repeats),
        *energy(args),
    ]
    write_table(args.out, rows)


def sentences(cells: int, repeats: int) -> Iterator[dict[str, Any]]:
    """Race cell sentences of a sparse matrix, as places of genes and as text."""
    beside("cellduality")
    from anndata import AnnData
    from cell2sentence.utils import generate_sentences, generate_vocabulary

    matrix = sparse.random(cells, GENES, FILLED, "csr", np.float32, np.random.default_rng(0))
    # distinct, since cell2sentence splits ties at random
    matrix.data[:] = np.random.default_rng(1).permutation(matrix.nnz) + 1
    adata = AnnData(matrix)
    adata.var_names = [f"GENE{place}" for place in range(GENES)]
    names, length = tuple(adata.var_names), int(np.diff(matrix.indptr).max())

    def places() -> np.ndarray:
        return ranked_genes(matrix, length)

    def text() -> list[str]:
        rows = (sentence_K[sentence_K != PAD].tolist() for sentence_K in places())
        return [" ".join(map(names.__getitem__, row)) for row in rows]

    def builder() -> list[str]:
        return generate_sentences(adata, generate_vocabulary(adata))

    if text() != builder():
        raise SystemExit("results differ: cell2sentence builds other sentences")
    size = f"{cells} cells x {GENES} genes, {FILLED:.0%} filled"
    version = importlib.metadata.version("cell2sentence")
    for race, side in (("cell sentences", places), ("cell sentences as text", text)):
        pairs = alternate(repeats, partial(seconds, side), partial(seconds, builder))
        peer = "generate_sentences (cell2sentence)"
        yield outcome(race, size, peer, version, pairs, unit="s", error=0.0)


def by_sets(hidden: list[int], guessed: list[int]) -> float:
    """Return the rank-weighted Jaccard similarity as it is written, on Python's sets."""
    true_w = {gene: 1 / rank for rank, gene in enumerate(hidden, 1)}
    found_w = {gene: 1 / rank for rank, gene in enumerate(dict.fromkeys(guessed), 1)}
    common = true_w.keys() & found_w.keys()
    shared = sum((true_w[gene] + found_w[gene]) / 2 for gene in common)
    other = sum(found_w[gene] for gene in found_w.keys() - true_w.keys())
    return shared / (sum(true_w.values()) + other)


def rewards(candidates: int, repeats: int) -> Iterator[dict[str, Any]]:
    """Race rewards of many candidates; half of the guessed genes are right, some come twice."""
    rng = np.random.default_rng(0)
    hidden = np.array([rng.permutation(GENES)[:LENGTH] for _ in range(candidates)])
    wrong = rng.integers(0, GENES, hidden.shape)
    guessed = np.where(rng.random(hidden.shape) < 0.5, rng.permuted(hidden, axis=1), wrong)
    lists = list(zip(hidden.tolist(), guessed.tolist(), strict=True))

    def sets() -> list[float]:
        return [by_sets(*pair) for pair in lists]

    error = difference(rank_weighted_jaccard(hidden, guessed), np.array(sets()), TOLERANCE)
    mine = partial(seconds, rank_weighted_jaccard, hidden, guessed)
    pairs = alternate(max(repeats, 11), mine, partial(seconds, sets))
    yield outcome(
        "rank-weighted Jaccard",
        f"{candidates} x {LENGTH} genes of {GENES}",
        "sets (Python)",
        platform.python_version(),
        pairs,
        unit="s",
        error=error,
    )


def by_sqrtm(mean_a: np.ndarray, cov_a: np.ndarray, mean_b: np.ndarray, cov_b: np.ndarray) -> Any:
    """Return Frechet distances by a root of each product of covariances."""
    found = []
    for m_a, c_a, m_b, c_b in zip(mean_a, cov_a, mean_b, cov_b, strict=True):
        root = sqrtm(c_a @ c_b).real
        found.append(((m_a - m_b) ** 2).sum() + np.trace(c_a) + np.trace(c_b) - 2 * np.trace(root))
    return np.array(found)


def frechet(conditions: int, dims: int, repeats: int) -> Iterator[dict[str, Any]]:
    """Race the Frechet distances of many conditions from their moments."""
    rng = np.random.default_rng(0)
    moments = []
    for shift in (0.0, 0.5):
        x = rng.normal(shift, 1, (conditions, 5 * dims, dims)) * rng.uniform(0.2, 2, dims)
        moments += [x.mean(axis=1), np.stack([np.cov(cells, rowvar=False) for cells in x])]
    error = difference(frechet_distances(*moments), by_sqrtm(*moments), TOLERANCE)
    mine, theirs = (partial(seconds, side, *moments) for side in (frechet_distances, by_sqrtm))
    yield outcome(
        "Frechet distance",
        f"{conditions} conditions, D = {dims}",
        "linalg.sqrtm (scipy)",
        importlib.metadata.version("scipy"),
        alternate(max(repeats, 11), mine, theirs),
        unit="s",
        error=error,
    )


def energy(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Race the E-distances of all pairs of groups."""
    from anndata import AnnData
    from scperturb import edist

    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(args.groups), args.group_cells)
    x = rng.normal(size=(len(group), args.dims)) + 0.1 * group[:, None]
    ours = energy_distances(x, group, args.groups)
    mine = partial(seconds, energy_distances, x, group, args.groups)
    size = f"{args.groups} groups x {args.group_cells} cells, D = {args.dims}"
    adata = AnnData(np.zeros((len(x), 1), np.float32), obsm={"X_pca": x})
    adata.obs["group"] = [f"{place:03d}" for place in group]
    kind = {"dist": "euclidean", "sample_correct": False}
    peer = partial(edist, adata, "group", **kind, n_jobs=1, verbose=False)
    yield outcome(
        "E-distance of all pairs",
        size,
        "edist, Euclidean (scperturb)",
        importlib.metadata.version("scperturb"),
        alternate(args.repeats, mine, partial(seconds, peer)),
        unit="s",
        error=difference(ours, peer().to_numpy(), TOLERANCE),
    )
    with tempfile.TemporaryDirectory() as folder:
        cells, out = Path(folder) / "cells.npz", Path(folder) / "distances.npy"
        np.savez(cells, x=x, group=group)
        side = ROOT / "benchmarks" / "sides" / "pertpy_energy.py"
        with subprocess.Popen(
            [environment("pertpy") / "python", "-W", "ignore", side, cells, out],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            ask = partial(_ask, process)
            ask()
            error = difference(ours, np.load(out), TOLERANCE)
            pairs = alternate(args.repeats, mine, ask)
            process.stdin.close()
    yield outcome(
        "E-distance of all pairs",
        size,
        "Distance.pairwise (pertpy)",
        pinned("pertpy", "pertpy"),
        pairs,
        unit="s",
        error=error,
    )


def _ask(process: subprocess.Popen) -> float:
    print(file=process.stdin, flush=True)
    return float(process.stdout.readline())


if __name__ == "__main__":
    main()
