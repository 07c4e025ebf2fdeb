# Helper functions only: what a rule is given is computed here, the rules are in the other files.

import ast
import fcntl
import functools
import json
import os
import re
import shutil
import sys
from pathlib import Path

sys.path.insert(0, workflow.basedir)

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger
from steps.shared import assets
from steps.shared import config as configuration
from steps.shared.codedigest import code_digest
from steps.shared.runtime import InputError
from workflow.progress import Progress, known_seconds

try:  # what Snakemake says of a file that it cannot read names neither the file nor the place
    configuration.read_yaml(configuration.PARAMS)
except InputError as error:
    raise WorkflowError(str(error)) from None


configfile: "params.yaml"


PAPERS = list(config["papers"]) if isinstance(config.get("papers"), dict) else []
LOCK = Path(".snakemake/retable.lock")

# a job that outlives a killed run still holds the lock, so that it cannot write beside the next run
shell.prefix(
    f"set -euo pipefail; exec 9>>{LOCK}; flock --shared --nonblock 9 || true; "
)


def check_config():
    """Validate every paper's block; the first wrong keys end the run in one line each."""
    try:
        configuration.validate(config)
    except InputError as error:
        raise WorkflowError(str(error)) from None


def hold_run_lock():
    """Refuse to run beside another run of this folder, or beside jobs that outlived theirs.

    Starting takes the lock alone; the run and each of its jobs then share it until they end.
    """
    LOCK.parent.mkdir(exist_ok=True)
    hold_run_lock.file = open(LOCK, "a")
    try:
        fcntl.flock(hold_run_lock.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove_remains()
        fcntl.flock(hold_run_lock.file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        raise SystemExit(
            "another run is working in this folder: wait for it to end, or stop it, then run again"
        ) from None


def remove_remains():
    """Remove the temporary files that killed jobs left, which DVC would record as results."""
    for path in list(Path("results").glob("**/.*.tmp")):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def seeds(paper):
    """Return the reported seeds of a paper."""
    return config["papers"][paper]["seeds"]


def rows(paper):
    """Return the trained rows (method variants) of a paper."""
    return config["papers"][paper]["rows"]


def step_config(paper, phase, row=None, model=None):
    """Return a params function: the JSON of exactly what the step reads.

    `row` names the trained row; `model` keeps only that model's fields.
    """

    def resolved(wildcards):
        value = configuration.resolve(config, paper, phase, row)
        if model is not None:
            value = {key: value[key] for key in model.model_fields if key in value}
        return json.dumps(value, sort_keys=True)

    return resolved


def code(module):
    """Return a params function: the digest of all project code that `module` imports."""
    return lambda wildcards: code_digest(module)


@functools.cache
def asset_manifest():
    return assets.load_manifest()


def asset_files(name):
    """Return the files of an asset as they appear in the tree."""
    return [
        f"assets/{name}/{Path(member).name}"
        for member in asset_manifest()[name].members
    ]


def asset_entry(name):
    """Return the manifest entry of an asset as JSON: what its rule depends on."""
    return json.dumps(asset_manifest()[name].model_dump(), sort_keys=True)


def tables_page(paper):
    """Return the page of a paper's tables, as an entry of the report."""
    what = "All tables, with claims and verdicts"
    return entry(paper, "table.html", what, "../report/table.rst")


def figure_pages(paper, names, shows):
    """Return a paper's figures as entries of the report; `shows`: {name: what it shows}."""
    return [
        entry(
            paper,
            f"figures/{name}.svg",
            f"Figure: {shows[name]}",
            "../report/figure.rst",
        )
        for name in names
    ]


def report_outputs(paper, names, shows):
    """Return what a paper's report leaves, by name; `names`, `shows`: as in `figure_pages`."""
    folder = f"results/{{scale}}/{paper}/evaluate"
    return {
        "runs": f"{folder}/runs.csv",
        "table": f"{folder}/table.csv",
        "markdown": f"{folder}/table.md",
        "page": tables_page(paper),
        "claims": f"{folder}/claims.json",
        "metrics": f"{folder}/metrics.json",
        "figures": figure_pages(paper, names, shows),
    }


def entry(paper, file, what, caption):
    """Return a file of evaluate, marked for the report; entries of a paper need different labels."""
    path = f"results/{{scale}}/{paper}/evaluate/{file}"
    labels = {"entry": what}
    return report(path, caption=caption, category=paper_name(paper), labels=labels)


@functools.cache
def paper_title(paper):
    """Return the first line of a paper's package: 'NAME: what it is about.'"""
    tree = ast.parse(Path(workflow.basedir, f"steps/{paper}/__init__.py").read_bytes())
    return (ast.get_docstring(tree) or paper).splitlines()[0].rstrip(".")


def paper_name(paper):
    """Return a paper's name, as readers of the report see it."""
    return re.split("[:,]", paper_title(paper))[0]


def launcher(wildcards):
    """Return how a training step starts: as one process, or on the GPUs of the paper scale."""
    if config["scale"] == "paper":
        return "accelerate launch --module"
    return "python -m"


def device(wildcards):
    """Return the device that a training step uses: of mini and smoke, where it is the same."""
    return "cpu" if config["scale"] in ("mini", "smoke") else "auto"


def gpus(wildcards):
    """Return the GPUs that a training job asks for: as many as accelerate is configured for."""
    return int(os.environ.get("RETABLE_GPUS", 1)) if config["scale"] == "paper" else 0


def one_gpu(wildcards):
    """Return the GPUs that a job in one process asks for."""
    return int(config["scale"] == "paper")


def wake_scheduler_by_events_alone():
    """Drop Snakemake's limit of jobs a second, where jobs run on this machine.

    It wakes the scheduler a second after each time that it woke, so that every job that ends adds
    another endless chain of wakes: measured, 11 CPU minutes of the 94 of all papers.
    """
    if workflow.local_exec:
        workflow.scheduler.job_rate_limiter = None


def show_progress():
    """Write a line when a job starts and one when it ends, with about how long is left."""
    jobs = {job.jobid: job.rule.name for job in workflow.dag.needrun_jobs()}
    cores = workflow.resource_settings.cores or 1
    progress = Progress(jobs, known_seconds(Path("published")), cores)
    for handler in logger.handlers:
        if handler.name == "DefaultStreamHandler":
            handler.addFilter(progress)
