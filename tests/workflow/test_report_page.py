"""The HTML report as a reader meets it, in headless Chromium: opt in with -m browser."""

import json
import re
from pathlib import Path

import pytest
from browser import LOCAL, Page, executable, page
from smoke_tree import ROOT, smoke_run

from steps.shared.runtime import read_json
from steps.shared.table_spec import load_tables

pytestmark = pytest.mark.browser
PAPERS = sorted(path.parent.name for path in ROOT.glob("steps/*/claims.yaml"))
SIZES = [(1400, 900), (800, 600)]
LINK = "[...document.querySelectorAll('nav a')].find(a => a.textContent.trim() == {})"
EYE = (
    "[...document.querySelectorAll('nav tr')].find(r => r.textContent.trim() == {})"
    ".querySelector('a')"
)
# the text of every element of a kind, and whether a reader can see it
TEXTS = (
    "[...document.querySelectorAll('{}')].map(e => [e.innerText.trim(),"
    " e.checkVisibility() && e.getBoundingClientRect().width > 0])"
)
IMAGE = "document.querySelector('div.p-3 > img')"


@pytest.fixture(scope="module")
def report(smoke, tmp_path_factory) -> Path:
    """Return the report of the smoke scale, made as `make report` makes it."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    style = ("--report-stylesheet", "workflow/report/style.css")
    assert smoke_run(smoke, "all", "--report", str(path), *style).returncode == 0
    return path


@pytest.fixture(params=SIZES, ids=str)
def opened(request, report, tmp_path) -> Page:
    """Yield the open report; afterwards nothing has failed and nothing came from the network."""
    if executable() is None:
        pytest.skip("needs Chromium")
    with page(tmp_path / "profile") as found:
        found.open(report, *request.param)
        yield found
        assert found.errors == []
        assert [url for url in found.requests if not url.startswith(LOCAL)] == []


def names() -> dict[str, str]:
    """Return {paper: its name in the report}, as its package's first line begins."""
    lines = {paper: (ROOT / f"steps/{paper}/__init__.py").read_text() for paper in PAPERS}
    return {paper: re.split("[:,]", text.lstrip('"'))[0] for paper, text in lines.items()}


def go_to(found: Page, category: str) -> list[str]:
    """Click the way from anywhere to a category; return the names of its entries."""
    found.click("document.querySelector('nav nav ol a')")
    found.click(LINK.format(json.dumps(category)))
    rows = "[...document.querySelectorAll('nav tbody tr')].map(r => r.textContent.trim())"
    return found.until(f"(r => r.length && r)({rows})")


def visible(found: Page, kind: str) -> list[str]:
    """Return the texts of all elements of a kind in the shown page, each of which must be seen."""
    found.until("document.querySelector('iframe') != null")
    frame = found.frame()
    texts = found.until(f"(t => t.length && t)({TEXTS.format(kind)})", frame)
    assert all(seen for _, seen in texts)
    return [text for text, _ in texts]


def test_the_report_names_every_paper_and_says_how_to_read_it(opened):
    opened.until("document.querySelector('nav ul') != null")
    items = opened.value("[...document.querySelectorAll('nav ul a')].map(a => a.innerText.trim())")
    assert items[-1 - len(PAPERS) :] == ["All papers", *sorted(names().values(), key=str.lower)]
    assert "scale smoke" in opened.value("document.querySelector('.prose').innerText")


def test_the_report_opens_at_the_top_of_its_introduction(opened):
    opened.until("document.querySelector('#rulegraph svg, #rulegraph canvas') != null")
    box = "(b => [b.top >= 0, b.width >= 300])(document.querySelector('.prose').{}())"
    assert opened.value(box.format("getBoundingClientRect")) == [True, True]


def test_the_ledger_has_every_claim(opened, smoke):
    (ledger,) = go_to(opened, "All papers")
    opened.click(EYE.format(json.dumps(ledger)))
    assert sorted(visible(opened, "h2")) == PAPERS
    shown = "\n".join(visible(opened, "li"))
    for paper in PAPERS:
        for claim in read_json(smoke / f"results/smoke/{paper}/evaluate/claims.json"):
            assert " ".join(claim["statement"].split()) in shown


@pytest.mark.parametrize("paper", PAPERS)
def test_a_paper_shows_its_tables_and_all_its_figures(opened, smoke, paper):
    tables, *figures = go_to(opened, names()[paper])
    files = list((smoke / f"results/smoke/{paper}/evaluate/figures").glob("*.svg"))
    assert len(set(figures)) == len(figures) == len(files) > 0
    opened.click(EYE.format(json.dumps(tables)))
    headings, labels = visible(opened, "h2"), visible(opened, "tbody th")
    for table in load_tables(smoke / f"steps/{paper}/tables.yaml"):
        assert table.title in headings
        assert set(table.rows.values()) <= set(labels)
    sources = set()
    for figure in figures:
        opened.click(EYE.format(json.dumps(figure)))
        before = json.dumps(list(sources))
        sources.add(opened.until(f"{IMAGE} && !{before}.includes({IMAGE}.src) && {IMAGE}.src"))
        opened.until(f"{IMAGE}.complete")
        box = opened.value(f"(b => [b.width, b.height, b.top])({IMAGE}.getBoundingClientRect())")
        assert min(box[:2]) > 50 and box[2] >= 0
        assert opened.value(f"{IMAGE}.naturalWidth") > 0
