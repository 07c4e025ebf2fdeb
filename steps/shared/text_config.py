"""What params.yaml says of a text corpus and of the tokenizer that reads it."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from steps.shared.config import StepConfig


class Source(StepConfig):
    """Where a corpus comes from: a packaged asset, or a data set of the hub by id."""

    kind: Literal["asset", "hub"]
    name: str = Field(description="asset name, or hub id")
    subset: str = Field(description="hub configuration name; empty for none")
    train_tokens: int = Field(ge=1000, description="largest number of training tokens kept")
    test_tokens: int = Field(ge=100, description="largest number of test tokens kept")


def corpus_files(source: Mapping[str, Any]) -> list[str]:
    """Return the corpus, made from assets, that a `Source` names; of the hub there is none."""
    return [f"assets/corpora/{source['name']}.jsonl"] if source["kind"] == "asset" else []


def _bpe_size(name: str) -> str:
    size = name.removeprefix("bpe:")
    if size != name and not (size.isdecimal() and 257 <= int(size) <= 65536):
        raise ValueError("the N of 'bpe:N' must be a number of tokens from 257 to 65536")
    return name


TokenizerName = Annotated[
    str,
    AfterValidator(_bpe_size),
    Field(description="'bpe:N' (N tokens, 257 to 65536), or a hub id"),
]
