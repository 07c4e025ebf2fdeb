"""QUEST: "A robust attention formulation using query-modulated spherical attention".

ICLR 2026, arXiv 2604.00199.

Attention whose keys have length 1 and whose logits have no scale: `softmax(q kbar^T) v`. A key
cannot draw every query to itself by growing; a query still sets how sharp its own row is.

    o_BHTD = quest_attention(q_BHTD, k_BGSD, v_BGSD, causal=True)
    y_BTC = QuestAttention(768, 12, causal=True)(x_BTC)
    register()  # then attn_implementation="quest" in transformers

    reference.py        the definition, in plain torch
    torch_path.py       unit keys and torch's fused attention, on CPU and GPU
    triton_path.py      the kernels as one differentiable function
      triton_forward.py, triton_queries.py (dq), triton_keys.py (dk, dv)
      triton_blocks.py  tiles, key norms, masks      triton_launch.py  block sizes, strides
    dispatch.py         quest_attention: checks, chooses a path
    module.py           QuestAttention, a self-attention layer
    device.py           what `make device-check` compares and times on a GPU
    hf.py               attn_implementation="quest" in transformers
    variants.py         what `make kernel-table` compiles; table.csv, what it found
"""

from kernels.quest.dispatch import quest_attention
from kernels.quest.hf import register
from kernels.quest.module import QuestAttention

__all__ = ["QuestAttention", "quest_attention", "register"]
