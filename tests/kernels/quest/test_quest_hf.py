"""attn_implementation="quest" on a Llama, a ViT and a BERT built from their configurations.

The truth is attention written out in four lines and registered under another name: the same loss
and the same gradient of every parameter.
"""

import pytest
import torch
import torch.nn.functional as F
from transformers import (
    AttentionInterface,
    AttentionMaskInterface,
    BertConfig,
    BertForSequenceClassification,
    LlamaConfig,
    LlamaForCausalLM,
    ViTConfig,
    ViTForImageClassification,
)
from transformers.masking_utils import eager_mask

from kernels.quest import register
from kernels.quest.hf import quest_attention_forward

SMALL = {"hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 48}
LLAMA = LlamaConfig(**SMALL, num_hidden_layers=2, num_key_value_heads=2, vocab_size=50)
VIT = ViTConfig(**SMALL, num_hidden_layers=2, image_size=12, patch_size=4)
BERT = BertConfig(**SMALL, num_hidden_layers=2, vocab_size=50)


def naive(module, query, key, value, attention_mask, **unused):
    key, value = (x.repeat_interleave(query.shape[1] // x.shape[1], 1) for x in (key, value))
    logits = query @ F.normalize(key, dim=-1).mT
    logits = logits if attention_mask is None else logits + attention_mask
    return (logits.softmax(dim=-1) @ value).transpose(1, 2), None


@pytest.fixture(scope="module", autouse=True)
def registered():
    register()
    register()
    AttentionInterface.register("naive_quest", naive)
    AttentionMaskInterface.register("naive_quest", eager_mask)


def tokens(*shape):
    return torch.randint(1, 50, shape, generator=torch.Generator().manual_seed(0))


def llama_batch():
    keep = torch.ones(2, 11, dtype=torch.long)
    keep[1, 7:] = 0
    ids = tokens(2, 11)
    return {"input_ids": ids, "attention_mask": keep, "labels": ids.masked_fill(keep == 0, -100)}


def vit_batch():
    generator = torch.Generator().manual_seed(0)
    return {
        "pixel_values": torch.randn(3, 3, 12, 12, generator=generator),
        "labels": torch.arange(3) % 2,
    }


def bert_batch():
    keep = torch.ones(2, 9, dtype=torch.long)
    keep[1, 5:] = 0
    return {"input_ids": tokens(2, 9), "attention_mask": keep, "labels": torch.tensor([0, 1])}


MODELS = {
    "llama": (LlamaForCausalLM, LLAMA, llama_batch),
    "vit": (ViTForImageClassification, VIT, vit_batch),
    "bert": (BertForSequenceClassification, BERT, bert_batch),
}


def build(kind, config, implementation):
    torch.manual_seed(0)
    model = kind._from_config(config, attn_implementation=implementation)
    with torch.no_grad():  # wide enough that keys of different lengths matter
        for name, weight in model.named_parameters():
            if weight.ndim == 2 and any(
                part in name for part in ("q_proj", "k_proj", "query", "key")
            ):
                weight.normal_(std=0.5)
    return model.eval()


@pytest.mark.parametrize("name", MODELS)
def test_a_training_step_has_the_loss_and_gradients_of_attention_written_out(name):
    kind, config, batch = MODELS[name]
    results = {}
    for implementation in ("quest", "naive_quest", "sdpa"):
        model = build(kind, config, implementation)
        loss = model(**batch()).loss
        loss.backward()
        gradients = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
        results[implementation] = {"loss": loss.detach(), **gradients}
    close = {"rtol": 1e-4, "atol": 1e-6}
    torch.testing.assert_close(results["quest"], results["naive_quest"], **close)
    with pytest.raises(AssertionError):  # these inputs do tell attentions apart
        torch.testing.assert_close(results["quest"], results["sdpa"], **close)


@pytest.mark.parametrize("name", MODELS)
def test_updates_lower_the_loss(name):
    kind, config, batch = MODELS[name]
    model = build(kind, config, "quest").train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(8):
        loss = model(**batch()).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_generation_with_a_cache_is_generation_without():
    model = build(LlamaForCausalLM, LLAMA, "quest")
    options = {
        "max_new_tokens": 8, "min_new_tokens": 8, "do_sample": False, "pad_token_id": 0,
        "return_dict_in_generate": True, "output_logits": True,
    }  # fmt: skip
    plain = model.generate(tokens(2, 6), use_cache=False, **options)
    for cache in ("dynamic", "static"):
        cached = model.generate(tokens(2, 6), cache_implementation=cache, **options)
        assert torch.equal(cached.sequences, plain.sequences)
        torch.testing.assert_close(
            torch.stack(cached.logits), torch.stack(plain.logits), rtol=1e-4, atol=1e-5
        )


def test_padding_on_the_left_changes_nothing():
    model = build(LlamaForCausalLM, LLAMA, "quest")
    ids = tokens(1, 6)
    padded = torch.cat([torch.zeros(1, 3, dtype=torch.long), ids], dim=1)
    keep = (padded != 0).long()
    options = {"max_new_tokens": 6, "min_new_tokens": 6, "do_sample": False, "pad_token_id": 0}
    alone = model.generate(ids, **options)
    assert torch.equal(model.generate(padded, attention_mask=keep, **options)[:, 3:], alone)


@pytest.mark.parametrize("option", ["softcap", "position_bias", "s_aux"])
def test_what_would_change_the_logits_is_refused(option):
    q = torch.zeros(1, 1, 2, 16)
    with pytest.raises(ValueError, match=f"{option}: not defined for QUEST"):
        quest_attention_forward(torch.nn.Module(), q, q, q, None, **{option: torch.ones(1)})
