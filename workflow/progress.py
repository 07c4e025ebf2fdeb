"""What a person sees while the workflow runs: the job that starts, how many are done, what is left.

Estimates come from published/<paper>/cost.csv (seconds a job of each rule took) and are scaled by
how fast this machine has been so far.
"""

import csv
import logging
import sys
import time
from collections.abc import Mapping
from pathlib import Path

UNKNOWN_SECONDS = 5.0
REPLACED = ("job_info", "job_finished", "progress", "resources_info", "run_info")


def known_seconds(published: Path) -> dict[str, float]:
    """Return rule -> mean seconds of one job, as published."""
    seconds: dict[str, float] = {}
    for path in sorted(published.glob("*/cost.csv")):
        with open(path, encoding="utf-8", newline="") as file:
            seconds |= {row["rule"]: float(row["seconds"]) for row in csv.DictReader(file)}
    return seconds


def in_words(seconds: float) -> str:
    """Return a duration as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class Progress(logging.Filter):
    """Replaces Snakemake's blocks by one line when a job starts and one when it ends.

    A filter of the handler that writes to the terminal; errors and all else pass.
    """

    def __init__(self, jobs: Mapping[int, str], seconds: Mapping[str, float], cores: int) -> None:
        """Take the jobs to run (id -> rule) and the seconds that a job of each rule takes."""
        super().__init__()
        self.left = {job: seconds.get(rule, UNKNOWN_SECONDS) for job, rule in jobs.items()}
        self.total, self.expected = len(self.left), sum(self.left.values())
        self.cores, self.begin = cores, time.monotonic()

    def filter(self, record: logging.LogRecord) -> bool:
        """Write our line for an event; return whether Snakemake's own is shown too."""
        event = str(getattr(record, "event", ""))
        if event == "job_info" and getattr(record, "rule_msg", None):
            self._say(f"start  {record.rule_msg}")
        elif event == "job_finished" and self.left.pop(record.job_id, None) is not None:
            self._say(f"done   {self.total - len(self.left)}/{self.total} jobs{self._estimate()}")
        scheduling = record.getMessage().startswith(("Select jobs", "Execute "))
        return event not in REPLACED and not scheduling

    def _estimate(self) -> str:
        gone = time.monotonic() - self.begin
        left, done = sum(self.left.values()), self.expected - sum(self.left.values())
        if not self.left:
            return f", {in_words(gone)}"
        # trust the published seconds at first, this machine's own pace more and more
        ideal = done / self.cores
        pace = (gone + 10) / (ideal + 10)
        return f", {in_words(gone)} gone, about {in_words(left / self.cores * pace)} left"

    @staticmethod
    def _say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)
