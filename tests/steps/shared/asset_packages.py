"""Small packages of every kind, and a registry that serves them without a network."""

import hashlib
import io
import json
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from steps.shared.asset_manifest import Asset, from_json

CONTENT = {"data/one.txt": b"one\n", "data/deep/two.bin": bytes(range(256)) * 64}
FILES = {"pypi": "tiny-1.0-py3-none-any.whl", "npm": "tiny-1.0.tgz", "debian": "tiny_1.0_all.deb"}


def tar(entries: dict[str, bytes], mode: str, links: dict[str, str]) -> bytes:
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


def wheel(entries: dict[str, bytes], links: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
        for name, target in links.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = 0o120777 << 16
            archive.writestr(info, target)
    return buffer.getvalue()


def deb(entries: dict[str, bytes], links: dict[str, str]) -> bytes:
    # an odd control part: the reader must skip its padding byte
    parts = {"debian-binary": b"2.0\n", "control.tar.xz": b"odd", "data.tar.xz": b""}
    parts["data.tar.xz"] = tar({f"./{name}": entries[name] for name in entries}, "w:xz", links)
    out = b"!<arch>\n"
    for name, body in parts.items():
        out += f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(body):<10}`\n".encode()
        out += body + b"\n" * (len(body) % 2)
    return out


def package(source: str, entries: dict[str, bytes] = CONTENT, links=None) -> bytes:
    links = links or {}
    if source == "pypi":
        return wheel(entries, links)
    return deb(entries, links) if source == "debian" else tar(entries, "w:gz", links)


def make_asset(source: str = "debian", body: bytes | None = None, **changes) -> Asset:
    body = package(source) if body is None else body
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
