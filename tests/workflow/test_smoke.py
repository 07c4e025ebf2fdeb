"""Every paper at scale smoke, in a scratch copy: a user's results stay as they are."""

import pytest
from smoke_tree import ROOT, smoke_run

from steps.shared.claim_spec import load_claims
from steps.shared.runtime import read_csv, read_json
from steps.shared.table_spec import load_tables, undeclared

PAPERS = sorted(path.parent.name for path in ROOT.glob("steps/*/claims.yaml"))


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
    done = smoke_run(smoke, "-n")
    assert "Nothing to be done" in done.stdout + done.stderr


def test_no_training_checkpoint_is_left_after_success(smoke):
    assert not list((smoke / "state").glob("*"))
