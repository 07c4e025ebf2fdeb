"""A causal language model with the attention of any row.

Pre-norm blocks, learned positions, an output of its own matrix. Shapes: B sequences, T tokens,
C width, H heads, L layers, V vocabulary.
"""

from pathlib import Path

import torch
from torch import Tensor, nn

from steps.quest import blocks
from steps.quest.blocks import Block, initialise, run_blocks, run_explicit
from steps.quest.model_config import BlockShape
from steps.shared.runtime import InputError, torch_generator


class LanguageModel(nn.Module):
    """Token ids to next-token logits."""

    def __init__(self, row: str, shape: BlockShape, *, vocabulary: int, context: int) -> None:
        super().__init__()
        self.settings = {
            "row": row,
            "shape": shape.model_dump(),
            "vocabulary": vocabulary,
            "context": context,
        }
        self.tokens = nn.Embedding(vocabulary, shape.width)
        self.positions = nn.Parameter(torch.zeros(context, shape.width))
        options = {"heads": shape.heads, "mlp_ratio": shape.mlp_ratio, "row": row}
        self.blocks = nn.ModuleList(
            Block(shape.width, **options, causal=True, drop=0.0) for _ in range(shape.layers)
        )
        self.norm = nn.LayerNorm(shape.width)
        self.head = nn.Linear(shape.width, vocabulary, bias=False)

    def forward(self, ids_BT: Tensor, *, explicit: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        """Return next-token logits (B, T, V), T <= context.

        `explicit`: and the attention's logits (L, B, H, T, T), -inf where unseen.
        """
        if ids_BT.shape[1] > len(self.positions):
            raise InputError(
                f"{ids_BT.shape[1]} tokens: the model takes at most {len(self.positions)}"
            )
        x_BTC = self.tokens(ids_BT) + self.positions[: ids_BT.shape[1]]
        if explicit:
            x_BTC, logits_LBHTT = run_explicit(self.blocks, x_BTC)
            return self.head(self.norm(x_BTC)), logits_LBHTT
        return self.head(self.norm(run_blocks(self.blocks, x_BTC)))


def build(
    row: str, shape: BlockShape, *, seed: int, vocabulary: int, context: int
) -> LanguageModel:
    """Return a model initialised from the stream (quest, init, seed), the same for every row.

    Matrices as in `initialise`; embeddings of tokens and of positions are N(0, 0.5^2).
    """
    model = LanguageModel(row, shape, vocabulary=vocabulary, context=context)
    generator = torch_generator("quest", "init", seed)
    initialise(model, layers=shape.layers, generator=generator)
    for value in (model.tokens.weight, model.positions):
        nn.init.normal_(value, std=0.5, generator=generator)
    return model


def load(path: Path) -> LanguageModel:
    """Read a model that `blocks.save` wrote, in evaluation mode."""
    return blocks.load(path, _from_settings, "language model")


def _from_settings(row: str, shape: dict[str, int], **sizes: int) -> LanguageModel:
    return LanguageModel(row, BlockShape.model_validate(shape), **sizes)
