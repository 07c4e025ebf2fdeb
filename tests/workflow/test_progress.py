"""The lines a person sees while the workflow runs."""

import logging

import pytest

from workflow.progress import Progress, in_words, known_seconds


def record(event: str, **fields) -> logging.LogRecord:
    made = logging.makeLogRecord({"msg": "snakemake's own text"})
    made.__dict__.update(fields, event=event)
    return made


def test_jobs_are_counted_and_their_blocks_replaced(capsys):
    progress = Progress({1: "train", 2: "evaluate"}, {"train": 60.0}, cores=1)
    assert not progress.filter(record("job_info", rule_msg="train seed 0"))
    assert not progress.filter(record("job_finished", job_id=1))
    assert not progress.filter(record("job_finished", job_id=2))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "start  train seed 0"
    assert lines[1].startswith("done   1/2 jobs, 0 s gone, about ")
    assert lines[2].startswith("done   2/2 jobs")


def test_errors_pass():
    progress = Progress({}, {}, cores=1)
    assert progress.filter(record("job_error", job_id=1))
    assert progress.filter(record("error"))


def test_the_estimate_follows_the_published_seconds(monkeypatch, capsys):
    now = [0.0]
    monkeypatch.setattr("workflow.progress.time.monotonic", lambda: now[0])
    progress = Progress({1: "long", 2: "long", 3: "long"}, {"long": 600.0}, cores=2)
    now[0] = 300.0  # exactly the published pace: 600 s of work on 2 cores
    progress.filter(record("job_finished", job_id=1))
    assert "5 min gone, about 10 min left" in capsys.readouterr().err


def test_seconds_are_read_from_what_was_published(tmp_path):
    (tmp_path / "p").mkdir()
    (tmp_path / "p/cost.csv").write_text("rule,jobs,seconds\np_train,2,12.5\n")
    assert known_seconds(tmp_path) == {"p_train": 12.5}


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0 s"), (89, "89 s"), (600, "10 min"), (7200, "2.0 h")]
)
def test_durations_in_words(seconds, words):
    assert in_words(seconds) == words
