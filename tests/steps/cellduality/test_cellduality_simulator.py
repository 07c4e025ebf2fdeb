"""The simulator: scanpy's own, closed forms of clamped genes; simulated perturbations."""

import numpy as np
import pytest

from steps.cellduality import perturb_data
from steps.cellduality.cells_data import scanpy_file
from steps.cellduality.data_config import Perturbations
from steps.cellduality.perturb_data import DIFFERENTIATED, MARKERS, TYPES
from steps.cellduality.sentences import PAD
from steps.cellduality.simulator import read_network
from steps.cellduality.splits import OOD
from steps.shared.runtime import InputError

SETTINGS = {
    "cells": 20,
    "steps_before": 300,
    "steps_after": 150,
    "dynamic_noise": 0.01,
    "observation_noise": 0.02,
    "detection": 0.1,
    "num_held_out": 4,
    "validation_share": 0.15,
    "test_share": 0.15,
}


@pytest.fixture(scope="module")
def network():
    return read_network(scanpy_file(perturb_data.MODEL))


def test_a_step_of_many_cells_is_scanpys_of_each(network):
    from scanpy.tools._sim import GRNsim

    theirs = GRNsim(dim=11, model="krumsiek11", params={"seed": 0})
    assert tuple(theirs.varNames) == network.genes
    state = np.random.default_rng(0).uniform(0, 1.2, (50, 11))
    expected = [theirs.Xdiff_hill(row) for row in state]
    assert network.drift(state) == pytest.approx(np.array(expected), abs=1e-14)


def test_a_course_is_that_of_scanpys_simulation(network, tmp_path):
    import scanpy

    course = scanpy.tl.sim(
        *("krumsiek11",), tmax=600, nrRealizations=1, noiseDyn=0, branching=False, seed=1,
        writedir=tmp_path,
    ).X  # fmt: skip
    assert list(network.genes)[0] == "Gata2" and course.shape == (120, 11)
    # scanpy writes every fifth step with four digits
    steps = np.full(len(course) - 1, 5)
    rng = np.random.default_rng(0)
    found = network.simulate(course[:-1].astype(float), steps, 0.0, rng)
    assert found == pytest.approx(course[1:], abs=5e-4)
    assert np.abs(course[1:] - course[:-1]).max() > 0.05  # it moves


def test_each_cell_grows_its_own_number_of_steps(network):
    rng = np.random.default_rng(1)
    start = network.start(4, rng)
    found = network.simulate(start, np.array([0, 1, 7, 3]), 0.0, rng)
    for cell, steps in enumerate((0, 1, 7, 3)):
        state = start[cell : cell + 1]
        for _ in range(steps):
            state = state + network.drift(state)
        assert found[cell] == pytest.approx(state[0], abs=1e-12)


def test_a_clamped_gene_follows_its_closed_form_and_the_others_their_rules(network):
    rng = np.random.default_rng(2)
    start = network.start(3, rng)
    clamp = np.full(start.shape, np.nan)
    clamp[0, 7], clamp[1, 7] = 0.0, 1.0  # Pu.1
    found = network.simulate(start, np.full(3, 50), 0.0, rng, clamp)
    left = (1 - network.rate) ** 50
    assert found[0, 7] == pytest.approx(start[0, 7] * left)
    assert found[1, 7] == pytest.approx(1 - (1 - start[1, 7]) * left)
    free = network.simulate(start, np.full(3, 50), 0.0, rng)
    assert found[2] == pytest.approx(free[2])
    assert found[1, 8] > free[1, 8] > found[0, 8]  # cJun follows Pu.1


def test_noise_is_added_at_every_step(network):
    start = np.zeros((4000, 11))
    clamp = np.zeros_like(start)
    found = network.simulate(start, np.full(4000, 3), 0.1, np.random.default_rng(3), clamp)
    keep = 1 - network.rate
    assert found.std() == pytest.approx(0.1 * np.sqrt(1 + keep**2 + keep**4), rel=0.02)


def test_rules_are_read_as_logic(tmp_path):
    path = tmp_path / "net.txt"
    head = "# invTimeStep = 0.5\nA = A\nA.1 = not (A and B) or A.1\nB =A\n# coupling list:\n"
    path.write_text(head + "A A 1\nA.1 A 1\nA.1 B -1\nA.1 A.1 1\nB A 2\n")
    found = read_network(path)
    assert found.genes == ("A", "A.1", "B") and found.parents == ((0,), (0, 1, 2), (0,))
    expected = {(a, p, b) for a in (0, 1) for p in (0, 1) for b in (0, 1) if not (a and b) or p}
    assert set(found.on[1]) == expected and found.on[0] == ((True,),)
    path.write_text(head + "A A 1\nB A 2\n")
    with pytest.raises(InputError, match=r"couplings of A\.1"):
        read_network(path)
    path.write_text("# invTimeStep = 1\nA = __import__('os')\n# coupling list:\n")
    with pytest.raises(InputError, match="not made of genes"):
        read_network(path)
    path.write_text("A = A\n")
    with pytest.raises(InputError, match="no invTimeStep"):
        read_network(path)
    with pytest.raises(InputError, match="none.txt: not a model's text"):
        read_network(tmp_path / "none.txt")


# perturbations
# -------------
@pytest.fixture(scope="module")
def data():
    return perturb_data.load(Perturbations(**SETTINGS), 0)


def test_pairs_are_held_out_on_distinct_targets_seen_otherwise(data):
    held_out = {data.perturbations[place] for place in data.perturbation_N[data.split_N == OOD]}
    targets = {target for _, target in held_out}
    assert len(held_out) == len(targets) == 4
    assert {operation for operation, _ in held_out} == {"knockdown", "overexpression"}
    seen = {data.perturbations[place] for place in data.perturbation_N[data.members("train")]}
    assert not seen & held_out and len(seen) == 18
    assert targets <= {target for _, target in seen}


def test_a_perturbation_moves_its_target(data):
    operation, target = np.divmod(data.perturbation_N, 11)
    rows = np.arange(len(operation))
    before, after = data.before_NG[rows, target], data.after_NG[rows, target]
    assert after[operation == 0].max() < 0.3 and after[operation == 1].min() > 0.7
    assert (before[operation == 0] > 0.5).any() and (before[operation == 1] < 0.5).any()


def test_expression_sentences_and_fates_agree(data):
    for matrix, sentence in (
        (data.before_NG, data.sentence_before_NK),
        (data.after_NG, data.sentence_after_NK),
    ):
        assert matrix.dtype == np.float32 and (matrix[matrix > 0] >= 0.1).all()
        assert ((sentence != PAD).sum(1) == (matrix > 0).sum(1)).all()
    markers = data.before_NG[:, [data.genes.index(gene) for gene in MARKERS.values()]]
    young = data.type_N == TYPES.index("progenitor")
    assert (markers[young] < DIFFERENTIATED).all()
    assert (markers[~young].argmax(1) == data.type_N[~young]).all()
    assert len(set(data.type_N)) >= 4  # the model's fates are reached


def test_a_seed_repeats_itself_and_another_holds_out_others(data):
    again, other = (perturb_data.load(Perturbations(**SETTINGS), seed) for seed in (0, 1))
    assert (again.after_NG == data.after_NG).all() and (again.split_N == data.split_N).all()
    held_out = [set(d.perturbation_N[d.split_N == OOD]) for d in (data, other)]
    assert held_out[0] != held_out[1]
    with pytest.raises(InputError, match="at most 3"):
        perturb_data.draw_held_out(3, 4, np.random.default_rng(0))
