"""The published tables are those of this very code: else run, `make publish`, commit."""

import pytest
from smoke_tree import ROOT

from steps.shared.codedigest import paper_digest
from steps.shared.runtime import read_json

PAPERS = sorted(path.parent.name for path in ROOT.glob("steps/*/claims.yaml"))


@pytest.mark.parametrize("paper", PAPERS)
def test_published_tables_are_of_the_present_code_and_configuration(paper):
    assert read_json(ROOT / "published" / paper / "digest.json") == paper_digest(paper, ROOT)
