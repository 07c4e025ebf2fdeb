"""What params.yaml may say about the task `language`: corpus, transformer, how it is judged."""

from pydantic import Field

from steps.quest.model_config import BlockShape, RowFit
from steps.shared.config import StepConfig
from steps.shared.text_config import Source, TokenizerName


class TextData(Source):
    """The corpus and its tokenizer."""

    tokenizer: TokenizerName


class Language(RowFit):
    """How each row is trained."""

    shape: BlockShape
    context: int = Field(ge=8, description="tokens per sequence")


class LanguageMeasures(StepConfig):
    """How a language model is judged."""

    batch_size: int = Field(ge=1, description="sequences per forward pass")
