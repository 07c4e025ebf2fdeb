"""Assets: pins, the shared cache, what a fetch unpacks and links. No network is used."""

import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from asset_packages import CONTENT, FILES, make_asset, package, tar
from job_helpers import contents

from steps.shared import assets
from steps.shared.asset_manifest import from_json, load_manifest
from steps.shared.runtime import InputError


def test_the_manifest_is_valid_and_pins_what_it_needs():
    manifest = load_manifest()
    assert {"gcide", "wordnet"} <= set(manifest)
    for name, asset in manifest.items():
        assert asset.name == name
        assert from_json(name, json.dumps(asset.model_dump())) == asset


@pytest.mark.parametrize("source", FILES)
def test_only_listed_members_are_unpacked(source, registry, tmp_path):
    stray = {**CONTENT, "../escape.txt": b"x", "data/other.txt": b"not listed"}
    body = package(source, stray, {"data/stray-link": "/etc/passwd"})
    asset = make_asset(source, body)
    registry.serve(asset, body)
    folder = assets.fetch(asset, tmp_path / "cache")
    assert folder == tmp_path / "cache" / "assets" / f"tiny-1.0-{asset.sha256[:8]}"
    assert contents(folder) == CONTENT
    assert not list(tmp_path.rglob("escape.txt"))
    pin = {"pypi": "tiny==1.0", "npm": "tiny@1.0", "debian": "tiny=1.0"}[source]
    assert len(registry.calls) == 1 and registry.calls[0].endswith(pin)
    assert ("--only-binary :all:" in registry.calls[0]) == (source == "pypi")


def test_a_source_distribution_is_asked_for_as_one(registry, tmp_path):
    body = tar(CONTENT, "w:gz", {})
    asset = make_asset("pypi", body, file="tiny-1.0.tar.gz")
    registry.serve(asset, body)
    assert contents(assets.fetch(asset, tmp_path / "cache")) == CONTENT
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
    registry.serve(make_asset(body=body), body)
    assert contents(assets.fetch(make_asset(body=body), tmp_path / "cache")) == CONTENT


def test_a_warm_cache_needs_no_program_and_no_network(registry, tmp_path, monkeypatch):
    body = package("debian")
    registry.serve(make_asset(), body)
    folder = assets.fetch(make_asset(), tmp_path / "cache")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(subprocess, "run", None)
    assert assets.fetch(make_asset(), tmp_path / "cache") == folder


def test_a_verified_download_is_not_fetched_again(registry, tmp_path):
    registry.serve(make_asset(), package("debian"))
    folder = assets.fetch(make_asset(), tmp_path / "cache")
    shutil.rmtree(folder)
    assert contents(assets.fetch(make_asset(), tmp_path / "cache")) == CONTENT
    assert len(registry.calls) == 1
    # but a kept download that went bad is
    shutil.rmtree(folder)
    next((tmp_path / "cache" / "downloads").rglob("*.deb")).write_bytes(b"rotten")
    assert contents(assets.fetch(make_asset(), tmp_path / "cache")) == CONTENT
    assert len(registry.calls) == 2


def test_a_member_added_to_the_manifest_is_unpacked_beside_the_others(registry, tmp_path):
    first, *_ = CONTENT
    registry.serve(make_asset(), package("debian"))
    folder = assets.fetch(make_asset(members=[first]), tmp_path / "cache")
    assert list(contents(folder)) == [first]
    assert assets.fetch(make_asset(), tmp_path / "cache") == folder
    assert contents(folder) == CONTENT and len(registry.calls) == 1


def _slow_fetch(cache: Path, start, results) -> None:
    start.wait()
    results.put(sorted(contents(assets.fetch(make_asset(), cache))))


def test_many_processes_share_one_fetch(registry, tmp_path):
    registry.serve(make_asset(), package("debian"))
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
    assets.fetch(make_asset(), cache)


def test_kill_9_while_unpacking_leaves_no_asset_and_the_next_run_finishes(registry, tmp_path):
    registry.serve(make_asset(), package("debian"))
    cache = tmp_path / "cache"
    worker = multiprocessing.get_context("fork").Process(target=_stuck_unpack, args=(cache,))
    worker.start()
    while not (cache / "writing").exists():
        assert worker.is_alive()
        time.sleep(0.01)
    os.kill(worker.pid, signal.SIGKILL)
    worker.join()
    assert not (cache / "assets" / make_asset().folder).exists()
    assert list((cache / "assets").glob(".*.partial"))
    assert contents(assets.fetch(make_asset(), cache)) == CONTENT
    assert len(registry.calls) == 1 and not list(cache.rglob("*.partial"))


def test_the_command_line_links_members_by_base_name(registry, tmp_path, monkeypatch):
    registry.serve(make_asset(), package("debian"))
    monkeypatch.setenv("RETABLE_CACHE", str(tmp_path / "cache"))
    entry = json.dumps(make_asset().model_dump())
    for _ in range(2):
        assets.main(["tiny", "--into", str(tmp_path / "tree"), "--entry", entry])
    tree = tmp_path / "tree"
    assert sorted(path.name for path in tree.iterdir()) == ["one.txt", "two.bin"]
    assert all(path.is_symlink() for path in tree.iterdir())
    assert (tree / "two.bin").read_bytes() == CONTENT["data/deep/two.bin"]
    for arguments, told in [(["nosuch"], "known: .*gcide"), (["tiny", "--entry", "{"], "JSON")]:
        with pytest.raises(InputError, match=told):
            assets.main([*arguments, "--into", str(tree)])
