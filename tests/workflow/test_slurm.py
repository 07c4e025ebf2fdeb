"""The Slurm profile on a real cluster of one node: opt in with -m slurm, as root."""

import os

import pytest
from slurm_cluster import CONFIG, cluster, missing
from smoke_tree import smoke_run, tracked_copy

from steps.shared.runtime import read_csv

FLAGS = (
    *("--configfile", "workflow/scales/smoke.yaml"),
    *("--default-resources", "mem_mb=2000", "runtime=10"),
    *("--slurm-status-command", "squeue"),  # there is no accounting
    *("--slurm-init-seconds-before-status-checks", "5", "--seconds-between-status-checks", "5"),
)


@pytest.mark.slurm
def test_a_cluster_leaves_the_results_of_one_machine(smoke, tmp_path):
    if os.getuid() or missing():
        pytest.skip(f"needs root and {', '.join(missing())}")
    if CONFIG.exists():
        pytest.skip(f"{CONFIG} exists: this machine is part of a cluster")
    tree = tracked_copy(tmp_path / "tree")
    with cluster(tmp_path / "cluster"):
        assert smoke_run(tree, *FLAGS, profile="slurm").returncode == 0
    papers = sorted(
        path.parent.parent.name for path in smoke.glob("results/smoke/*/evaluate/runs.csv")
    )
    for paper in papers:
        path = f"results/smoke/{paper}/evaluate/runs.csv"
        assert read_csv(tree / path) == read_csv(smoke / path), paper
