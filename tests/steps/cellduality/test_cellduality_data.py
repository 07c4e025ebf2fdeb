"""Data: blood cells against scanpy's reader, drug response against naive thirds, no leakage."""

import gzip
import warnings

import numpy as np
import pytest
from scipy import sparse

from steps.cellduality import cells_data, drug_data
from steps.cellduality.data_config import Cells, Drugs
from steps.cellduality.splits import OOD, SPLITS, TEST, TRAIN, VALIDATION, code, stratified
from steps.shared.runtime import InputError

CELLS = {
    "length": 20,
    "num_genes": 100,
    "min_cells": 10,
    "validation_share": 0.15,
    "test_share": 0.15,
    "held_out": {"Dendritic": ["6", "7"], "CD19+ B": ["8"]},
}


# splits
# ------
def test_a_split_is_stratified_and_keeps_what_is_held_out_apart():
    group = np.repeat([0, 1, 2], [40, 20, 4])
    held_out = np.zeros(64, bool)
    held_out[[0, 5, 41]] = True
    split = stratified(group, held_out, 0.2, 0.1, np.random.default_rng(0))
    assert (np.flatnonzero(split == OOD) == [0, 5, 41]).all()
    counts = [np.bincount(split[(group == g) & ~held_out], minlength=3).tolist() for g in range(3)]
    assert counts == [[26, 8, 4], [13, 4, 2], [2, 1, 1]]
    other = stratified(group, held_out, 0.2, 0.1, np.random.default_rng(1))
    assert (other != split).any()
    with pytest.raises(InputError, match="too few"):
        stratified(np.zeros(2, int), np.zeros(2, bool), 0.3, 0.3, np.random.default_rng(0))
    with pytest.raises(InputError, match="below 1"):
        stratified(group, held_out, 0.6, 0.6, np.random.default_rng(0))
    assert [code(name) for name in SPLITS] == [TRAIN, VALIDATION, TEST, OOD]
    with pytest.raises(InputError, match="train, validation"):
        code("dev")


# blood cells
# -----------
@pytest.fixture(scope="module")
def pbmc():
    return cells_data.load(Cells(**CELLS), 0)


@pytest.fixture(scope="module")
def theirs(pbmc):
    """The cells of the types that are kept, as scanpy reads them."""
    import scanpy

    with warnings.catch_warnings(action="ignore"):
        file = scanpy.datasets.pbmc68k_reduced()
    return file[file.obs["bulk_labels"].isin(pbmc.types)]


def test_cells_are_those_that_scanpy_reads(pbmc, theirs):
    assert (pbmc.expression_NG != theirs.raw.to_adata()[:, list(pbmc.genes)].X).nnz == 0
    assert [pbmc.types[place] for place in pbmc.type_N] == list(theirs.obs["bulk_labels"])
    assert pbmc.expression_NG.min() == 0  # not the standardised ones


def test_held_out_clusters_are_seen_nowhere_else(pbmc, theirs):
    names, clusters = (np.asarray(theirs.obs[key]) for key in ("bulk_labels", "louvain"))
    wanted = (names == "Dendritic") & np.isin(clusters, ["6", "7"])
    wanted |= (names == "CD19+ B") & (clusters == "8")
    assert (np.flatnonzero(wanted) == pbmc.members("ood")).all()
    trained = set(pbmc.type_N[pbmc.members("train")])
    assert all(set(pbmc.type_N[pbmc.members(split)]) == trained for split in ("validation", "test"))


def test_genes_are_chosen_by_training_cells_alone(pbmc, theirs):
    raw, names = theirs.raw.X, theirs.raw.var_names
    train = raw[pbmc.members("train")].toarray()
    largest = np.sort(np.argsort(-train.astype(float).var(axis=0), kind="stable")[:100])
    assert pbmc.genes == tuple(names[largest])


def test_a_seed_redraws_the_split_and_repeats_itself(pbmc):
    again, other = (cells_data.load(Cells(**CELLS), seed) for seed in (0, 1))
    assert again.genes == pbmc.genes and (again.sentence_NK == pbmc.sentence_NK).all()
    assert (again.split_N == pbmc.split_N).all() and (other.split_N != pbmc.split_N).any()
    assert (other.members("ood") == pbmc.members("ood")).all()


def test_variance_of_a_sparse_matrix_is_numpys():
    rng = np.random.default_rng(0)
    matrix = rng.poisson(0.5, (30, 12)).astype(np.float32)
    expected = np.sort(np.argsort(-matrix.var(axis=0), kind="stable")[:5])
    assert (cells_data.most_variable(sparse.csr_matrix(matrix), 5) == expected).all()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"held_out": {"Dendritic": ["99"]}}, "no cell of type 'Dendritic' in cluster '99'"),
        ({"num_genes": 766}, "must be at most 765"),
        ({"min_cells": 500}, "fewer than min_cells"),
        ({"min_cells": 200, "held_out": {}}, "leaves 1 types"),
    ],
)
def test_settings_that_the_cells_do_not_bear(change, said):
    with pytest.raises(InputError, match=said):
        cells_data.load(Cells(**(CELLS | change)), 0)


def test_a_file_that_is_not_there_or_holds_no_cells(tmp_path):
    with pytest.raises(InputError, match="is not there"):
        cells_data.scanpy_file("datasets/none.h5ad")
    (tmp_path / "x.h5ad").write_bytes(b"no")
    with pytest.raises(InputError, match="not cells"):
        cells_data.read(tmp_path / "x.h5ad")


