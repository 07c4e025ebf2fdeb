"""Tables: aggregation against its definition, the paper's numbers apart, both renderings."""

import math
import re
import statistics
from html.parser import HTMLParser

import pytest
import yaml
from scipy import stats

from steps.shared.claim_spec import Claim
from steps.shared.page import render_html
from steps.shared.runtime import InputError, read_csv
from steps.shared.tables import (
    FIELDS,
    aggregate,
    load_tables,
    render_markdown,
    undeclared,
    write_table,
)

SPEC = """
- id: main
  title: Loss after annealing
  row_title: Schedule
  rows: {last: "Constant, last", mean: "WSM | mean"}
  columns:
    - {label: Loss, dataset: wordnet, split: test, metric: loss,
       unit: nats, better: lower, digits: 3}
    - label: Average
      dataset: benchmarks
      split: test
      metric: accuracy
      unit: "%"
      better: higher
      digits: 2
      paper: {mean: 63.95}
      paper_setting: a 16.3B model, 10.2T tokens
      comparable: no
- id: duration
  title: Duration of the merge
  row_title: Checkpoints
  x_name: duration
  rows: {eight: "8", two: "2"}
  columns:
    - label: Loss
      dataset: wordnet
      split: test
      metric: loss
      unit: nats
      better: lower
      digits: 2
      paper: {two: {0.5: 2.5, 1: 2.25}}
      paper_setting: the same corpus
      comparable: yes
"""
CLAIM = {
    "id": "a",
    "statement": "Merging <helps>",
    "table": "main",
    "unit": "nats",
    "paper_effect": "+2 %",
    "effect": -0.03,
    "ci_low": -0.04,
    "ci_high": -0.02,
    "n": 5,
    "verdict": "holds",
    "note": "",
}


@pytest.fixture
def spec(tmp_path):
    path = tmp_path / "tables.yaml"
    path.write_text(SPEC)
    return load_tables(path)


def run(table, row, seed, value, x=""):
    names = {"dataset": "wordnet", "split": "test", "metric": "loss"}
    return {"table": table, **names, "row": row, "seed": seed, "x": x, "value": repr(value)}


def data():
    plain = [
        run("main", r, s, v + s / 7) for r, v in (("last", 2.4), ("mean", 2.37)) for s in (2, 0, 1)
    ]
    sweep = [
        run("duration", "eight", s, 2.0 + float(x) + s / 9, x)
        for x in ("1", "0.25")
        for s in (0, 1)
    ]
    return plain + sweep


def test_a_cell_is_mean_sd_n_and_t_interval(spec):
    first = aggregate(data(), spec)[0]
    values = [2.4, 2.4 + 1 / 7, 2.4 + 2 / 7]
    half = stats.t.ppf(0.975, 2) * statistics.stdev(values) / math.sqrt(3)
    assert (first["row"], first["n"]) == ("last", 3)
    assert first["mean"] == pytest.approx(statistics.mean(values))
    assert first["sd"] == pytest.approx(statistics.stdev(values))
    assert (first["ci_low"], first["ci_high"]) == pytest.approx(
        (first["mean"] - half, first["mean"] + half)
    )
    single = aggregate([run("main", "last", 0, 1.5)], spec)[0]
    assert (single["mean"], single["sd"], single["ci_low"], single["n"]) == (1.5, None, None, 1)


def test_order_is_declared_and_bytes_do_not_depend_on_the_order_of_runs(spec, tmp_path):
    write_table(tmp_path / "a.csv", aggregate(data(), spec))
    write_table(tmp_path / "b.csv", aggregate(data()[::-1], spec))
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    rows = read_csv(tmp_path / "a.csv")
    assert tuple(rows[0]) == FIELDS
    assert [r["row"] for r in rows[:3]] == ["last", "mean", "mean"]
    assert [r["x"] for r in rows if r["row"] == "eight"] == ["0.25", "1.0"]


def test_the_papers_numbers_come_with_setting_and_comparability(spec):
    rows = [r for r in aggregate(data(), spec) if r["paper"] is not None]
    assert [(r["metric"], r["x"], r["paper"], r["n"], r["comparable"]) for r in rows] == [
        ("accuracy", None, 63.95, 0, "no"),
        ("loss", 0.5, 2.5, 0, "yes"),
        ("loss", 1.0, 2.25, 0, "yes"),
    ]
    assert all(r["paper_setting"] and r["mean"] is None for r in rows)


def test_runs_that_no_table_declares_are_refused(spec):
    with pytest.raises(InputError, match="no table declares main/wordnet/test/typo/loss"):
        aggregate([run("main", "typo", 0, 1.0)], spec)
    with pytest.raises(InputError, match="x goes with x_name only"):
        aggregate([run("main", "last", 0, 1.0, "3")], spec)
    with pytest.raises(InputError, match="x goes with x_name only"):
        aggregate([run("duration", "two", 0, 1.0)], spec)


