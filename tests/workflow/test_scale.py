"""Many papers in one plan."""

import re

PAPERS = tuple(f"p{number:02d}" for number in range(19))


def test_the_plan_of_nineteen_papers_has_every_job_once(fresh):
    rows = [f"row{number}" for number in range(5)]
    train = {
        "common": {"updates": 20, "rate": 3},
        "rows": {row: {"decay": number} for number, row in enumerate(rows)},
    }
    project = fresh("many", PAPERS, seeds=[0, 1, 2, 3, 4], rows=rows, train=train)
    shown = project.run("snakemake", "-n", "--quiet", "rules").stdout
    counts = dict(re.findall(r"^(\w+) +(\d+)$", shown, re.MULTILINE))
    jobs = 19 * (1 + 25 + 5 + 1) + 3  # prepare, train, merge, evaluate; the asset, ledger, all
    assert counts["total"] == str(jobs), shown[-2000:]
    own = {"prepare_data": "1", "merge_rows": "5", "report_tables": "1"}
    own |= {f"train_{row}": "5" for row in rows}
    expected = {f"{paper}_{rule}": count for paper in PAPERS for rule, count in own.items()}
    assert expected.items() <= counts.items()
