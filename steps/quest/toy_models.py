"""The two networks of the toy problem, for any row.

`Minimal` is one attention layer with a single weight, of the keys: queries are the tokens' own
keys, values their answers, and the output is the mean over tokens of A x^v, a distribution over
answers. `Full` is a pre-norm transformer whose class token gives the answer.

Shapes: B samples, N tokens, T tokens and the class token, Q queries, H heads, D head dimension,
W width.
Leading dimensions may be mapped over by `torch.func.vmap`.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Generator, Tensor, nn

from steps.quest import rows
from steps.quest.toy_config import Problem, Toy


class Output(NamedTuple):
    """The answers' log-probabilities, and what the attention did.

    `max_logit` is the largest |logit| of all samples, layers and heads. `key_norm_BN`: the length
    of each token's key in the last layer, mean over heads. `attention_BN`: the attention that each
    token gets; in one layer the mean over queries, in the network the most that any layer and head
    pays it from the class token.
    """

    log_probabilities_BC: Tensor
    max_logit: Tensor
    key_norm_BN: Tensor
    attention_BN: Tensor


def _matrix(rows_out: int, columns_in: int, generator: Generator) -> nn.Parameter:
    """Return a weight N(0, 1 / inputs), which keeps unit variance."""
    return nn.Parameter(torch.randn(rows_out, columns_in, generator=generator) / columns_in**0.5)


class Scales(nn.ParameterDict):
    """A row's own learned scales."""

    def __init__(self, row: str, *, heads: int, dim: int) -> None:
        super().__init__(rows.initial_scales(row, heads=heads, dim=dim))


class Minimal(nn.Module):
    """One attention layer of one head: mean over i of `softmax(logits(x_i, W x_j)) x_j^v`."""

    def __init__(self, row: str, problem: Problem, generator: Generator) -> None:
        super().__init__()
        self.row, self.num_answers = row, problem.num_answers
        self.key = _matrix(problem.dim, problem.dim, generator)
        self.scales = Scales(row, heads=1, dim=problem.dim)

    def forward(self, keys_BND: Tensor, answers_BN: Tensor) -> Output:
        """Return the answers' log-probabilities, and what the attention did."""
        q_BHND = keys_BND[:, None]
        k_BHND = q_BHND @ self.key.mT
        logits = rows.logits(self.row, q_BHND, k_BHND, self.scales)
        weights_BN = logits.softmax(-1).mean(dim=(1, 2))
        answers_BNC = F.one_hot(answers_BN, self.num_answers).to(weights_BN.dtype)
        share_BC = (weights_BN[:, None] @ answers_BNC).squeeze(1)
        tiny = torch.finfo(share_BC.dtype).tiny  # an answer that no token holds
        return Output(
            share_BC.clamp_min(tiny).log(),
            logits.detach().abs().amax(),
            k_BHND.detach().norm(dim=-1).mean(1),
            weights_BN.detach(),
        )


class Full(nn.Module):
    """Embedding and class token, pre-norm blocks of attention and an MLP, a linear head."""

    def __init__(self, row: str, problem: Problem, config: Toy, generator: Generator) -> None:
        super().__init__()
        self.num_answers = problem.num_answers
        inputs = problem.dim + problem.num_answers
        self.embedding = _matrix(config.width, inputs, generator)
        self.class_token = nn.Parameter(torch.randn(config.width, generator=generator))
        self.blocks = nn.ModuleList(
            TransformerBlock(row, config, generator) for _ in range(config.layers)
        )
        self.norm = nn.LayerNorm(config.width)
        self.head = _matrix(problem.num_answers, config.width, generator)

    def forward(self, keys_BND: Tensor, answers_BN: Tensor) -> Output:
        """Return the answers' log-probabilities, and what the attention did."""
        one_hot = F.one_hot(answers_BN, self.num_answers).to(keys_BND.dtype)
        x_BNW = torch.cat([keys_BND, one_hot], dim=-1) @ self.embedding.mT
        start = self.class_token.expand(len(x_BNW), 1, -1)
        x_BTW, v = torch.cat([start, x_BNW], dim=1), None
        largest, attention = [], []
        for block in self.blocks:
            # the last block is read at the class token, so no other query is made there
            num_queries = 1 if block is self.blocks[-1] else x_BTW.shape[1]
            x_BTW, v, logits_BHQT, key_norm_BT = block(x_BTW, v, num_queries)
            largest.append(logits_BHQT.abs().amax())
            attention.append(logits_BHQT[:, :, 0].softmax(-1).amax(1))
        scores_BC = self.norm(x_BTW[:, 0]) @ self.head.mT
        attention_BN = torch.stack(attention).amax(0)[:, 1:]
        return Output(
            scores_BC.log_softmax(-1), torch.stack(largest).amax(), key_norm_BT[:, 1:], attention_BN
        )


class TransformerBlock(nn.Module):
    """`x + attention(norm(x))`, then `x + mlp(norm(x))` with a hidden layer of twice the width."""

    def __init__(self, row: str, config: Toy, generator: Generator) -> None:
        super().__init__()
        self.row, self.heads = row, config.heads
        width = config.width
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query = _matrix(width, width, generator)
        self.key_value = _matrix(2 * width, width, generator)
        self.out = _matrix(width, width, generator)
        self.up = _matrix(2 * width, width, generator)
        self.down = _matrix(width, 2 * width, generator)
        self.scales = Scales(row, heads=config.heads, dim=width // config.heads)

    def forward(
        self, x_BTW: Tensor, v_before: Tensor | None, num_queries: int
    ) -> tuple[Tensor, ...]:
        """Return the first `num_queries` (Q) tokens' x, and what the attention did.

        That is the values (B, H, T, D), the logits (B, H, Q, T) and the key norms (B, T).
        """
        normed_BTW, x_BQW = self.norm1(x_BTW), x_BTW[:, :num_queries]
        q = (normed_BTW[:, :num_queries] @ self.query.mT).unflatten(-1, (self.heads, -1))
        parts = (normed_BTW @ self.key_value.mT).unflatten(-1, (2, self.heads, -1))
        q, k, v = (part.transpose(1, 2) for part in (q, *parts.unbind(-3)))
        m = None
        if v_before is not None and self.row in rows.WITH_METRIC:
            m = rows.variability(v, v_before, causal=False)
        logits_BHQT = rows.logits(self.row, q, k, self.scales, m)
        mixed_BQW = (logits_BHQT.softmax(-1) @ v).transpose(1, 2).flatten(-2)
        x_BQW = x_BQW + mixed_BQW @ self.out.mT
        x_BQW = x_BQW + F.gelu(self.norm2(x_BQW) @ self.up.mT) @ self.down.mT
        key_norm_BT = k.detach().norm(dim=-1).mean(1)
        return x_BQW, v, logits_BHQT.detach(), key_norm_BT


def build(form: str, row: str, problem: Problem, config: Toy, generator: Generator) -> nn.Module:
    """Return a network of `form`; the same generator state gives every row the same weights."""
    if form == "minimal":
        return Minimal(row, problem, generator)
    return Full(row, problem, config, generator)
