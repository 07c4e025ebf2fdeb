"""A copy of the real tree, and the real papers run in it at scale smoke."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def tracked_copy(tree: Path) -> Path:
    """Copy the files that git tracks, or would, as they are now; return `tree`."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, files.split("\0")):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    return tree


def smoke_run(tree: Path, *flags: str, profile: str = "smoke") -> subprocess.CompletedProcess[str]:
    """Run the workflow in `tree`; its output is shown if the test fails."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = ["snakemake", "--workflow-profile", f"workflow/profiles/{profile}", *flags]
    done = subprocess.run(
        command, cwd=tree, capture_output=True, text=True, env={**os.environ, "PATH": path}
    )
    print(done.stdout[-3000:], done.stderr[-6000:])
    return done
