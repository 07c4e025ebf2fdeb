"""The generated parts of the pages come from published results, and touch nothing else."""

import pytest

from steps.shared import pages
from steps.shared.runtime import InputError, write_csv, write_json, write_text

FIELDS = ("rule", "jobs", "cpu_seconds", "seconds", "peak_mib")
MACHINE = {"cpu": "Z80", "cores": 1, "memory_gib": 2, "os": "CP/M", "python": "3", "torch": "none"}


@pytest.fixture
def tree(tmp_path):
    claim = {"statement": "It works", "note": "", "paper_effect": None, "unit": "points", "n": 3}
    claim |= {"kind": "direction", "table": "1", "effect": 1.0, "ci_low": 0.5, "ci_high": 1.5}
    found = [
        claim | {"id": str(number), "verdict": verdict}
        for number, verdict in enumerate(["holds", "holds", "fails", "not tested at this scale"])
    ]
    for paper, factor in (("one", 1), ("two", 2)):
        folder = tmp_path / "published" / paper
        write_json(folder / "claims.json", found)
        rows = [
            (f"{paper}_train", 3, 20.0 * factor, 25.0, 700.0),
            (f"{paper}_merge", 1, 60, 61, 90),
        ]
        costs = [dict(zip(FIELDS, row, strict=True)) for row in rows]
        write_csv(folder / "cost.csv", FIELDS, costs)
        marks = "".join(
            f"<!-- {n}:begin -->\nformer\n<!-- {n}:end -->\n" for n in ("verdicts", "costs")
        )
        write_text(tmp_path / f"docs/papers/{paper}.md", f"# {paper}\n{marks}by hand\n")
    write_json(tmp_path / "published/machine.json", {"one": MACHINE, "two": MACHINE})
    marks = "".join(f"<!-- {n}:begin -->\n<!-- {n}:end -->\n" for n in ("ledger", "costs"))
    write_text(tmp_path / "README.md", f"top\n{marks}bottom\n")
    return tmp_path


def test_parts_are_renewed_and_the_rest_is_kept(tree, monkeypatch):
    monkeypatch.chdir(tree)
    pages.main()
    page = (tree / "docs/papers/one.md").read_text(encoding="utf-8")
    assert "3 claims tested: holds 2, fails 1, inconclusive 0. Not tested at this scale: 1." in page
    assert "| one_train | 3 | 20.0 | 25.0 | 700 | 60 |\n" in page
    assert "| sum | 4 | | | 700 | 120 |\n\n2.0 CPU minutes, measured by getrusage on Z80" in page
    assert "former" not in page and page.startswith("# one\n") and page.endswith("by hand\n")
    readme = (tree / "README.md").read_text(encoding="utf-8")
    assert "| two | 4 | 3.0 | 700 |\n| all | | 5 | |\n" in readme
    assert "8 claims, 6 of them tested: holds 4, fails 2" in readme
    before = {page: page.read_bytes() for page in pages.pages(tree)}
    pages.main()
    assert before == {page: page.read_bytes() for page in pages.pages(tree)}


def test_other_results_make_a_page_differ(tree):
    page = tree / "docs/papers/one.md"
    write_text(page, pages.renewed(page, tree / "published"))
    write_json(tree / "published/one/claims.json", [])
    assert pages.renewed(page, tree / "published") != page.read_text(encoding="utf-8")


@pytest.mark.parametrize("text", ["no marks", "<!-- costs:end --><!-- costs:begin -->"])
def test_a_page_without_its_marks_is_named(tree, text):
    write_text(tree / "README.md", text)
    with pytest.raises(InputError, match=r"README.md: needs the marks <!-- ledger:begin -->"):
        pages.renewed(tree / "README.md", tree / "published")


def test_a_page_that_is_not_there_is_named(tree):
    with pytest.raises(InputError, match=r"three.md: cannot be read"):
        pages.renewed(tree / "three.md", tree / "published")
