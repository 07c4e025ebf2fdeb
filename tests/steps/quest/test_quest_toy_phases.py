"""The toy's preparation, training and merging on a tiny grid: files, same bytes, interruption."""

from pathlib import Path

import numpy as np
import pytest
from job_helpers import Killed, contents
from phase_runs import merged
from toy_runs import DATA, PROBLEM, TOY, prepared, run

from steps.quest import merge, toy, toy_train
from steps.quest.plan import Files
from steps.quest.stacked import Stack
from steps.quest.toy_config import Toy, column, grid
from steps.shared.runtime import InputError, read_csv, read_json, sha256_file


@pytest.fixture
def work(tmp_path, monkeypatch) -> Path:
    """A folder with prepared data, in which jobs run."""
    monkeypatch.chdir(tmp_path)
    prepared()
    return tmp_path


# prepare and train
# -----------------
def test_preparing_twice_leaves_the_same_bytes(work):
    first = contents(work / "prepare")
    prepared("again")
    assert contents(work / "again") == first
    problem, bias, tests = toy.load(Path(DATA))
    assert problem.model_dump() == PROBLEM
    assert np.linalg.norm(bias) == pytest.approx(3)
    assert tests["biased"].biased_B.all() and not tests["robust"].biased_B.any()
    assert read_json(DATA)["sha256"] == sha256_file("prepare/toy.safetensors")


def test_a_job_leaves_the_files_that_the_workflow_declares_for_each_row(work):
    folder = run("out")
    rows = {"standard": {"tasks": ["toy"]}, "quest": {"tasks": ["toy"]}}
    block = {"rows": [*rows], "train": {"common": {"toy": TOY}, "rows": rows}}
    declared = Files({"scale": "mini", "papers": {"quest": block}}).trained("toy")
    names = [name.format(scale="mini", seed=0) for name in declared]
    names = [name.removeprefix("results/mini/quest/train/toy/") for name in names]
    assert sorted(contents(folder)) == sorted(names)
    assert len(declared) == 6
    for row in ("standard", "quest"):
        lines = read_csv(folder / row / "seed0" / "history.csv")
        assert [line["step"] for line in lines] == ["0", "2", "4"]
        # 2 forms x 4 grid points x 3 metrics
        assert len(lines[0]) == 1 + 24
        for form in ("minimal", "full"):
            losses = [float(lines[-1][column(form, *point, "loss")]) for point in grid(Toy(**TOY))]
            assert len(set(losses)) == 4
    assert list(Path("state").iterdir()) == []


def test_a_row_trains_in_the_forms_that_name_it(work):
    folder = run("out", rows={"minimal": ["quest", "standard"], "full": ["standard"]})
    assert not (folder / "quest/seed0/full.safetensors").exists()
    assert (folder / "standard/seed0/full.safetensors").exists()
    assert len(read_csv(folder / "quest/seed0/history.csv")[0]) == 1 + 12


def test_a_form_may_be_shorter_than_the_other(work):
    folder = run("out", "quest", steps={"minimal": 2, "full": 6}) / "quest/seed0"
    config = Toy(**TOY)
    found = {
        f: toy_train.read_history(folder / "history.csv", config, f, "loss") for f in TOY["rows"]
    }
    assert {form: len(loss_LM) for form, loss_LM in found.items()} == {"minimal": 2, "full": 4}


def test_the_same_job_leaves_the_same_bytes_whatever_rows_share_it(work):
    together, alone = contents(run("one")), contents(run("two", "quest"))
    assert alone == {name: data for name, data in together.items() if name.startswith("quest")}


def test_rows_of_a_seed_see_the_same_samples(work, monkeypatch):
    seen: dict[tuple, list] = {}
    step = Stack.step

    def spied(stack, loss):
        def recorded(own):
            forward = own.forward

            def spied_forward(*inputs):
                seen.setdefault(key, []).append([part.tolist() for part in inputs])
                return forward(*inputs)

            monkeypatch.setattr(own, "forward", spied_forward)
            value = loss(own)
            monkeypatch.setattr(own, "forward", forward)
            return value

        part = getattr(stack.model, "blocks", [stack.model])[0]
        key = (type(stack.model).__name__, part.row)
        return step(stack, recorded)

    monkeypatch.setattr(Stack, "step", spied)
    run("out", "standard", "qknorm_ds", "quest")
    first = seen["Full", "standard"]
    assert len(seen) == 6 and len(first) == 4
    assert all(batches == first for batches in seen.values())
    assert first[0] != first[1]
    seen.clear()
    run("other", "quest", seed=1)
    assert seen["Full", "quest"][0] != first[0]


@pytest.mark.parametrize("count", [3, 6, 15])
def test_a_killed_job_continues_to_the_same_bytes(work, monkeypatch, count):
    whole = contents(run("whole"))
    step, done = Stack.step, []

    def killing(stack, loss):
        done.append(1)
        if len(done) == count:
            raise Killed
        return step(stack, loss)

    monkeypatch.setattr(Stack, "step", killing)
    with pytest.raises(Killed):
        run("broken")
    before = len(done) - 1
    done.clear()
    monkeypatch.setattr(Stack, "step", lambda s, loss: (done.append(1), step(s, loss))[1])
    assert contents(run("broken")) == whole
    # 2 rows x 2 forms x 4 updates, of which only those since the last checkpoint are repeated
    assert len(done) == 16 - before // 2 * 2
    assert list(Path("state").iterdir()) == []


# merge
# -----
def test_merge_selects_every_row_by_hash_and_names_one_that_is_missing(work):
    run("out")
    selection = read_json(merged("out", "standard", "quest", into="merge/seed0"))
    assert list(selection) == ["quest", "standard"]
    entry = selection["quest"]
    folder = Path("merge/seed0") / entry["folder"]
    assert entry["sha256"]["full.safetensors"] == sha256_file(folder / "full.safetensors")
    absent = "out/qnorm/seed0/full.safetensors"
    with pytest.raises(InputError, match=f"{absent}: no such file, the model of row qnorm"):
        merge.main(["--models", absent, "--out", "merge/seed0"])
