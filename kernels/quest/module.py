"""QUEST attention as a layer: projections, heads, attention, output projection.

B batch, T tokens, C channels, H query heads, G key/value heads, D = C / H.
"""

from torch import Tensor, nn

from kernels.quest.dispatch import Backend, quest_attention


class QuestAttention(nn.Module):
    """Multi-head self-attention with unit keys, in place of any self-attention layer.

    `dim` channels (a multiple of `num_heads`), `num_kv_heads` key and value heads (a divisor of
    `num_heads`; all of them by default), `bias` on the projections of q, k and v, `dropout` on the
    attention weights while training. `causal` and `backend` as in `quest_attention`.
    """

    def __init__(
        self,
        dim: int,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
        bias: bool = True,
        causal: bool = False,
        dropout: float = 0.0,
        backend: Backend = "auto",
    ) -> None:
        super().__init__()
        num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        if dim % num_heads:
            raise ValueError(f"dim = {dim}: must be a multiple of the {num_heads} heads")
        if num_heads % num_kv_heads:
            raise ValueError(f"num_kv_heads = {num_kv_heads}: must divide the {num_heads} heads")
        self.head_dim, self.causal = dim // num_heads, causal
        self.dropout, self.backend = dropout, backend
        self.q_proj = nn.Linear(dim, dim, bias=bias)
        self.k_proj = nn.Linear(dim, num_kv_heads * self.head_dim, bias=bias)
        self.v_proj = nn.Linear(dim, num_kv_heads * self.head_dim, bias=bias)
        self.out_proj = nn.Linear(dim, dim)

    def forward(self, x_BTC: Tensor, *, mask: Tensor | None = None) -> Tensor:
        """Return (B, T, C); `mask` is (B, T) over the tokens or broadcasts to (B, H, T, T)."""
        q_BHTD, k_BGTD, v_BGTD = (
            proj(x_BTC).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
            for proj in (self.q_proj, self.k_proj, self.v_proj)
        )
        o_BHTD = quest_attention(
            q_BHTD,
            k_BGTD,
            v_BGTD,
            mask=mask,
            causal=self.causal,
            dropout=self.dropout if self.training else 0.0,
            backend=self.backend,
        )
        return self.out_proj(o_BHTD.transpose(1, 2).flatten(2))
