"""Measured drug response of cancer cell lines: GDSC, release 17 (Iorio et al., 2016), for DRUG.

There is no expression in these tables: the sentence of a line is its altered features (mutated
genes, gained and lost segments), the rarest in training lines first. A line is sensitive to a drug
in the lowest third of the drug's ln IC50 among training lines, resistant in the highest; between
the two it has no label. Shapes: L cell lines, F features, D drugs, P pairs, K of a sentence.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from steps.cellduality.data_config import Drugs
from steps.cellduality.sentences import ranked_genes
from steps.cellduality.splits import TRAIN, code, stratified
from steps.shared.runtime import InputError, reading, stream

RESPONSE, FEATURES = "IC50_v17.csv.gz", "genomic_features_v17.csv.gz"
LABELS = ("sensitive", "resistant")  # the codes 0 and 1


@dataclass(frozen=True)
class DrugData:
    """Cell lines and drugs of one seed: altered features, sentences, labels, splits."""

    features: tuple[str, ...]  # F names without spaces, as TP53_mut
    drugs: tuple[str, ...]  # D names, as Drug_1047
    altered_LF: np.ndarray  # uint8, 1 where altered
    sentence_LK: np.ndarray  # int32, places in `features`, -1 padded
    label_LD: np.ndarray  # int8, 0 sensitive, 1 resistant, -1 neither or not measured
    split_L: np.ndarray  # int8, codes of splits.SPLITS

    def pairs(self, split: str) -> np.ndarray:
        """Return the labelled pairs (line, drug) of a split (P, 2), in order."""
        return np.argwhere((self.label_LD >= 0) & (self.split_L == code(split))[:, None])


def load(settings: Drugs, seed: int, files: Sequence[Path]) -> DrugData:
    """Read both tables, split the lines (stream `split`), cut at thirds of training lines."""
    response, features = read(files)
    names = [f"Drug_{number}" for number in settings.drugs]
    if missing := [name for name in names if f"{name}_IC50" not in response]:
        raise InputError(f"drugs: {missing[0].removeprefix('Drug_')} is not among GDSC's numbers")
    response_LD = response[[f"{name}_IC50" for name in names]].to_numpy(float)
    tissues, tissue_L = np.unique(features.pop("TISSUE_FACTOR").astype(str), return_inverse=True)
    if missing := sorted(set(settings.held_out) - set(tissues)):
        raise InputError(f"held_out: no tissue {missing[0]!r}; there are {', '.join(tissues)}")
    split_L = stratified(
        tissue_L,
        np.isin(tissues, settings.held_out)[tissue_L],
        settings.validation_share,
        settings.test_share,
        stream("cellduality", "split", seed),
    )
    altered_LF = features.to_numpy(np.uint8)
    common = altered_LF[split_L == TRAIN].sum(axis=0, dtype=int) >= settings.min_lines
    altered_LF = altered_LF[:, common]
    return DrugData(
        features=tuple("".join(name.split()) for name in features.columns[common]),
        drugs=tuple(names),
        altered_LF=altered_LF,
        sentence_LK=rarest_first(altered_LF, split_L == TRAIN, settings.length),
        label_LD=thirds(response_LD, split_L == TRAIN),
        split_L=split_L,
    )


def read(files: Sequence[Path]) -> tuple["pandas.DataFrame", "pandas.DataFrame"]:  # noqa: F821
    """Return response and features by COSMIC number, of the same lines in the same order."""
    import pandas as pd

    found = {path.name: path for path in files}
    tables = []
    for name in (RESPONSE, FEATURES):
        if name not in found:
            raise InputError(f"--assets: {name} is missing")
        with reading(found[name], "a gzipped table by COSMIC_ID"):
            tables.append(pd.read_csv(found[name], index_col="COSMIC_ID").sort_index())
    response, features = tables
    if not response.index.equals(features.index):
        raise InputError(
            f"{found[RESPONSE]} and {found[FEATURES]}: must hold the same cell lines (COSMIC_ID)"
        )
    return response, features


def thirds(response_LD: np.ndarray, train_L: np.ndarray) -> np.ndarray:
    """Return labels (L, D): 0 up to the lower third of training lines, 1 from the upper, else -1.

    Quantiles by linear interpolation, over the training lines that were measured.
    """
    for drug, measured in enumerate((~np.isnan(response_LD[train_L])).sum(axis=0)):
        if measured < 3:
            raise InputError(f"drug {drug} of the list: {measured} training lines, 3 are needed")
    low_D, high_D = np.nanquantile(response_LD[train_L], (1 / 3, 2 / 3), axis=0)
    label_LD = np.full(response_LD.shape, -1, dtype=np.int8)
    label_LD[response_LD <= low_D] = 0
    label_LD[response_LD >= high_D] = 1
    return label_LD


def rarest_first(altered_LF: np.ndarray, train_L: np.ndarray, length: int) -> np.ndarray:
    """Return the sentences (L, `length`): altered features, the rarest in training lines first.

    Ties are in the order of the columns.
    """
    share_F = altered_LF[train_L].mean(axis=0)
    return ranked_genes(altered_LF * (2.0 - share_F), length)
