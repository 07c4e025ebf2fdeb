"""The published tables are those of this very code: else run, `make publish`, commit."""

import pytest
from smoke_tree import ROOT

from steps.shared.claim_spec import load_claims
from steps.shared.claims import is_test_node
from steps.shared.codedigest import paper_digest
from steps.shared.runtime import read_json

PAPERS = sorted(path.parent.name for path in ROOT.glob("steps/*/claims.yaml"))


@pytest.mark.parametrize("paper", PAPERS)
def test_published_tables_are_of_the_present_code_and_configuration(paper):
    assert read_json(ROOT / "published" / paper / "digest.json") == paper_digest(paper, ROOT)


def test_every_identity_names_a_test_that_exists():
    """Else its verdict is "inconclusive" from the next run on."""
    claims = [
        claim for paper in PAPERS for claim in load_claims(f"{ROOT}/steps/{paper}/claims.yaml")
    ]
    named = [claim.test or "" for claim in claims if claim.kind == "identity"]
    assert len(named) >= 4, "no identity was found"
    assert [node for node in named if not is_test_node(node, ROOT)] == []
