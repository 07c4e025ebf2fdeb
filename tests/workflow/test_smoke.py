"""Every paper at scale smoke, in a scratch copy: a user's results stay as they are."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from steps.shared.claim_spec import load_claims
from steps.shared.runtime import read_csv, read_json
from steps.shared.table_spec import load_tables, undeclared

ROOT = Path(__file__).resolve().parents[2]
PAPERS = sorted(path.parent.name for path in ROOT.glob("steps/*/claims.yaml"))


@pytest.fixture(scope="session")
def smoke(tmp_path_factory) -> Path:
    """Return a copy of the tree in which the whole workflow ran at scale smoke."""
    tree = tmp_path_factory.mktemp("smoke") / "tree"
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, files.split("\0")):
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tree / name)
    assert run(tree).returncode == 0
    return tree


def run(tree: Path, *flags: str) -> subprocess.CompletedProcess:
    """Run the smoke profile in `tree`; its output is shown if the test fails."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = ["snakemake", "--workflow-profile", "workflow/profiles/smoke", *flags]
    done = subprocess.run(
        command, cwd=tree, capture_output=True, text=True, env={**os.environ, "PATH": path}
    )
    print(done.stdout[-3000:], done.stderr[-6000:])
    return done


@pytest.mark.parametrize("paper", PAPERS)
def test_a_paper_leaves_its_tables_claims_and_figures(smoke, paper):
    folder = smoke / "results/smoke" / paper / "evaluate"
    cells = {(row["table"], row["row"]) for row in read_csv(folder / "table.csv") if row["mean"]}
    tables = load_tables(smoke / "steps" / paper / "tables.yaml")
    assert cells == {(table.id, row) for table in tables for row in table.rows}
    claims = load_claims(smoke / "steps" / paper / "claims.yaml")
    assert undeclared(claims, tables) == []
    verdicts = {claim["id"]: claim for claim in read_json(folder / "claims.json")}
    assert list(verdicts) == [claim.id for claim in claims]
    assert all((claim.not_tested is None) == (verdicts[claim.id]["n"] > 0) for claim in claims)
    assert all(path.stat().st_size > 1000 for path in (folder / "figures").glob("*.svg"))
    assert list((folder / "figures").glob("*.svg"))


def test_a_second_run_has_nothing_to_do(smoke):
    done = run(smoke, "-n")
    assert "Nothing to be done" in done.stdout + done.stderr


def test_no_training_checkpoint_is_left_after_success(smoke):
    assert not list((smoke / "state").glob("*"))
