"""Planning stays quick when all papers are there."""

import re
import resource

PAPERS = tuple(f"p{number:02d}" for number in range(19))
BUDGET_CPU_SECONDS = 6.0  # of a dry run of all papers, imports included


def test_a_dry_run_of_nineteen_papers_is_within_its_budget(fresh):
    rows = [f"row{number}" for number in range(5)]
    train = {
        "common": {"updates": 20, "rate": 3},
        "rows": {row: {"decay": number} for number, row in enumerate(rows)},
    }
    project = fresh("many", PAPERS, seeds=[0, 1, 2, 3, 4], rows=rows, train=train)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    shown = project.run("snakemake", "-n", "--quiet", "rules").stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    jobs = 19 * (1 + 25 + 5 + 1) + 3  # prepare, train, merge, evaluate; the asset, ledger, all
    assert re.search(rf"^total +{jobs}$", shown, re.MULTILINE), shown[-2000:]
    assert spent <= BUDGET_CPU_SECONDS
