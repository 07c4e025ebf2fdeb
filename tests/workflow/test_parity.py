"""dvc.yaml against the Snakefile, on the real tree: the coarse edges and the fine ones agree."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from steps.shared.config import BLOCK, PHASES, read_yaml

ROOT = Path(__file__).resolve().parents[2]
CONFIG = read_yaml(ROOT / "params.yaml")
PAPERS = list(CONFIG["papers"])
STAGES = read_yaml(ROOT / "dvc.yaml")["stages"]
RULES = sorted((ROOT / "workflow/rules").glob("*.smk"))
ORDER = [
    "name",
    "input",
    "output",
    "log",
    "benchmark",
    "conda",
    "threads",
    "resources",
    "params",
    "message",
]
OPTIONAL = ("name", "input", "resources")
ALL_STAGES = [(paper, phase) for paper in PAPERS for phase in PHASES]


@pytest.fixture(scope="module")
def jobs(tmp_path_factory) -> dict[str, list[dict]]:
    """Return the jobs behind each target, planned in a copy that holds no results."""
    tree = tmp_path_factory.mktemp("parity")
    for name in ("workflow", "steps", "kernels"):
        shutil.copytree(ROOT / name, tree / name)
    for name in ("Snakefile", "params.yaml"):
        shutil.copy(ROOT / name, tree)
    targets = [f"{paper}_{phase}" for paper, phase in ALL_STAGES]
    script = Path(__file__).with_name("dag_as_json.py")
    command = [sys.executable, str(script), "all", *targets]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def stage(paper: str, phase: str) -> dict:
    """Return a stage of dvc.yaml with its paper filled in."""
    block = STAGES[phase]
    assert block["foreach"] == "${papers}"
    return json.loads(json.dumps(block["do"]).replace("${key}", paper))


def folders(entries: list) -> list[str]:
    return [next(iter(entry)) if isinstance(entry, dict) else entry for entry in entries]


def own(jobs: dict, paper: str, phase: str) -> list[dict]:
    """Return the jobs of one phase: behind its target, but not assets nor earlier phases."""
    earlier = {
        job["rule"]
        for name in PHASES[: PHASES.index(phase)]
        for job in jobs[f"{paper}_{name}"]
    }  # fmt: skip
    return [
        job
        for job in jobs[f"{paper}_{phase}"]
        if job["rule"] not in earlier and not job["output"][0].startswith("assets/")
    ]


def inside(path: str, places: list[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


@pytest.mark.parametrize(("paper", "phase"), ALL_STAGES)
def test_a_stage_declares_what_its_jobs_read_and_write(jobs, paper, phase):
    declared, mine = stage(paper, phase), own(jobs, paper, phase)
    assert declared["cmd"] == f"snakemake {paper}_{phase}"
    assert mine
    made = {path for job in mine for path in job["output"]}
    assert folders(declared["outs"]) == [f"results/mini/{paper}/{phase}"]
    assert declared["outs"] == [{f"results/mini/{paper}/{phase}": {"persist": True}}]
    assert [path for path in made if not inside(path, folders(declared["outs"]))] == []
    read = {path for job in mine for path in job["input"]} - made
    outside = {path for path in read if not path.startswith("assets/")}
    assert [path for path in outside if not inside(path, declared["deps"])] == []
    assert {f"steps/{paper}", "steps/shared", "kernels"} <= set(declared["deps"])


@pytest.mark.parametrize(("paper", "phase"), ALL_STAGES)
def test_a_stage_names_the_configuration_that_its_rules_read(jobs, paper, phase):
    declared, mine = stage(paper, phase), own(jobs, paper, phase)
    keys = {key.removeprefix(f"papers.{paper}.") for key in declared["params"]}
    assert keys <= set(BLOCK)
    assert phase in keys
    block = CONFIG["papers"][paper]
    rows = {*block["rows"], *block["train"]["rows"]}
    text = json.dumps(mine).replace(f"results/mini/{paper}/", "")  # a row may have its paper's name
    assert ("rows" in keys) or not any(f"/{row}/" in text for row in rows)
    assert ("seeds" in keys) or "/seed" not in text


@pytest.mark.parametrize("paper", PAPERS)
def test_no_result_belongs_to_two_phases_and_none_is_forgotten(jobs, paper):
    made = [path for phase in PHASES for job in own(jobs, paper, phase) for path in job["output"]]
    assert len(set(made)) == len(made)
    folder = f"results/mini/{paper}/"
    everything = {path for job in jobs["all"] for path in job["output"] if path.startswith(folder)}
    assert everything <= set(made)


@pytest.mark.parametrize("paper", PAPERS)
def test_params_change_with_every_file_of_code_that_a_rule_runs(jobs, paper):
    for job in (job for phase in PHASES for job in own(jobs, paper, phase)):
        assert re.fullmatch("[0-9a-f]{16}", job["params"]["code"]), job["rule"]


def test_provenance_covers_the_ledger_and_snakemakes_records(jobs):
    declared = STAGES["provenance"]
    assert declared["cmd"] == "snakemake all"
    assert declared["deps"] == ["results/mini"]
    outs = ["results/ledger/mini", ".snakemake/metadata"]
    assert declared["outs"] == [{out: {"persist": True}} for out in outs]
    places = ["assets", *outs, *(f"results/mini/{paper}" for paper in PAPERS)]
    made = {path for job in jobs["all"] for path in job["output"]}
    assert [path for path in made if not inside(path, places)] == []


def test_the_metrics_and_plots_of_dvc_are_outputs_of_the_workflow(jobs):
    dvc = read_yaml(ROOT / "dvc.yaml")
    made = {path for job in jobs["all"] for path in job["output"]}
    assert dvc["metrics"] and dvc["plots"]
    assert set(folders(dvc["metrics"] + dvc["plots"])) <= made


def directives(rule: str) -> list[str]:
    """Return the directives of the text of one rule, in order."""
    indent = min(len(line) - len(line.lstrip()) for line in rule.splitlines() if line.strip())
    return re.findall(rf"^ {{{indent}}}(\w+):", rule, re.MULTILINE)


@pytest.mark.parametrize("file", RULES, ids=lambda path: path.stem)
def test_every_rule_has_the_same_directives_in_the_same_order(file):
    for rule in re.split(r"^ *rule(?: \w+)?:\n", file.read_text(), flags=re.MULTILINE)[1:]:
        found = directives(re.split(r"^(?=\S)", rule, flags=re.MULTILINE)[0])
        if found == ["input"]:
            continue  # a target
        expected = [name for name in ORDER if name in found or name not in OPTIONAL]
        assert found == [*expected, "shell"], rule
        if "launcher=launcher" in rule:  # as many processes as accelerate has GPUs
            assert "gpu=gpus" in rule, rule


def test_the_snakefile_stays_short():
    assert len((ROOT / "Snakefile").read_text().splitlines()) < 60


@pytest.mark.parametrize("paper", PAPERS)
def test_planning_imports_no_torch(paper):
    rules = (ROOT / f"workflow/rules/{paper}.smk").read_text()
    imports = re.findall(r"^(?:from|import) .*", rules, re.MULTILINE)
    lines = [*imports, f"import steps.{paper}.config, steps.shared.assets, sys"]
    lines += ["print([name for name in ('torch', 'pandas', 'wandb') if name in sys.modules])"]
    command = [sys.executable, "-c", "\n".join(lines)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