def test_markdown_has_our_number_and_the_papers_apart(spec, tmp_path):
    write_table(tmp_path / "table.csv", aggregate(data(), spec))
    for rows in (aggregate(data(), spec), read_csv(tmp_path / "table.csv")):
        text = render_markdown(rows, spec, [CLAIM, {**CLAIM, "table": "elsewhere"}], title="Paper")
        assert "| Schedule | Loss (nats) ↓ | paper: Average (%) ↑ |" in text
        assert "| WSM \\| mean | 2.513 ± 0.355 | 63.95 |" in text
        assert "16.3B model, 10.2T tokens; another setting, not comparable" in text
        assert "| Checkpoints \\ duration | 0.25 | 0.5 | 1 |" in text
        assert "| 8 | 2.31 ± 0.71 | – | 3.06 ± 0.71 |" in text
        assert "| paper: 2 | – | 2.5 | 2.25 |" in text
        assert (
            "- **holds**: Merging <helps> (paper: +2 %; ours: -0.03 [-0.04, -0.02] nats, n = 5)"
            in text
        )
        assert text.index("other tables of the paper") > text.index("duration")
        for line in re.findall(r"^\|.*\|$", text, re.M):
            assert len(re.split(r"(?<!\\)\|", line)) in (5, 6)


def test_a_tiny_error_is_not_shown_as_nothing(spec):
    text = render_markdown(
        aggregate([run("main", "last", 0, 3e-16)], spec), spec, [], title="Paper"
    )
    assert "| Constant, last | 3e-16 |" in text
    text = render_markdown(aggregate([run("main", "last", 0, 0.0)], spec), spec, [], title="Paper")
    assert "| Constant, last | 0.000 |" in text


def test_a_spread_by_rounding_alone_is_shown_as_none(spec):
    runs = [run("main", "last", seed, value) for seed, value in enumerate((0.1, 0.1, 0.1 + 1e-17))]
    text = render_markdown(aggregate(runs, spec), spec, [], title="Paper")
    assert "| Constant, last | 0.100 ± 0.000 |" in text


class Tags(HTMLParser):
    """Collects cells by class and checks that tags close in order."""

    def __init__(self):
        super().__init__()
        self.open, self.grey, self.text, self.links = [], [], "", []

    def handle_starttag(self, tag, attrs):
        self.links += [v for k, v in attrs if k in ("src", "href")]
        if tag not in ("meta", "br"):
            self.open.append((tag, dict(attrs).get("class", "")))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, text):
        self.text += text
        if self.open and self.open[-1][1] == "paper":
            self.grey.append(text)


def test_page_is_self_contained_with_the_papers_numbers_grey(spec):
    claims = [
        CLAIM,
        {**CLAIM, "verdict": "not tested at this scale", "effect": None, "note": "why"},
    ]
    page = render_html(aggregate(data(), spec), spec, claims, title="WSM <merge>")
    tags = Tags()
    tags.feed(page)
    assert not tags.open and not tags.links and "url(" not in page and "<script" not in page
    assert {"63.95", "2.25", "paper: +2 %"} <= set(tags.grey)
    assert "2.513 ± 0.355" not in tags.grey and "2.513 ± 0.355" in tags.text
    assert '<span class="verdict holds">holds</span>' in page
    assert '<span class="verdict not">not tested at this scale</span>' in page
    assert "prefers-color-scheme: dark" in page and "WSM &lt;merge&gt;" in page


def test_claims_that_read_what_no_table_declares_are_listed(spec):
    measure = {"function": "paired_difference", "dataset": "wordnet", "split": "test"}
    measure |= {"metric": "loss", "a": "mean", "b": ["last", "lsat"]}
    given = {"id": "c", "statement": "s", "kind": "direction", "side": "below", "delta": 0}
    given |= {"unit": "", "paper_effect": None, "table": "main", "measure": measure}
    lines = undeclared([Claim.model_validate(given)], spec)
    assert lines == ["claim c reads main/wordnet/test/lsat/loss"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("paper: {mean: 63.95}", "paper: {maen: 63.95}", "undeclared rows ['maen']"),
        ("paper: {two: {0.5: 2.5, 1: 2.25}}", "paper: {two: 2.5}", "by x exactly where x_name"),
        ("better: lower, digits: 3", "better: less, digits: 3", "main.columns.0.better"),
        ("      paper_setting: the same corpus\n", "", "need their paper_setting"),
        ("row_title: Schedule", "rows_title: Schedule", "main.row_title"),
    ],
)
def test_a_wrong_table_is_one_clear_line(tmp_path, old, new, message):
    assert old in SPEC
    (tmp_path / "tables.yaml").write_text(SPEC.replace(old, new))
    with pytest.raises(InputError) as caught:
        load_tables(tmp_path / "tables.yaml")
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_comparable_may_be_written_bare_or_quoted(tmp_path):
    (tmp_path / "t.yaml").write_text(SPEC.replace("comparable: yes", 'comparable: "yes"'))
    tables = load_tables(tmp_path / "t.yaml")
    assert [table.columns[-1].comparable for table in tables] == ["no", "yes"]
    assert yaml.safe_load("no") is False