# drug response
# -------------
DRUGS = {
    "length": 4,
    "drugs": [7, 3],
    "min_lines": 2,
    "validation_share": 0.2,
    "test_share": 0.2,
    "held_out": ["skin"],
}
FEATURES = ("A_mut", "B_mut", "C_mut", "gain_cna1, gain_cna2", "D_mut")


def write_tables(folder, response, altered):
    """Write both tables as GDSC does, the lines of the second in another order."""
    lines = 1000 + np.arange(len(response))
    tissues = np.where(np.arange(len(lines)) % 3 == 0, "skin", "lung")
    with gzip.open(folder / drug_data.RESPONSE, "wt") as file:
        print("COSMIC_ID,Drug_3_IC50,Drug_7_IC50", file=file)
        for line, values in zip(lines, response, strict=True):
            print(line, *("" if np.isnan(v) else v for v in values), sep=",", file=file)
    with gzip.open(folder / drug_data.FEATURES, "wt") as file:
        names = ",".join(f'"{name}"' for name in FEATURES)
        print(f"COSMIC_ID,TISSUE_FACTOR,{names}", file=file)
        for place in reversed(range(len(lines))):
            print(lines[place], tissues[place], *altered[place], sep=",", file=file)
    return [folder / drug_data.RESPONSE, folder / drug_data.FEATURES]


@pytest.fixture
def tables(tmp_path):
    rng = np.random.default_rng(0)
    response = rng.normal(size=(45, 2))
    response[rng.random((45, 2)) < 0.2] = np.nan
    altered = (rng.random((45, 5)) < [0.1, 0.6, 0.4, 0.8, 0]).astype(int)
    return tmp_path, response, altered


def test_labels_are_thirds_of_training_lines(tables):
    data = drug_data.load(Drugs(**DRUGS), 0, write_tables(*tables))
    assert data.drugs == ("Drug_7", "Drug_3")
    assert (np.flatnonzero(data.split_L == OOD) == np.arange(0, 45, 3)).all()
    for drug, column in enumerate((1, 0)):
        values = tables[1][:, column]
        known = sorted(v for v in values[data.split_L == TRAIN] if not np.isnan(v))
        low, high = np.quantile(known, [1 / 3, 2 / 3])
        expected = [0 if v <= low else 1 if v >= high else -1 for v in values]
        assert data.label_LD[:, drug].tolist() == expected
        trained = data.label_LD[data.split_L == TRAIN, drug]
        assert (trained == 0).sum() == (trained == 1).sum() == round(len(known) / 3)


def test_pairs_are_labelled_and_of_their_split(tables):
    data = drug_data.load(Drugs(**DRUGS), 0, write_tables(*tables))
    found = {name: data.pairs(name) for name in SPLITS}
    assert sum(len(pairs) for pairs in found.values()) == (data.label_LD >= 0).sum()
    for name, pairs in found.items():
        assert (data.split_L[pairs[:, 0]] == code(name)).all()
        assert (data.label_LD[tuple(pairs.T)] >= 0).all()


def test_what_is_not_trained_on_moves_no_threshold_and_no_sentence_of_training(tables):
    folder, response, altered = tables
    data = drug_data.load(Drugs(**DRUGS), 0, write_tables(folder, response, altered))
    train = data.split_L == TRAIN
    response[~train] += 50
    altered[~train] = 1
    other = drug_data.load(Drugs(**DRUGS), 0, write_tables(folder, response, altered))
    assert (other.label_LD[train] == data.label_LD[train]).all()
    assert other.features == data.features
    assert (other.sentence_LK[train] == data.sentence_LK[train]).all()
    assert (other.label_LD[~train] != 0).all()


def test_sentences_are_altered_features_rarest_first(tables):
    data = drug_data.load(Drugs(**DRUGS), 0, write_tables(*tables))
    train = data.split_L == TRAIN
    common = [f for f in range(5) if tables[2][train, f].sum() >= 2]
    assert data.features == tuple(FEATURES[f].replace(" ", "") for f in common)
    counts = data.altered_LF[train].sum(0)
    for line, sentence in enumerate(data.sentence_LK):
        altered = np.flatnonzero(tables[2][line, common])
        expected = sorted(altered, key=lambda f: (counts[f], f))[:4]
        assert [f for f in sentence if f >= 0] == expected


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"drugs": [3, 99]}, "99 is not among"),
        ({"held_out": ["bone"]}, "no tissue 'bone'; there are lung, skin"),
    ],
)
def test_settings_that_the_tables_do_not_bear(tables, change, said):
    with pytest.raises(InputError, match=said):
        drug_data.load(Drugs(**(DRUGS | change)), 0, write_tables(*tables))


def test_tables_that_are_missing_broken_or_of_other_lines(tables):
    files = write_tables(*tables)
    with pytest.raises(InputError, match="genomic_features_v17.csv.gz is missing"):
        drug_data.read(files[:1])
    write_tables(tables[0], tables[1][:-1], tables[2])
    kept = files[1].read_bytes()
    write_tables(*tables)
    with gzip.open(files[0], "wt") as file:
        print("COSMIC_ID,Drug_3_IC50\n1,2", file=file)
    files[1].write_bytes(kept)
    with pytest.raises(InputError, match="must hold the same cell lines"):
        drug_data.read(files)
    files[0].write_bytes(b"no")
    with pytest.raises(InputError, match="not a gzipped table"):
        drug_data.read(files)


def test_a_drug_that_few_training_lines_measured():
    response = np.array([[1.0], [np.nan], [np.nan], [2.0]])
    with pytest.raises(InputError, match="1 training lines, 3 are needed"):
        drug_data.thirds(response, np.array([True, True, True, False]))
