"""What params.yaml may say about the task `toy`, and the names that its steps share.

A grid point is a learning rate and a weight decay; models of a stack are in the order of `grid`.
"""

from itertools import product
from typing import Annotated, Literal, get_args

from pydantic import Field, model_validator

from steps.shared.config import StepConfig
from steps.shared.fit_config import Heads

Form = Literal["minimal", "full"]
Rate = Annotated[float, Field(gt=0, le=1, description="learning rate")]
Decay = Annotated[float, Field(ge=0, lt=1, description="decoupled weight decay; matrices only")]
TABLES = {"minimal": "toy", "full": "toy_network"}  # the table of each form
SPLITS = ["robust", "biased"]


class Problem(StepConfig):
    """The toy retrieval problem; see toy.py."""

    num_tokens: int = Field(ge=2, description="tokens a sample")
    dim: int = Field(ge=1, description="dimensions of a token's key")
    num_answers: int = Field(ge=2, description="different answers")
    answer_sd: float = Field(gt=0, description="of the answer token's key in a robust sample")
    bias_norm: float = Field(gt=0, description="length of the mean key of biased answer tokens")
    bias_variance: float = Field(gt=0, description="of their keys around it, a dimension")
    biased_share: float = Field(ge=0, le=1, description="of the training samples")
    num_test: int = Field(ge=2, description="test samples, of each kind")


class Toy(Heads):
    """The grid of toy models of one row and seed, one stack; the size is that of the network."""

    rows: dict[Form, list[str]] = Field(
        description="by form ('minimal', one layer; 'full', network)"
    )
    learning_rates: list[Rate] = Field(min_length=1)
    weight_decays: list[Decay] = Field(min_length=1)
    beta1: float = Field(ge=0, lt=1)
    beta2: float = Field(ge=0, lt=1)
    steps: dict[Form, Annotated[int, Field(ge=1)]] = Field(description="updates, by form")
    batch_size: int = Field(ge=1, description="samples per update")
    num_probe: int = Field(ge=2, description="samples that a history line is measured on")
    log_every: int = Field(ge=1, description="updates per line of history.csv")
    checkpoint_every: int = Field(ge=1, description="updates; what an interruption can lose")

    @model_validator(mode="after")
    def _fits(self) -> "Toy":
        if missing := set(self.rows) - set(self.steps):
            raise ValueError(f"steps must name the updates of {', '.join(sorted(missing))}")
        return self


class ToyMeasures(StepConfig):
    """How the toy is judged."""

    success_accuracy: float = Field(gt=0, le=1, description="share of robust samples to answer")
    num_maps: int = Field(ge=1, description="samples of each kind whose attention is kept")


def forms_of(toy: Toy, row: str) -> list[str]:
    """Return the forms that a row trains in, in one order whatever the file's."""
    return [form for form in get_args(Form) if row in toy.rows.get(form, [])]


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
