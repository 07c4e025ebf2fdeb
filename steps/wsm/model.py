"""The language model of WSM: a small pre-norm GPT, or a Llama built by transformers.

Shapes: B batch, T tokens, D width, H heads, V vocabulary.
"""

from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from steps.shared.checkpoints import load_model, save_model
from steps.shared.loss import cross_entropy
from steps.shared.pretrained import load_pretrained
from steps.shared.runtime import read_json, reading, torch_generator, write_json
from steps.wsm.config import Trunk


class Block(nn.Module):
    """Pre-norm attention and feed-forward layer without biases."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention, self.norm_mlp = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """Map [B, T, D] to [B, T, D], causally."""
        B, T, D = x_BTD.shape
        qkv = self.qkv(self.norm_attention(x_BTD)).view(B, T, 3, self.heads, D // self.heads)
        q_BHTK, k_BHTK, v_BHTK = qkv.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q_BHTK, k_BHTK, v_BHTK, is_causal=True)
        x_BTD = x_BTD + self.out(attended.transpose(1, 2).reshape(B, T, D))
        return x_BTD + self.down(F.gelu(self.up(self.norm_mlp(x_BTD)), approximate="tanh"))


class GPT(nn.Module):
    """Token and position embeddings, blocks, and an output tied to the embedding."""

    def __init__(self, vocabulary: int, context: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.shape = {
            "vocabulary": vocabulary,
            "context": context,
            "width": width,
            "layers": layers,
            "heads": heads,
        }
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.RMSNorm(width)

    def forward(self, ids_BT: Tensor, kept_N: Tensor | None = None) -> Tensor:
        """Return next-token logits [B, T, V] of token ids [B, T], T <= context.

        `kept_N`, positions in the flattened [B * T], asks for the logits [N, V] of these alone.
        """
        x_BTD = self.tokens(ids_BT) + self.positions.weight[: ids_BT.shape[1]]
        for block in self.blocks:
            x_BTD = block(x_BTD)
        if kept_N is not None:
            x_BTD = x_BTD.flatten(0, 1).index_select(0, kept_N)
        return F.linear(self.norm(x_BTD), self.tokens.weight)


def build(config: Trunk, vocabulary: int, seed: int) -> nn.Module:
    """Return a model initialised from the stream (wsm, init, seed): N(0, 0.02), GPT-2's rule."""
    if config.model == "llama":
        return _llama(config, vocabulary, seed)
    model = GPT(vocabulary, config.context, config.width, config.layers, config.heads)
    generator = torch_generator("wsm", "init", seed)
    for name, value in model.named_parameters():
        if value.ndim >= 2:
            residual = name.endswith(("out.weight", "down.weight"))
            scale = 0.02 / (2 * config.layers) ** 0.5 if residual else 0.02
            nn.init.normal_(value, std=scale, generator=generator)
    return model


def _llama(config: Trunk, vocabulary: int, seed: int) -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    generator = torch_generator("wsm", "init", seed)
    torch.manual_seed(int(torch.randint(2**31, (), generator=generator)))
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=vocabulary,
            hidden_size=config.width,
            intermediate_size=4 * config.width,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            max_position_embeddings=config.context,
            tie_word_embeddings=True,
        )
    )


def context_of(model: nn.Module) -> int:
    """Return the longest sequence, in tokens, that the model takes."""
    if isinstance(model, GPT):
        return model.shape["context"]
    return model.config.max_position_embeddings


def device_of(model: nn.Module) -> torch.device:
    """Return where the model's parameters are."""
    return next((value.device for value in model.parameters()), torch.device("cpu"))


def logits(model: nn.Module, ids_BT: Tensor) -> Tensor:
    """Return next-token logits [B, T, V] of either family."""
    out = model(ids_BT)
    return out if isinstance(out, Tensor) else out.logits


def target_logits(model: nn.Module, ids_BT: Tensor, targets_BT: Tensor) -> tuple[Tensor, Tensor]:
    """Return the logits [N, V] of the positions whose target is from 0 on, and these targets [N].

    The output layer is half of a small model's work; where few targets count, this saves it.
    """
    targets = targets_BT.flatten()
    kept_N = (targets >= 0).nonzero()[:, 0]
    if isinstance(getattr(model, "module", model), GPT):  # `module`: wrapped for several processes
        return model(ids_BT, kept_N).float(), targets[kept_N]
    return logits(model, ids_BT).flatten(0, 1)[kept_N].float(), targets[kept_N]


def next_token_loss(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """Return the mean next-token loss (nats) of ids [B, T] and their targets [B, T]."""
    ids_BT, targets_BT = batch
    return cross_entropy(logits(model, ids_BT).flatten(0, 1).float(), targets_BT.flatten())


def answer_loss(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """Return the mean loss (nats) of the targets from 0 on, where they are few."""
    return cross_entropy(*target_logits(model, *batch))


@torch.no_grad()
def token_statistics(model: nn.Module, batches: list[tuple[Tensor, Tensor]]) -> dict[str, float]:
    """Return the mean loss (nats per token), the share of tokens ranked first, and their number."""
    model.eval()
    nats, hits, count = 0.0, 0, 0
    device = device_of(model)
    for ids_BT, targets_BT in batches:
        found, targets = target_logits(model, ids_BT.to(device), targets_BT.to(device))
        nats += float(F.cross_entropy(found, targets, reduction="sum"))
        hits += int((found.argmax(-1) == targets).sum())
        count += len(targets)
    return {"nats": nats / count, "accuracy": hits / count, "tokens": count}


def save(folder: Path, model: nn.Module) -> None:
    """Write a checkpoint folder (config.json and model.safetensors)."""
    if isinstance(model, GPT):
        write_json(folder / "config.json", {"model_type": "retable_gpt", **model.shape})
        save_model(folder, model.state_dict())
    else:
        model.save_pretrained(folder)


def load(folder: Path) -> nn.Module:
    """Read a checkpoint folder of either family; the model is in evaluation mode."""
    shape = read_json(folder / "config.json", "model_type")
    what = "a checkpoint of a language model"
    if shape.pop("model_type") == "retable_gpt":
        with reading(folder, what):
            model: nn.Module = GPT(**shape)
            model.load_state_dict(load_model(folder))
    else:
        from transformers import AutoModelForCausalLM

        model = load_pretrained(AutoModelForCausalLM, folder, what)
    return model.eval()
