"""Byte-level BPE: whole texts come back, frequent ones are short."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from steps.shared.text_config import TokenizerName
from steps.shared.tokenizer import encode, make_tokenizer


@settings(max_examples=30)
@given(text=st.text(max_size=60))
def test_any_text_comes_back_from_its_tokens(text):
    tokenizer = make_tokenizer("bpe:280", ["the cat sees the cat"] * 20)
    (ids,) = encode(tokenizer, [text])
    assert ids.dtype == np.uint16 and ids.max(initial=0) < tokenizer.get_vocab_size()
    assert tokenizer.decode(ids.tolist()) == text


def test_what_is_frequent_becomes_one_token():
    tokenizer = make_tokenizer("bpe:280", ["the cat sees the cat"] * 20)
    cat, rare = encode(tokenizer, [" cat", "tac"])
    assert (len(cat), len(rare)) == (1, 3)


@pytest.mark.parametrize("name", ["bpe:256", "bpe:70000", "bpe:", "bpe:1e3"])
def test_a_size_that_cannot_be_is_refused(name):
    with pytest.raises(ValidationError, match="from 257 to 65536"):
        TypeAdapter(TokenizerName).validate_python(name)
