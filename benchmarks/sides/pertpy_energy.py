"""pertpy's side of the race of E-distances, in its own environment and process.

    python benchmarks/sides/pertpy_energy.py cells.npz distances.npy

Reads cells `x` (N, D) and their groups, an array each. Answers every line on standard input with
the seconds of one call, and writes its distances once.
"""

import sys
import time

import numpy as np
import pandas as pd
import pertpy
from anndata import AnnData


def main(cells: str, out: str) -> None:
    """Answer until standard input ends."""
    with np.load(cells) as file:
        x, group = file["x"], file["group"]
    groups = [f"{name:03d}" for name in range(group.max() + 1)]
    obs = pd.DataFrame({"group": [groups[place] for place in group]}, index=map(str, range(len(x))))
    distance = pertpy.tools.Distance(metric="edistance", obsm_key="X_pca")
    for _ in sys.stdin:
        # it keeps the distances of cells in the object: a new one each time
        adata = AnnData(np.zeros((len(x), 1), np.float32), obs=obs, obsm={"X_pca": x})
        start = time.perf_counter()
        found = distance.pairwise(adata, groupby="group", show_progressbar=False, n_jobs=1)
        seconds = time.perf_counter() - start
        np.save(out, found.loc[groups, groups].to_numpy())
        print(seconds, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
