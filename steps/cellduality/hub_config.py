"""What params.yaml may say about data of the paper's scale: annotated expression files (h5ad)."""

from pydantic import Field

from steps.shared.config import StepConfig


class HubFile(StepConfig):
    """An h5ad file of a hub data set, or of a local folder; expression is log-normalised."""

    repo: str = Field(description="id of the data set, or a local folder")
    file: str = Field(description="path of the h5ad file in it")


class HubCells(StepConfig):
    """Cells with types: one file in, another out of distribution."""

    known: HubFile
    ood: HubFile
    type_column: str = Field(description="column of obs with the types")
    length: int = Field(ge=2, description="genes of a cell sentence, at most")
    num_genes: int = Field(ge=2, description="genes kept: the most variable in training cells")
    validation_share: float = Field(gt=0, lt=0.5, description="of each type's cells")
    test_share: float = Field(gt=0, lt=0.5, description="of each type's cells")


class HubDrugs(StepConfig):
    """Cells with a response to one drug: one file in, another out of distribution."""

    known: HubFile
    ood: HubFile
    drug_column: str = Field(description="column of obs with the drug")
    response_column: str = Field(description="column of obs: sensitive or resistant")
    length: int = Field(ge=2, description="genes of a cell sentence, at most")
    num_genes: int = Field(ge=2, description="genes kept: the most variable in training cells")
    validation_share: float = Field(gt=0, lt=0.5, description="of each response's cells")
    test_share: float = Field(gt=0, lt=0.5, description="of each response's cells")


class HubPerturbations(StepConfig):
    """Cells after perturbations and controls; a cell before is a control of its type."""

    known: HubFile
    operation: str = Field(description="what the perturbations are, as drug or knockdown")
    target_column: str = Field(description="column of obs with the drug or gene")
    control: str = Field(description="its value in cells that are not perturbed")
    type_column: str = Field(description="column of obs with types, which pairs are matched by")
    num_genes: int = Field(ge=2, description="genes kept: the most variable in training cells")
    length: int = Field(ge=2, description="genes of a cell sentence, at most")
    num_held_out: int = Field(ge=1, description="perturbations held out")
    validation_share: float = Field(gt=0, lt=0.5, description="of each perturbation's cells")
    test_share: float = Field(gt=0, lt=0.5, description="of each perturbation's cells")


class Hub(StepConfig):
    """The data of all four tasks."""

    cells: HubCells
    drugs: HubDrugs
    perturbations: HubPerturbations
