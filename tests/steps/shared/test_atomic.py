"""Files that appear whole or not at all, and state folders that one process holds at a time."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from steps.shared.atomic import atomic_folder, atomic_path
from steps.shared.job_state import training_state
from steps.shared.runtime import InputError, write_text

ROOT = Path(__file__).resolve().parents[3]
KEY = {"paper": "p", "row": "r", "seed": 0, "config": {"a": 1}}
# a job that stops, with its file half written, until it is killed; argv: the path to write
HALF = """
import sys, time
from steps.shared.atomic import atomic_path
with atomic_path(sys.argv[1]) as temporary:
    temporary.write_text("half")
    print("writing", flush=True)
    time.sleep(60)
"""


def start(code: str, *argv: object) -> subprocess.Popen[bytes]:
    """Start Python code and wait for its first line."""
    command = [sys.executable, "-c", code, *map(str, argv)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout.readline()
    return process


def kill(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()


# files
# -----
def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "new" / "a.txt"
    write_text(path, "old")
    with pytest.raises(RuntimeError), atomic_path(path) as temporary:
        temporary.write_text("half")
        assert path.read_text() == "old"
        raise RuntimeError
    assert path.read_text() == "old"
    assert os.listdir(path.parent) == ["a.txt"]
    with atomic_path(path) as temporary:
        assert temporary.is_relative_to(path.parent)  # else the rename could cross file systems
        temporary.write_text("new")
    assert path.read_text() == "new"
    assert os.listdir(path.parent) == ["a.txt"]


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "new" / "model"
    (path.parent / ".model.tmp").mkdir(parents=True)
    (path.parent / ".model.tmp" / "half").touch()  # of a killed writer
    for name in ("old", "new"):
        with atomic_folder(path) as folder:
            (folder / name).touch()
        assert [file.name for file in path.iterdir()] == [name]
    with pytest.raises(RuntimeError), atomic_folder(path) as folder:
        (folder / "half").touch()
        raise RuntimeError
    assert [file.name for file in path.parent.rglob("*")] == ["model", "new"]


@pytest.mark.parametrize("mask, bits", [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_permissions_follow_the_umask(tmp_path, mask, bits):
    before = os.umask(mask)
    try:
        write_text(tmp_path / "a", "")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == bits


def test_two_writers_of_one_path_do_not_share_a_file(tmp_path):
    path = tmp_path / "a"
    with atomic_path(path) as one, atomic_path(path) as two:
        one.write_text("first to begin")
        two.write_text("second")
    assert path.read_text() == "first to begin"  # it ended last
    assert os.listdir(tmp_path) == ["a"]


def test_what_a_killed_writer_left_goes_and_a_living_one_is_let_be(tmp_path):
    path = tmp_path / "a[1].txt"
    killed, living = start(HALF, path), start(HALF, path)
    try:
        kill(killed)
        (remains,) = tmp_path.glob(f".*-{killed.pid}.*.tmp")
        # beside the file that they are given, as safetensors does
        (remains / ".tmpXyZ").touch()
        write_text(tmp_path / "b", "another path")
        assert remains.exists()
        write_text(path, "whole")
        assert not remains.exists()
        (others,) = tmp_path.glob(".*.tmp")
        assert f"-{living.pid}." in others.name
        assert [file.read_text() for file in others.iterdir()] == ["half"]
    finally:
        kill(living)


def test_what_a_process_of_another_host_writes_is_let_be(tmp_path):
    host = os.uname().nodename
    with atomic_path(tmp_path / "a") as temporary:
        name = temporary.parent.name
        temporary.touch()
    process = start("print(1, flush=True)")
    process.communicate()  # its id is nobody's now
    other = tmp_path / name.replace(f"{host}-{os.getpid()}.", f"other{host}-{process.pid}.")
    own = tmp_path / name.replace(f"-{os.getpid()}.", f"-{process.pid}.")
    other.mkdir()
    own.mkdir()
    write_text(tmp_path / "a", "")
    assert (other.exists(), own.exists()) == (True, False)


# state folders
# -------------
def test_a_state_folder_goes_with_success_and_stays_with_failure(tmp_path):
    with pytest.raises(RuntimeError), training_state(tmp_path, KEY) as folder:
        (folder / "checkpoint").write_text("half way")
        raise RuntimeError
    with training_state(tmp_path, {**KEY, "config": {"a": 2}}) as other:
        assert other != folder
        assert not (other / "checkpoint").exists()
    with training_state(tmp_path, KEY) as again:
        assert (again / "checkpoint").read_text() == "half way"
    assert list(tmp_path.iterdir()) == []


def test_one_job_has_one_trainer_and_a_killed_one_leaves_its_state(tmp_path):
    code = (
        "import sys, time; from steps.shared.job_state import training_state as hold\n"
        f"with hold({str(tmp_path)!r}, {KEY!r}) as folder:\n"
        "    (folder / 'checkpoint').write_text('kept'); print('held', flush=True); time.sleep(60)"
    )
    holder = start(code)
    try:
        with pytest.raises(InputError) as refused, training_state(tmp_path, KEY):
            pass
        assert "another process is working on this job" in str(refused.value)
        assert "\n" not in str(refused.value)
        with training_state(tmp_path, {**KEY, "seed": 1}):
            pass  # another job is free
    finally:
        kill(holder)
    with training_state(tmp_path, KEY) as folder:
        assert (folder / "checkpoint").read_text() == "kept"


def assert_held(root: Path) -> None:
    with pytest.raises(InputError, match="another process"), training_state(root, KEY):
        pass


def test_a_lock_taken_as_the_job_before_ends_is_of_a_new_folder(tmp_path, monkeypatch):
    before, lock = training_state(tmp_path, KEY), fcntl.flock
    (before.__enter__() / "checkpoint").touch()

    def late(file, how):  # the job ends after its lock file was opened and before it is locked
        monkeypatch.setattr(fcntl, "flock", lock)
        before.__exit__(None, None, None)
        lock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with training_state(tmp_path, KEY) as folder:
        assert [path.name for path in folder.iterdir()] == ["lock"]
        assert_held(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_job_holds_its_lock_until_the_folder_is_out_of_the_way(tmp_path, monkeypatch):
    rename, moments = os.rename, []

    def watched(source, target):
        assert_held(tmp_path)
        moments.append(source)
        rename(source, target)

    monkeypatch.setattr(os, "rename", watched)
    with training_state(tmp_path, KEY) as folder:
        pass
    assert moments == [folder]


def test_a_job_that_starts_while_the_one_before_is_removed_keeps_its_folder(tmp_path, monkeypatch):
    after, remove = training_state(tmp_path, KEY), shutil.rmtree
    folders = []

    def slow(path, **options):
        monkeypatch.setattr(shutil, "rmtree", remove)
        folders.append(after.__enter__())
        assert not (folders[0] / "checkpoint").exists()
        (folders[0] / "mine").touch()
        remove(path, **options)

    with training_state(tmp_path, KEY) as folder:
        (folder / "checkpoint").touch()
        (folder / "other").touch()
        monkeypatch.setattr(shutil, "rmtree", slow)
    assert sorted(path.name for path in folders[0].iterdir()) == ["lock", "mine"]
    assert_held(tmp_path)
    after.__exit__(None, None, None)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_set_aside_by_a_killed_process_goes_with_the_next_success(tmp_path):
    with training_state(tmp_path, KEY) as folder:
        aside = tmp_path / f".{folder.name}.abc.tmp"
        aside.mkdir()
        (aside / "checkpoint").touch()
    assert list(tmp_path.iterdir()) == []
