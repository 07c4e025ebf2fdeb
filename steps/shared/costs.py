"""What a paper cost: CPU seconds by getrusage (logged by every step), wall seconds by Snakemake.

python -m steps.shared.costs wsm --scale mini
"""

import argparse
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

from steps.shared.runtime import run_step

COST = re.compile(r"^cost: ([\d.]+) CPU s, peak (\d+) MiB$", re.MULTILINE)
FIELDS = ("rule", "jobs", "cpu_seconds", "seconds", "peak_mib")


def by_rule(paper: str, *, scale: str) -> list[dict[str, Any]]:
    """Return one row per rule: jobs, mean CPU and wall seconds of a job, largest peak memory.

    Read from the logs of the jobs that ran here last; a rule without logs is left out.
    """
    jobs: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for log in sorted((Path("logs") / scale / paper).glob("*.log")):
        found = COST.findall(log.read_text(encoding="utf-8", errors="replace"))
        timing = log.with_suffix(".tsv")
        if found and timing.is_file():
            with open(timing, encoding="utf-8") as file:
                names, values = (line.split("\t") for line in file.read().splitlines()[:2])
            wall = float(dict(zip(names, values, strict=True))["s"])
            rule = f"{paper}_{re.sub(r'_seed[0-9]+$', '', log.stem)}"
            jobs[rule].append((float(found[-1][0]), wall, float(found[-1][1])))
    return [
        {
            "rule": rule,
            "jobs": len(rows),
            "cpu_seconds": round(sum(row[0] for row in rows) / len(rows), 2),
            "seconds": round(sum(row[1] for row in rows) / len(rows), 2),
            "peak_mib": max(row[2] for row in rows),
        }
        for rule, rows in sorted(jobs.items())
    ]


def cpu_seconds(rows: list[dict[str, Any]]) -> float:
    """Return the CPU seconds of all jobs."""
    return round(sum(row["cpu_seconds"] * row["jobs"] for row in rows), 1)


def main() -> None:
    """Print the cost table of a paper."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paper")
    parser.add_argument("--scale", default="mini")
    args = parser.parse_args()
    rows = by_rule(args.paper, scale=args.scale)
    for row in rows:
        print("  ".join(f"{key} {row[key]}" for key in FIELDS))
    print(f"total: {cpu_seconds(rows) / 60:.1f} CPU minutes")


if __name__ == "__main__":
    run_step(main)
