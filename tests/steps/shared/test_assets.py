"""Assets: pins, the shared cache, and every way in which a fetch can fail. No network is used."""

import errno
import hashlib
import io
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steps.shared import assets
from steps.shared.asset_manifest import Asset, from_json, load_manifest
from steps.shared.runtime import InputError

CONTENT = {"data/one.txt": b"one\n", "data/deep/two.bin": bytes(range(256)) * 64}
FILES = {"pypi": "tiny-1.0-py3-none-any.whl", "npm": "tiny-1.0.tgz", "debian": "tiny_1.0_all.deb"}


def _tar(entries: dict[str, bytes], mode: str, links: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, content in entries.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for name, target in links.items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info)
    return buffer.getvalue()


def _wheel(entries: dict[str, bytes], links: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
        for name, target in links.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = 0o120777 << 16
            archive.writestr(info, target)
    return buffer.getvalue()


def _deb(entries: dict[str, bytes], links: dict[str, str]) -> bytes:
    # an odd control part: the reader must skip its padding byte
    parts = {"debian-binary": b"2.0\n", "control.tar.xz": b"odd", "data.tar.xz": b""}
    parts["data.tar.xz"] = _tar({f"./{name}": entries[name] for name in entries}, "w:xz", links)
    out = b"!<arch>\n"
    for name, body in parts.items():
        out += f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(body):<10}`\n".encode()
        out += body + b"\n" * (len(body) % 2)
    return out


def _package(source: str, entries: dict[str, bytes] = CONTENT, links=None) -> bytes:
    links = links or {}
    if source == "pypi":
        return _wheel(entries, links)
    return _deb(entries, links) if source == "debian" else _tar(entries, "w:gz", links)


def _asset(source: str = "debian", body: bytes | None = None, **changes) -> Asset:
    body = _package(source) if body is None else body
    entry = {
        "name": "tiny", "source": source, "package": "tiny", "version": "1.0",
        "sha256": hashlib.sha256(body).hexdigest(), "bytes": len(body), "licence": "MIT",
        "file": FILES.get(source, "x"), "members": list(CONTENT),
    }  # fmt: skip
    return from_json("tiny", json.dumps({**entry, **changes}))


class Registry:
    """Fake pip, apt-get and npm: each call is noted, then a shell line of the test runs."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.calls_file = folder / "registry", folder / "calls"
        self.folder.mkdir()
        self.programs = folder / "bin"
        self.programs.mkdir()
        for name in ("pip", "apt-get", "npm"):
            self.says(name, f'exec cp "{self.folder}"/* .')
        monkeypatch.setenv("PATH", f"{self.programs}:/usr/bin:/bin")
        monkeypatch.setattr(sys, "executable", str(self.programs / "pip"))

    def says(self, program: str, line: str) -> None:
        script = self.programs / program
        script.write_text(f'#!/bin/sh\necho "{program} $*" >> "{self.calls_file}"\n{line}\n')
        script.chmod(0o755)

    def serve(self, asset: Asset, body: bytes) -> None:
        (self.folder / asset.file).write_bytes(body)

    @property
    def calls(self) -> list[str]:
        return self.calls_file.read_text().splitlines() if self.calls_file.exists() else []


@pytest.fixture
def registry(tmp_path, monkeypatch):
    return Registry(tmp_path, monkeypatch)


def _contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if not path.is_dir())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def _failure(asset: Asset, cache: Path) -> str:
    with pytest.raises(InputError) as caught:
        assets.fetch(asset, cache)
    message = str(caught.value)
    assert "\n" not in message and "asset tiny" in message and "tiny 1.0" in message
    assert not (cache / "assets" / asset.folder).exists()
    assert not list(cache.rglob("*.partial"))
    return message


def test_the_manifest_is_valid_and_pins_what_it_needs():
    manifest = load_manifest()
    assert {"gcide", "wordnet"} <= set(manifest)
    for name, asset in manifest.items():
        assert asset.name == name
        assert from_json(name, json.dumps(asset.model_dump())) == asset


@pytest.mark.parametrize("source", FILES)
def test_only_listed_members_are_unpacked(source, registry, tmp_path):
    stray = {**CONTENT, "../escape.txt": b"x", "data/other.txt": b"not listed"}
    body = _package(source, stray, {"data/stray-link": "/etc/passwd"})
    asset = _asset(source, body)
    registry.serve(asset, body)
    folder = assets.fetch(asset, tmp_path / "cache")
    assert folder == tmp_path / "cache" / "assets" / f"tiny-1.0-{asset.sha256[:8]}"
    assert _contents(folder) == CONTENT
    assert not list(tmp_path.rglob("escape.txt"))
    pin = {"pypi": "tiny==1.0", "npm": "tiny@1.0", "debian": "tiny=1.0"}[source]
    assert len(registry.calls) == 1 and registry.calls[0].endswith(pin)
    assert ("--only-binary :all:" in registry.calls[0]) == (source == "pypi")


def test_a_source_distribution_is_asked_for_as_one(registry, tmp_path):
    body = _tar(CONTENT, "w:gz", {})
    asset = _asset("pypi", body, file="tiny-1.0.tar.gz")
    registry.serve(asset, body)
    assert _contents(assets.fetch(asset, tmp_path / "cache")) == CONTENT
    assert "--no-binary :all:" in registry.calls[0]


@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="dpkg-deb is not installed")
@pytest.mark.parametrize("compression", ["xz", "gzip"])
def test_a_package_built_by_dpkg_is_read(compression, registry, tmp_path):
    tree = tmp_path / "tree"
    for name, content in CONTENT.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(content)
    (tree / "DEBIAN").mkdir()
    control = "Package: tiny\nVersion: 1.0\nArchitecture: all\nMaintainer: none\nDescription: x\n"
    (tree / "DEBIAN" / "control").write_text(control)
    command = ["/usr/bin/dpkg-deb", f"-Z{compression}", "--root-owner-group", "--build", "tree"]
    subprocess.run([*command, "t.deb"], cwd=tmp_path, check=True, capture_output=True)
    body = (tmp_path / "t.deb").read_bytes()
    registry.serve(_asset(body=body), body)
    assert _contents(assets.fetch(_asset(body=body), tmp_path / "cache")) == CONTENT


def test_a_warm_cache_needs_no_program_and_no_network(registry, tmp_path, monkeypatch):
    body = _package("debian")
    registry.serve(_asset(), body)
    folder = assets.fetch(_asset(), tmp_path / "cache")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(subprocess, "run", None)
    assert assets.fetch(_asset(), tmp_path / "cache") == folder


def test_a_verified_download_is_not_fetched_again(registry, tmp_path):
    registry.serve(_asset(), _package("debian"))
    folder = assets.fetch(_asset(), tmp_path / "cache")
    shutil.rmtree(folder)
    assert _contents(assets.fetch(_asset(), tmp_path / "cache")) == CONTENT
    assert len(registry.calls) == 1
    # but a kept download that went bad is
    shutil.rmtree(folder)
    next((tmp_path / "cache" / "downloads").rglob("*.deb")).write_bytes(b"rotten")
    assert _contents(assets.fetch(_asset(), tmp_path / "cache")) == CONTENT
    assert len(registry.calls) == 2


def test_a_member_added_to_the_manifest_is_unpacked_beside_the_others(registry, tmp_path):
    first, *_ = CONTENT
    registry.serve(_asset(), _package("debian"))
    folder = assets.fetch(_asset(members=[first]), tmp_path / "cache")
    assert list(_contents(folder)) == [first]
    assert assets.fetch(_asset(), tmp_path / "cache") == folder
    assert _contents(folder) == CONTENT and len(registry.calls) == 1


def test_a_bad_hash_is_refused_before_unpacking(registry, tmp_path):
    registry.serve(_asset(), b"something else")
    message = _failure(_asset(), tmp_path / "cache")
    got = hashlib.sha256(b"something else").hexdigest()
    assert _asset().sha256 in message and got in message and "removed" in message
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
    assert told in _failure(_asset(source), tmp_path / "cache")


@pytest.mark.parametrize("source", ["debian", "npm"])
def test_a_missing_client_costs_only_the_papers_that_need_it(source, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    message = _failure(_asset(source), tmp_path / "cache")
    program = {"debian": "apt-get", "npm": "npm"}[source]
    assert f"program {program}" in message and "everything else still does" in message


def test_stale_package_lists_are_refreshed_once(registry, tmp_path):
    registry.serve(_asset(), _package("debian"))
    mark = tmp_path / "updated"
    registry.says(
        "apt-get",
        f'if [ "$1" = update ]; then touch "{mark}"; exit 0; fi\n'
        f'[ -e "{mark}" ] || {{ echo "E: Unable to locate package" >&2; exit 100; }}\n'
        f'cp "{registry.folder}"/* .',
    )
    assert _contents(assets.fetch(_asset(), tmp_path / "cache")) == CONTENT
    expected = ["download tiny=1.0", "update", "download tiny=1.0"]
    assert registry.calls == [f"apt-get {call}" for call in expected]


def test_lists_that_cannot_be_refreshed_mean_no_network(registry, tmp_path):
    registry.says(
        "apt-get",
        '[ "$1" = update ] && { echo "W: Temporary failure resolving host" >&2; exit 0; }\n'
        'echo "E: Unable to locate package tiny" >&2\nexit 100',
    )
    assert "no network" in _failure(_asset(), tmp_path / "cache")
    assert len(registry.calls) == 3


def test_a_silent_client_is_named(registry, tmp_path):
    registry.says("npm", "exit 7")
    assert "npm failed: it said nothing" in _failure(_asset("npm"), tmp_path / "cache")
    registry.says("npm", "exit 0")
    assert "left 0 files" in _failure(_asset("npm"), tmp_path / "cache")


def test_a_full_disk_says_how_many_bytes_and_leaves_nothing_half_done(
    registry, tmp_path, monkeypatch
):
    registry.serve(_asset(), _package("debian"))

    def full(source, target, length=0):
        target.write(source.read(10))
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfileobj", full)
        message = _failure(_asset(), tmp_path / "cache")
    assert f"needs {len(CONTENT['data/one.txt'])} bytes more" in message
    assert _contents(assets.fetch(_asset(), tmp_path / "cache")) == CONTENT
    assert len(registry.calls) == 1


def test_a_cache_that_cannot_be_written_is_named(registry, tmp_path):
    (tmp_path / "cache").write_text("a file, not a folder")
    with pytest.raises(InputError, match="asset tiny .* set RETABLE_CACHE"):
        assets.fetch(_asset(), tmp_path / "cache")


def test_a_missing_member_and_a_broken_package_are_named(registry, tmp_path):
    asset = _asset(members=["data/one.txt", "data/none.txt"])
    registry.serve(asset, _package("debian"))
    assert "no member data/none.txt" in _failure(asset, tmp_path / "cache")
    for body in (b"neither ar nor tar", _package("debian")[:-60]):
        registry.serve(_asset(body=body), body)
        assert "cannot be unpacked" in _failure(_asset(body=body), tmp_path / "cache")


@pytest.mark.parametrize("source", FILES)
def test_a_listed_member_that_is_a_link_is_refused(source, registry, tmp_path):
    body = _package(source, {}, {"data/one.txt": "/etc/passwd"})
    asset = _asset(source, body, members=["data/one.txt"])
    registry.serve(asset, body)
    assert "data/one.txt is a link" in _failure(asset, tmp_path / "cache")


@given(st.sampled_from(["../a", "/etc/passwd", "a/../../b", "./a", "a//b", "a/", ".", ""]))
def test_members_outside_the_package_are_refused(member):
    with pytest.raises(InputError, match="asset tiny: members: .*plain path"):
        _asset(members=[member])


@pytest.mark.parametrize(
    "change",
    [
        {"sha256": "0" * 63}, {"bytes": 0}, {"source": "ftp"}, {"file": "a/b.deb"}, {"members": []},
        {"package": "-o=evil"}, {"members": ["a/x", "b/x"]}, {"unknown": 1}, {"version": 1.0},
    ],
)  # fmt: skip
def test_a_wrong_entry_is_refused_by_name_and_key(change):
    with pytest.raises(InputError, match=f"asset tiny: {next(iter(change))}"):
        _asset(**change)


def _slow_fetch(cache: Path, start, results) -> None:
    start.wait()
    results.put(sorted(_contents(assets.fetch(_asset(), cache))))


def test_many_processes_share_one_fetch(registry, tmp_path):
    registry.serve(_asset(), _package("debian"))
    registry.says("apt-get", f'sleep 0.2\nexec cp "{registry.folder}"/* .')
    context = multiprocessing.get_context("fork")
    start, results = context.Event(), context.Queue()
    workers = [
        context.Process(target=_slow_fetch, args=(tmp_path / "cache", start, results))
        for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    start.set()
    assert [results.get(timeout=20) for _ in workers] == [sorted(CONTENT)] * 4
    for worker in workers:
        worker.join()
    assert len(registry.calls) == 1


def _stuck_unpack(cache: Path) -> None:
    def stuck(source, target, length=0):
        target.write(source.read(10))
        target.flush()
        (cache / "writing").touch()
        time.sleep(60)

    shutil.copyfileobj = stuck
    assets.fetch(_asset(), cache)


def test_kill_9_while_unpacking_leaves_no_asset_and_the_next_run_finishes(registry, tmp_path):
    registry.serve(_asset(), _package("debian"))
    cache = tmp_path / "cache"
    worker = multiprocessing.get_context("fork").Process(target=_stuck_unpack, args=(cache,))
    worker.start()
    while not (cache / "writing").exists():
        assert worker.is_alive()
        time.sleep(0.01)
    os.kill(worker.pid, signal.SIGKILL)
    worker.join()
    assert not (cache / "assets" / _asset().folder).exists()
    assert list((cache / "assets").glob(".*.partial"))
    assert _contents(assets.fetch(_asset(), cache)) == CONTENT
    assert len(registry.calls) == 1 and not list(cache.rglob("*.partial"))


def test_the_command_line_links_members_by_base_name(registry, tmp_path, monkeypatch):
    registry.serve(_asset(), _package("debian"))
    monkeypatch.setenv("RETABLE_CACHE", str(tmp_path / "cache"))
    entry = json.dumps(_asset().model_dump())
    for _ in range(2):
        assets.main(["tiny", "--into", str(tmp_path / "tree"), "--entry", entry])
    tree = tmp_path / "tree"
    assert sorted(path.name for path in tree.iterdir()) == ["one.txt", "two.bin"]
    assert all(path.is_symlink() for path in tree.iterdir())
    assert (tree / "two.bin").read_bytes() == CONTENT["data/deep/two.bin"]
    for arguments, told in [(["nosuch"], "known: .*gcide"), (["tiny", "--entry", "{"], "JSON")]:
        with pytest.raises(InputError, match=told):
            assets.main([*arguments, "--into", str(tree)])
