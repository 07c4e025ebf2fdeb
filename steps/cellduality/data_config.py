"""What params.yaml may say about the data: blood cells, drug response, simulated perturbations."""

from pydantic import Field

from steps.shared.config import StepConfig


class Cells(StepConfig):
    """Blood cells of pbmc68k_reduced: annotation and generation."""

    length: int = Field(ge=2, description="genes of a cell sentence, at most")
    num_genes: int = Field(ge=2, description="genes kept: the most variable in training cells")
    min_cells: int = Field(ge=4, description="types with fewer cells that are not held out go")
    validation_share: float = Field(gt=0, lt=0.5, description="of each type's cells")
    test_share: float = Field(gt=0, lt=0.5, description="of each type's cells")
    held_out: dict[str, list[str]] = Field(
        description="type -> its louvain clusters that only the out-of-distribution split has"
    )


class Drugs(StepConfig):
    """Drug response of cancer cell lines (GDSC, release 17)."""

    length: int = Field(ge=2, description="altered features of a sentence, at most")
    drugs: list[int] = Field(min_length=1, description="GDSC's numbers of the drugs")
    min_lines: int = Field(ge=1, description="training lines that have a feature, at least")
    validation_share: float = Field(gt=0, lt=0.5, description="of each tissue's lines")
    test_share: float = Field(gt=0, lt=0.5, description="of each tissue's lines")
    held_out: list[str] = Field(
        min_length=1, description="tissues that only the out-of-distribution split has"
    )


class Perturbations(StepConfig):
    """Simulated knockdown and overexpression in the myeloid network of Krumsiek et al. (2011)."""

    cells: int = Field(ge=4, description="simulated cells of each perturbation")
    steps_before: int = Field(ge=1, description="simulation steps before it, at most")
    steps_after: int = Field(ge=1, description="simulation steps after it")
    dynamic_noise: float = Field(ge=0, description="standard deviation added at each step")
    observation_noise: float = Field(ge=0, description="standard deviation added when measured")
    detection: float = Field(ge=0, lt=1, description="expression below it is measured as 0")
    num_held_out: int = Field(
        ge=1, le=11, description="pairs (operation, target) held out, on distinct targets"
    )
    validation_share: float = Field(gt=0, lt=0.5, description="of each pair's cells")
    test_share: float = Field(gt=0, lt=0.5, description="of each pair's cells")
