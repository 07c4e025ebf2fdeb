"""What the documents say must be what the tree holds."""

import re
from pathlib import Path

import pytest

from steps.shared import pages
from steps.shared.config import read_yaml

ROOT = Path(__file__).resolve().parents[2]
PAPERS = sorted(read_yaml(ROOT / "params.yaml")["papers"])
SECTIONS = [
    "What is reproduced",
    "Choices",
    "Deviations from the paper",
    "What came out",
    "Costs",
    "Use the method alone",
    "Speed",
    "The paper scale",
]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/papers/*.md"))]


@pytest.mark.parametrize("page", pages.pages(ROOT), ids=lambda page: page.name)
def test_the_generated_parts_of_a_page_are_those_of_the_published_results(page):
    assert pages.renewed(page, ROOT / "published") == page.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_and_every_named_file_exists(page):
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", text)
    named = re.findall(r"`((?:steps|tests|workflow|docs|published|benchmarks)/[\w./-]+)`", text)
    missing = [link for link in links if not (page.parent / link).exists()]
    missing += [name for name in named if not (ROOT / name).exists()]
    assert not missing


@pytest.mark.parametrize("paper", PAPERS)
def test_a_paper_has_its_pages_its_published_table_and_a_short_block(paper):
    assert paper in (ROOT / "README.md").read_text(encoding="utf-8")
    assert (ROOT / f"docs/papers/{paper}.md").is_file()
    for name in ("table.csv", "table.md", "runs.csv", "claims.json", "digest.json", "cost.csv"):
        assert (ROOT / "published" / paper / name).is_file(), name
    text = (ROOT / "params.yaml").read_text(encoding="utf-8")
    block = re.search(rf"^  {paper}:\n((?:    .*\n|\n)+)", text, re.MULTILINE)
    assert block and len(block.group(1).splitlines()) <= 60


@pytest.mark.parametrize("paper", PAPERS)
def test_every_page_has_the_same_sections_in_the_same_order(paper):
    text = (ROOT / f"docs/papers/{paper}.md").read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    assert re.findall(r"^## (.+)$", prose, re.MULTILINE) == SECTIONS


@pytest.mark.parametrize("page", ["README.md", "docs/papers/wsm.md"])
def test_the_python_of_a_page_runs_as_it_stands(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    snippets = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert snippets
    for snippet in snippets:
        exec(compile(snippet, page, "exec"), {})
