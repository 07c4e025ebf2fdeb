"""Names that the workflow, which declares files, and the steps, which make them, share: no torch.

A grid point is a learning rate and a weight decay; models of a stack are in the order of `grid`.
"""

from collections.abc import Mapping
from itertools import product
from typing import Any

from steps.quest.config import Toy
from steps.shared.config import resolve

FIGURES = ["toy_attention", "toy_logits", "toy_rates"]
TOY_TABLES = {"minimal": "toy", "full": "toy_network"}  # the table of each form
TOY_SPLITS = ["robust", "biased"]


def rows_of(config: Mapping[str, Any], task: str) -> list[str]:
    """Return the rows that take part in a task, in order, from the whole configuration."""
    rows = config["papers"]["quest"]["rows"]
    return [row for row in rows if task in resolve(config, "quest", "train", row)["tasks"]]


def seeds_of(config: Mapping[str, Any], task: str) -> list[int]:
    """Return the seeds of a task: the first of the paper's."""
    block = config["papers"]["quest"]
    return block["seeds"][: block["train"]["common"][task]["num_seeds"]]


def toy_files(config: Mapping[str, Any]) -> list[str]:
    """Return what training the toy leaves for one seed, beside the folder of its rows."""
    by_form = config["papers"]["quest"]["train"]["common"]["toy"]["rows"]
    names = {row: ["history.csv"] for row in rows_of(config, "toy")}
    for row, files in names.items():
        files += [f"{form}.safetensors" for form, rows in by_form.items() if row in rows]
    return [f"{row}/seed{{seed}}/{file}" for row, files in names.items() for file in files]


def grid(config: Toy) -> list[tuple[float, float]]:
    """Return every (learning rate, weight decay) of a stack."""
    return list(product(config.learning_rates, config.weight_decays))


def column(form: str, rate: float, decay: float, metric: str) -> str:
    """Return the name of a column of history.csv."""
    return f"{form}/lr{rate:g}/wd{decay:g}/{metric}"


def parse_column(name: str) -> tuple[str, float, float, str]:
    """Return (form, learning rate, weight decay, metric) of a column that `column` named."""
    form, rate, decay, metric = name.split("/")
    return form, float(rate.removeprefix("lr")), float(decay.removeprefix("wd")), metric
