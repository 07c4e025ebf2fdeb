"""Print every job of the workflow in this folder as JSON: `python dag_as_json.py TARGET...`."""

import json
import sys
from pathlib import Path

from snakemake.api import ConfigSettings, OutputSettings, ResourceSettings, SnakemakeApi
from snakemake.settings.types import DAGSettings, Quietness


def main() -> None:
    """Print {target: [jobs behind it]}, asset jobs and upstream phases included."""
    with SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
        flow = api.workflow(
            resource_settings=ResourceSettings(cores=1),
            config_settings=ConfigSettings(),
            snakefile=Path("Snakefile"),
        )
        flow.dag(DAGSettings(targets=set(sys.argv[1:]), forceall=True))
        workflow = flow._workflow
        workflow._prepare_dag(forceall=True, ignore_incomplete=True, lock_warn_only=True)
        workflow._build_dag()
        jobs = {job.rule.name: job for job in workflow.dag.jobs}
        print(json.dumps({name: _behind(workflow.dag, jobs[name]) for name in sys.argv[1:]}))


def _behind(dag, target) -> list[dict]:
    todo, seen = list(dag.dependencies[target]), set()
    while todo:
        job = todo.pop()
        if job not in seen:
            seen.add(job)
            todo += dag.dependencies[job]
    return [_described(job) for job in sorted(seen, key=lambda job: sorted(map(str, job.output)))]


def _described(job) -> dict:
    return {
        "rule": job.rule.name,
        "input": [str(path) for path in job.input],
        "output": [str(path) for path in job.output],
        "params": {key: str(value) for key, value in job.params.items()},
    }


if __name__ == "__main__":
    main()
