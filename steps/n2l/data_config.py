"""What params.yaml may say about a data set: glyphs and digits, emoji, or images of a hub."""

from typing import Literal

from pydantic import Field

from steps.shared.config import StepConfig

DATASETS = ("digits", "emoji", "aircraft", "cars", "cifar100", "cub", "objectnet", "ucf")
MODULES = {"glyphs": "digits_data", "emoji": "emoji_data", "hub": "hub_data"}  # of a kind


class Glyphs(StepConfig):
    """Handwritten digits, and glyphs of matplotlib's fonts on which their CLIP is trained."""

    kind: Literal["glyphs"]
    num_glyphs: int = Field(ge=34, description="rendered characters, over all 34 and all faces")
    num_test: int = Field(ge=10, description="digits of each seed that are tested, of 5,000")


class Emoji(StepConfig):
    """Artwork of two vendors to learn and to test, that of a third on which the CLIP is trained."""

    kind: Literal["emoji"]
    num_classes: int = Field(ge=2, description="names with artwork of both vendors")
    renderings: int = Field(ge=2, description="images made of each artwork")
    source_renderings: int = Field(ge=1, description="images made of each artwork of the third")
    source_names: int = Field(ge=2, description="names of the third vendor, the first ones")
    image_size: int = Field(ge=32, description="pixels along a side, as the tower sees them")
    num_test: int = Field(ge=10, description="images of each seed that are tested")


class Hub(StepConfig):
    """Images of a hub data set, and a pretrained open_clip model that nothing is trained of."""

    kind: Literal["hub"]
    name: str = Field(description="hub id, or a local folder")
    subset: str
    train_split: str
    test_split: str
    label: str = Field(description="column of class labels; a data set may have coarser ones")
    model: str = Field(description="open_clip's name of the architecture")
    pretrained: str = Field(description="open_clip's name of the weights")
    template: str = Field(description="what {} is put into, as 'a photo of a {}.'")
    batch_size: int = Field(ge=1, description="images per forward pass")


DataConfig = Glyphs | Emoji | Hub
