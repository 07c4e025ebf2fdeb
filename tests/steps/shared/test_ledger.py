"""The ledger: counts, plain CSV, Markdown, and lines that fit a terminal."""

import subprocess
import sys

import pytest

from steps.shared import ledger
from steps.shared.runtime import InputError, read_csv, write_json


def claim(name, verdict, effect=None, ends=(None, None), **changes):
    row = {"id": name, "statement": f"Statement {name} " + "that goes on " * 12, "note": ""}
    row |= {"kind": "direction", "table": "1", "unit": "nats", "paper_effect": 0.5, "n": 5}
    row |= {"effect": effect, "ci_low": ends[0], "ci_high": ends[1], "verdict": verdict}
    return row | changes


@pytest.fixture
def files(tmp_path):
    wsm = tmp_path / "results/mini/wsm/evaluate/claims.json"
    other = tmp_path / "published/other/claims.json"
    write_json(
        wsm,
        [
            claim("w1", "holds", -0.25, (-0.5, -0.125), statement='A, with | and "quotes"'),
            claim("w2", "holds", 1e-15, kind="identity"),
            claim("w3", "not tested at this scale", note="needs 16B parameters", n=0),
        ],
    )
    write_json(
        other,
        [
            claim("o1", "fails", 0.5, (0.25, 0.75), paper_effect=None),
            claim("o2", "inconclusive", 0.0, (-1.0, 1.0), paper_effect="+3 %"),
        ],
    )
    return [wsm, other]


def test_papers_come_from_folders_and_csv_is_plain(files, tmp_path):
    ledger.main(["--claims", *map(str, files), "--out", str(tmp_path / "claims.csv")])
    rows = read_csv(tmp_path / "claims.csv")
    assert tuple(rows[0]) == ledger.FIELDS
    assert [(r["paper"], r["id"]) for r in rows] == [
        *(("wsm", "w1"), ("wsm", "w2"), ("wsm", "w3"), ("other", "o1"), ("other", "o2"))
    ]
    assert rows[0]["statement"] == 'A, with | and "quotes"'
    assert (rows[2]["effect"], rows[2]["n"]) == ("", "0")


def test_summary_counts_what_was_tested_and_what_chance_implies(files):
    text = ledger.summary(ledger.read_ledger(files))
    assert text.startswith("5 claims, 4 of them tested: holds 2, fails 1, inconclusive 1.")
    assert "3 rest on a 95 % interval" in text
    many = [claim(str(i), "holds", 1.0, (0.5, 1.5)) for i in range(60)]
    assert "about 3.0 of these" in ledger.summary(many)


def test_a_claim_without_a_verdict_is_refused(tmp_path):
    write_json(tmp_path / "p/claims.json", [claim("x", "maybe")])
    with pytest.raises(InputError, match="claim x has no verdict"):
        ledger.read_ledger([tmp_path / "p/claims.json"])


def test_markdown_counts_by_paper_and_then_lists_every_claim_with_its_tables(files):
    text = ledger.markdown(ledger.read_ledger(files))
    counts, claims = text.split("<details>")
    assert "| [wsm](published/wsm/table.md) | 3 | 2 | 0 | 0 | 1 |" in counts
    assert "| [other](published/other/table.md) | 2 | 0 | 1 | 1 | 0 |" in counts
    lines = [line for line in claims.splitlines() if line[:1] == "|"]
    assert len(lines) == 2 + 5
    assert all(line.count("|") == 6 for line in lines)
    assert lines[2].startswith("| [wsm](published/wsm/table.md) | A, with / and")
    assert "-0.25 [-0.5, -0.125] nats, n = 5" in lines[2]
    assert "needs 16B parameters" in lines[4]


@pytest.mark.parametrize("width", [60, 100, 160])
def test_terminal_lines_fit_and_colour_is_only_colour(files, width):
    claims = ledger.read_ledger(files)
    plain = ledger.terminal(claims, width=width, colour=False)
    assert max(map(len, plain.splitlines())) <= width
    assert "\033" not in plain
    assert "\n  not tested    " in plain
    coloured = ledger.terminal(claims, width=width, colour=True)
    for code in {*ledger.COLOURS.values(), "0"}:
        coloured = coloured.replace(f"\033[{code}m", "")
    assert coloured == plain


def test_command_prints_plainly_into_a_pipe_and_fails_in_one_line(files):
    command = [sys.executable, "-m", "steps.shared.ledger", "--print", "--claims"]
    done = subprocess.run([*command, str(files[0])], capture_output=True, text=True, check=True)
    assert "\nwsm\n  holds" in done.stdout and "\033" not in done.stdout
    failed = subprocess.run([*command, "absent.json"], capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert failed.stderr.startswith("error: absent.json") and "Traceback" not in failed.stderr
