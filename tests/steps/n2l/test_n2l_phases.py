"""N2L's phases on a few random digits: files, interruption, pairing, what is measured."""

import json
from pathlib import Path

import numpy as np
import pytest
from job_helpers import Killed, contents
from n2l_runs import MERGE, TRAIN, learnt, prepared, trained

from steps.n2l import embeddings, evaluate, learner, tune
from steps.n2l.config import Merge, Protocol
from steps.n2l.estimator import N2LClassifier
from steps.n2l.plan import Files
from steps.n2l.refine import unit
from steps.shared.fit import Fit
from steps.shared.runtime import InputError, read_csv, read_json, stream


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A folder with prepared digits, a CLIP of them, and runs."""
    folder = tmp_path_factory.mktemp("n2l")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        prepared()
        trained("clip")
        learnt("clip", "out")
    return folder


@pytest.fixture
def work(made, monkeypatch) -> Path:
    monkeypatch.chdir(made)
    return made


# prepare and train
# -----------------
def test_preparing_twice_leaves_the_same_bytes(work):
    prepared("again")
    assert contents("again") == contents("prepare")
    note = read_json("prepare/digits.json")
    assert note["shapes"]["source"] == [68, 28, 28] and len(note["names"]) == 34
    assert note["classes"][3] == "three"


def test_a_job_leaves_the_files_that_the_workflow_declares(work):
    files = (
        Files({"scale": "mini", "papers": {"n2l": {"rows": ["digits"]}}}).trained("digits").values()
    )
    assert sorted(contents("clip")) == sorted(Path(file).name for file in files)
    found = embeddings.load_learn(Path("clip/learn.safetensors"))
    assert found.x_ND.shape == (160, 8) and found.text_CD.shape == (10, 8)
    assert embeddings.load_test(Path("clip/test.safetensors"))[0].shape == (40, 8)


@pytest.mark.parametrize("count", [3, 4])
def test_a_killed_job_continues_to_the_same_bytes(work, monkeypatch, count):
    step, done = Fit._step, []

    def killing(fit, update):
        done.append(update)
        if len(done) == count:
            raise Killed
        return step(fit, update)

    monkeypatch.setattr(Fit, "_step", killing)
    with pytest.raises(Killed):
        trained(f"broken{count}")
    done.clear()
    monkeypatch.setattr(Fit, "_step", lambda f, u: (done.append(u), step(f, u))[1])
    trained(f"broken{count}")
    assert contents(f"broken{count}") == contents("clip")
    assert done == [3, 4, 5, 6]  # from the checkpoint after update 2


def test_seeds_draw_their_own_split_and_order():
    learn, test = embeddings.split(200, 40, 0)
    assert sorted([*learn, *test]) == list(range(200)) and len(test) == 40
    assert (test != embeddings.split(200, 40, 1)[1]).any()
    assert (embeddings.class_order(10, 0) != embeddings.class_order(10, 1)).any()


def test_tasks_take_the_classes_in_order_and_leave_none_over():
    order = np.array([3, 1, 4, 0, 2])
    found = embeddings.tasks(order, Protocol(first=1, step=2))
    assert [task.tolist() for task in found] == [[3], [1, 4], [0, 2]]
    with pytest.raises(InputError, match="leave some over"):
        embeddings.tasks(order, Protocol(first=2, step=2))


# merge and evaluate
# ------------------
def test_learning_twice_leaves_the_same_bytes(work):
    learnt("clip", "again_out")
    assert contents("again_out") == contents("out")


def test_every_row_is_measured_and_joint_training_is_n2l(work):
    runs = read_csv("out/digits_seed0.csv")
    value = {
        (r["table"], r["split"], r["row"], r["metric"], r["x"]): float(r["value"]) for r in runs
    }
    assert len(value) == len(runs)
    rows = {row for table, _, row, _, _ in value if table == "digits"}
    assert rows == {"zero_shot", "sequential", "joint", *learner.ROWS}
    for split in ("b0", "bhalf"):
        for metric in ("average", "last", "forgetting"):
            joint = value["digits", split, "joint", metric, ""]
            assert value["digits", split, "n2l", metric, ""] == pytest.approx(joint)
    assert value["identities", "b0", "n2l", "joint_error", ""] < 1e-10
    assert value["theta", "b0", "n2l", "kept", "0"] == 8
    curve = [value["over_tasks", "b0", "acil", "accuracy", str(task)] for task in range(1, 6)]
    assert value["digits", "b0", "acil", "average", ""] == pytest.approx(np.mean(curve))
    assert value["digits", "b0", "acil", "last", ""] == curve[-1]
    # zero-shot accuracy after the last task does not depend on how the classes came
    assert value["digits", "b0", "zero_shot", "last", ""] == pytest.approx(
        value["digits", "bhalf", "zero_shot", "last", ""]
    )


def given(seed: int = 0) -> learner.Problem:
    found = embeddings.load_learn(Path("clip/learn.safetensors"))
    tasks = embeddings.tasks(embeddings.class_order(10, seed), Protocol(first=4, step=2))
    return learner.problem(found, tasks, Merge(**MERGE), seed)


def test_rows_share_their_tasks_labels_and_random_weights(work):
    problem = given()
    plain, inter, intra = (
        learner.labelled(problem, learner.ROWS[row], 0) for row in ("acil", "inter", "intra")
    )
    for one, two in zip(plain, inter, strict=True):
        assert (one.labels_N == two.labels_N).all() and (one.weight_N == 1).all()
    within = [a.weight_N / b.weight_N for a, b in zip(intra, inter, strict=True)]
    rng = stream("n2l", "weights 0", 0)
    for weight, found in zip(within, intra, strict=True):
        drawn = [rng.normal(1, 0.5, (found.labels_N == c).sum()) for c in np.unique(found.labels_N)]
        expected = np.maximum(np.concatenate(drawn), 1e-3)
        np.testing.assert_allclose(np.sort(weight), np.sort(expected))
    other = learner.labelled(problem, learner.ROWS["intra"], 1)
    assert (other[0].weight_N != intra[0].weight_N).any()


def test_the_estimator_is_the_row_of_the_tables(work):
    problem = given()
    config = problem.config
    texts = {
        f"{t}-{c}": row
        for t, task in enumerate(problem.tasks)
        for c, row in enumerate(task.text_CD)
    }
    model = N2LClassifier(
        lambda names: np.stack([texts[name] for name in names]),
        **{"ridge": config.ridge, "theta": config.theta, "fusion": config.fusion},
        zero_shot_scale=problem.scale,
        random_state=stream("n2l", "weights 0", 0),
    )
    labels = learner.labelled(problem, learner.N2L, 0)
    expected = list(learner.classifiers(problem, learner.N2L, labels))
    for number, (task, w_DC) in enumerate(zip(problem.tasks, expected, strict=True)):
        model.partial_fit(task.x_ND, classes=[f"{number}-{c}" for c in range(len(task.text_CD))])
        np.testing.assert_allclose(model.coef_, w_DC, atol=1e-10)


def test_true_labels_reach_only_the_row_that_is_given_them(work):
    problem = given()
    hidden = problem._replace(
        tasks=[task._replace(true_N=np.zeros_like(task.true_N)) for task in problem.tasks]
    )
    for name, row in learner.ROWS.items():
        pairs = zip(
            learner.labelled(problem, row, 0), learner.labelled(hidden, row, 0), strict=True
        )
        same = all((a.labels_N == b.labels_N).all() for a, b in pairs)
        assert same == (name != "labels")


def test_a_task_without_images_is_named(work):
    found, test = embeddings.load_learn("clip/learn.safetensors"), given()
    tasks = [np.arange(8), np.array([8, 9])]
    kept = found.labels_N < 8
    with pytest.raises(InputError, match="task 2: none of its classes has an image to learn"):
        learner.problem(
            found._replace(x_ND=found.x_ND[kept], labels_N=found.labels_N[kept]),
            *(tasks, test.config, 0),
        )
    x_ND, labels_N = embeddings.load_test("clip/test.safetensors")
    held = labels_N < 8
    problem = learner.problem(found, tasks, test.config, 0)
    with pytest.raises(InputError, match="task 2: none of its classes has a test image"):
        evaluate.Test(problem, found, x_ND[held], labels_N[held], tasks)


def validated(seed: int, **change) -> dict[str, float]:
    """Return what the phases make of validation images in place of the test images."""
    trained("whole", seed=seed, **change)
    found = embeddings.load_learn("whole/learn.safetensors")
    kept, held = embeddings.split(160, 32, seed)
    left = found._replace(x_ND=found.x_ND[kept], labels_N=found.labels_N[kept])
    embeddings.save(Path("held"), left, found.x_ND[held], found.labels_N[held])
    runs = read_csv(learnt("held", "held_out", seed=seed, expansion=12))
    last = (r for r in runs if (r["table"], r["split"], r["metric"]) == ("digits", "b0", "last"))
    cosine = found.x_ND[held] @ unit(found.text_CD).T
    by_hand = 100 * (cosine.argmax(1) == found.labels_N[held]).mean()
    return {r["row"]: float(r["value"]) for r in last} | {"by_hand": by_hand}


def test_sizes_are_measured_on_validation_images_alone(work, monkeypatch):
    kept, held = tune.validation(200, 40, 100)
    _, test = embeddings.split(200, 40, 100)
    assert len(held) == 32 and sorted([*kept, *held, *test]) == list(range(200))
    block = {"train": {"common": TRAIN, "rows": {"digits": {}}}, "merge": MERGE}
    monkeypatch.setattr(tune, "load", lambda scale: {"papers": {"n2l": block}})
    monkeypatch.setattr(tune, "SEEDS", (100,))
    flags = ["--row", "digits", "--data", "prepare/digits.json", "--out", "sizes.csv"]
    tune.main([*flags, "--dims", "4", "8", "--expansions", "12", "24"])
    lines = read_csv("sizes.csv")
    sizes = [(line["embed_dim"], line["expansion"]) for line in lines]
    assert sizes == [(dim, m) for dim in ("4", "8") for m in ("", "12", "24")]
    accuracy = dict(zip(sizes, (float(line["accuracy"]) for line in lines), strict=True))
    expected = validated(100, embed_dim=4)
    assert accuracy["4", ""] == pytest.approx(expected["by_hand"])
    assert accuracy["4", ""] == pytest.approx(expected["zero_shot"])
    assert accuracy["4", "12"] == pytest.approx(expected["rail"])


def test_figures_read_the_first_seed_of_the_plan_alone():
    block = {"rows": ["digits", "emoji"], "seeds": [3, 1]}
    assert Files({"scale": "mini", "papers": {"n2l": block}}).shown() == [
        f"results/{{scale}}/n2l/merge/{row}/seed3/labels.safetensors" for row in block["rows"]
    ]


def test_a_file_of_another_kind_is_named(work, tmp_path):
    path = tmp_path / "learn.safetensors"
    path.write_bytes(b"no")
    with pytest.raises(InputError, match="not embeddings as training writes them"):
        embeddings.load_learn(path)
    with pytest.raises(InputError, match=r"merge\.protocols has no such data set"):
        learnt("clip", "elsewhere", dataset="emoji")
    files = [
        part for name in ("learn", "test", "labels", "known") for part in (f"--{name}", "none")
    ]
    config = ["--config", json.dumps(MERGE), "--row", "emoji"]
    with pytest.raises(InputError, match=r"merge\.protocols has no such data set"):
        evaluate.main([*config, *files, "--out", "elsewhere"])
