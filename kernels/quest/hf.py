"""QUEST attention for every model of transformers that takes an `attn_implementation`.

    from transformers import AutoModelForCausalLM

    from kernels.quest import register

    register()
    model = AutoModelForCausalLM.from_config(config, attn_implementation="quest")

Key/value caches hold the keys as the model wrote them; they are normalised when they are read.
"""

from typing import Any

from torch import Tensor, nn

from kernels.quest.dispatch import quest_attention

NAME = "quest"


def register() -> None:
    """Make "quest" an `attn_implementation` of transformers; calling it again changes nothing."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(NAME, quest_attention_forward)
    # boolean masks, or none where `is_causal` says it all
    AttentionMaskInterface.register(NAME, sdpa_mask)


def quest_attention_forward(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    **unused: Any,
) -> tuple[Tensor, None]:
    """Return (output (B, T, H, D), None), as transformers expects of an attention function.

    The model's `scaling` is dropped on purpose: QUEST has none. Options that would change the
    logits in a way that QUEST does not define raise ValueError.
    """
    for option in ("softcap", "position_bias", "s_aux"):
        if unused.get(option) is not None:
            raise ValueError(f"{option}: not defined for QUEST attention, must be None")
    num_queries, num_keys = query.shape[2], key.shape[2]
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    causal = causal and attention_mask is None and num_queries > 1
    if causal and num_keys > num_queries:
        # the first call on a static cache: the keys beyond the queries are not written yet
        key, value = key[:, :, :num_queries], value[:, :, :num_queries]
    output = quest_attention(query, key, value, mask=attention_mask, causal=causal, dropout=dropout)
    return output.transpose(1, 2).contiguous(), None
