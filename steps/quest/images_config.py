"""What params.yaml may say about the task `images`: data, transformer, how it is judged."""

from typing import Annotated, Literal

from pydantic import Field

from steps.quest.model_config import BlockShape, RowFit
from steps.shared.config import StepConfig

DIGIT_CORRUPTIONS = (  # what they are: corruptions.py
    "gaussian_noise",
    "impulse_noise",
    "blur",
    "contrast",
    "occlusion",
    "rotation",
    "pixelate",
)
DIGIT_SEVERITIES = (1, 2, 3)
Radius = Annotated[float, Field(gt=0, le=1, description="largest change of a pixel, of [0, 1]")]


class ImageData(StepConfig):
    """Where images come from: the packaged digits, or a data set of the hub by id or folder."""

    kind: Literal["asset", "hub"]
    name: str = Field(description="asset name, or hub id, or a local folder")
    image_size: int = Field(ge=4, description="pixels along a side, as the model sees them")
    num_validation: int = Field(ge=1, description="images kept from training, for every seed alike")
    num_test: int = Field(ge=1, description="test images; of a hub data set the largest number")


class Shape(BlockShape):
    """The size of a vision transformer."""

    patch: int = Field(ge=1, description="pixels along the side of a patch")


class Images(RowFit):
    """How each row is trained."""

    shape: Shape
    drop_path: float = Field(ge=0, lt=1, description="share of residual branches left out, last")
    label_smoothing: float = Field(ge=0, lt=1, description="share of the target given to all")
    max_shift: int = Field(ge=0, description="pixels that a training digit is moved, at most")


class ImageMeasures(StepConfig):
    """How images are judged."""

    batch_size: int = Field(ge=1, description="images per forward pass")
    corrupted: str = Field(
        description="'digits' (steps/quest/corruptions.py), or a folder or hub id of corrupted"
        " images, with {corruption} and {severity}"
    )
    corruptions: list[str] = Field(min_length=1)
    severities: list[Annotated[int, Field(ge=1, le=5)]] = Field(min_length=1)
    num_attacked: int = Field(ge=1, description="test images that are attacked, the first ones")
    radii: list[Radius] = Field(min_length=1)
    pgd_steps: int = Field(ge=1)
    pgd_step: float = Field(gt=0, le=1, description="of the radius")
    pattern_size: int = Field(ge=1, description="pixels of the square pasted into a corner")
