"""Assets: every way in which a fetch can fail, and entries that are refused. No network is used."""

import errno
import hashlib
import os
import shutil
from pathlib import Path

import pytest
from asset_packages import CONTENT, FILES, make_asset, package
from hypothesis import given
from hypothesis import strategies as st
from job_helpers import contents

from steps.shared import assets
from steps.shared.asset_manifest import Asset
from steps.shared.runtime import InputError


def _failure(asset: Asset, cache: Path) -> str:
    with pytest.raises(InputError) as caught:
        assets.fetch(asset, cache)
    message = str(caught.value)
    assert "\n" not in message and "asset tiny" in message and "tiny 1.0" in message
    assert not (cache / "assets" / asset.folder).exists()
    assert not list(cache.rglob("*.partial"))
    return message


def test_a_bad_hash_is_refused_before_unpacking(registry, tmp_path):
    registry.serve(make_asset(), b"something else")
    message = _failure(make_asset(), tmp_path / "cache")
    got = hashlib.sha256(b"something else").hexdigest()
    assert make_asset().sha256 in message and got in message and "removed" in message
    assert not list((tmp_path / "cache").rglob("*.deb"))


FAILURES = [
    ("debian", "E: Unable to locate package tiny", "no such package and version"),
    ("debian", "Version '1.0' for 'tiny' was not found", "no such package and version"),
    ("pypi", "ERROR: No matching distribution found for tiny==1.0", "no such package and version"),
    ("npm", "npm error code E404", "no such package and version"),
    ("npm", "npm error code ETARGET", "no such package and version"),
    ("debian", "W: Temporary failure resolving 'mirror'", "no network"),
    ("pypi", "NewConnectionError; No matching distribution found for tiny", "no network"),
    ("npm", "npm error code ENOTFOUND", "no network"),
    ("debian", "E: write - write (28: No space left on device)", "bytes more"),
    ("pypi", "/usr/bin/python3: No module named pip", "needs the program pip"),
    ("npm", "first line; npm error code EACCES", "npm error code EACCES"),
]


@pytest.mark.parametrize(("source", "said", "told"), FAILURES)
def test_what_a_client_says_becomes_one_line(source, said, told, registry, tmp_path):
    program = {"pypi": "pip", "debian": "apt-get", "npm": "npm"}[source]
    lines = said.replace("; ", "\n")
    registry.says(program, f'[ "$1" = update ] && exit 0\ncat >&2 <<"END"\n{lines}\nEND\nexit 1')
    assert told in _failure(make_asset(source), tmp_path / "cache")


@pytest.mark.parametrize("source", ["debian", "npm"])
def test_a_missing_client_costs_only_the_papers_that_need_it(source, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    message = _failure(make_asset(source), tmp_path / "cache")
    program = {"debian": "apt-get", "npm": "npm"}[source]
    assert f"program {program}" in message and "everything else still does" in message


def test_stale_package_lists_are_refreshed_once(registry, tmp_path):
    registry.serve(make_asset(), package("debian"))
    mark = tmp_path / "updated"
    registry.says(
        "apt-get",
        f'if [ "$1" = update ]; then touch "{mark}"; exit 0; fi\n'
        f'[ -e "{mark}" ] || {{ echo "E: Unable to locate package" >&2; exit 100; }}\n'
        f'cp "{registry.folder}"/* .',
    )
    assert contents(assets.fetch(make_asset(), tmp_path / "cache")) == CONTENT
    expected = ["download tiny=1.0", "update", "download tiny=1.0"]
    assert registry.calls == [f"apt-get {call}" for call in expected]


def test_lists_that_cannot_be_refreshed_mean_no_network(registry, tmp_path):
    registry.says(
        "apt-get",
        '[ "$1" = update ] && { echo "W: Temporary failure resolving host" >&2; exit 0; }\n'
        'echo "E: Unable to locate package tiny" >&2\nexit 100',
    )
    assert "no network" in _failure(make_asset(), tmp_path / "cache")
    assert len(registry.calls) == 3


def test_a_silent_client_is_named(registry, tmp_path):
    registry.says("npm", "exit 7")
    assert "npm failed: it said nothing" in _failure(make_asset("npm"), tmp_path / "cache")
    registry.says("npm", "exit 0")
    assert "left 0 files" in _failure(make_asset("npm"), tmp_path / "cache")


def test_a_full_disk_says_how_many_bytes_and_leaves_nothing_half_done(
    registry, tmp_path, monkeypatch
):
    registry.serve(make_asset(), package("debian"))

    def full(source, target, length=0):
        target.write(source.read(10))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfileobj", full)
        message = _failure(make_asset(), tmp_path / "cache")
    assert f"needs {len(CONTENT['data/one.txt'])} bytes more" in message
    assert contents(assets.fetch(make_asset(), tmp_path / "cache")) == CONTENT
    assert len(registry.calls) == 1


def test_a_cache_that_cannot_be_written_is_named(registry, tmp_path):
    (tmp_path / "cache").write_text("a file, not a folder")
    with pytest.raises(InputError, match="asset tiny .* set RETABLE_CACHE"):
        assets.fetch(make_asset(), tmp_path / "cache")


def test_a_missing_member_and_a_broken_package_are_named(registry, tmp_path):
    asset = make_asset(members=["data/one.txt", "data/none.txt"])
    registry.serve(asset, package("debian"))
    assert "no member data/none.txt" in _failure(asset, tmp_path / "cache")
    for body in (b"neither ar nor tar", package("debian")[:-60]):
        registry.serve(make_asset(body=body), body)
        assert "cannot be unpacked" in _failure(make_asset(body=body), tmp_path / "cache")


@pytest.mark.parametrize("source", FILES)
def test_a_listed_member_that_is_a_link_is_refused(source, registry, tmp_path):
    body = package(source, {}, {"data/one.txt": "/etc/passwd"})
    asset = make_asset(source, body, members=["data/one.txt"])
    registry.serve(asset, body)
    assert "data/one.txt is a link" in _failure(asset, tmp_path / "cache")


@given(st.sampled_from(["../a", "/etc/passwd", "a/../../b", "./a", "a//b", "a/", ".", ""]))
def test_members_outside_the_package_are_refused(member):
    with pytest.raises(InputError, match="asset tiny: members: .*plain path"):
        make_asset(members=[member])


@pytest.mark.parametrize(
    "change",
    [
        {"sha256": "0" * 63}, {"bytes": 0}, {"source": "ftp"}, {"file": "a/b.deb"}, {"members": []},
        {"package": "-o=evil"}, {"members": ["a/x", "b/x"]}, {"unknown": 1}, {"version": 1.0},
    ],
)  # fmt: skip
def test_a_wrong_entry_is_refused_by_name_and_key(change):
    with pytest.raises(InputError, match=f"asset tiny: {next(iter(change))}"):
        make_asset(**change)
