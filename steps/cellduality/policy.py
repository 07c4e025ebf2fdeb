"""Models and tokenizers: made from scratch or pretrained, as folders that transformers reads."""

import shutil
from pathlib import Path
from typing import Any

import torch

from steps.cellduality.config import Lora, NewModel, Pretrained
from steps.cellduality.plan import ADAPTER_FILES
from steps.cellduality.prompts import STRUCTURE
from steps.cellduality.vocabulary import Vocabulary, word_tokenizer
from steps.shared import tensor_files
from steps.shared.errors import one_line
from steps.shared.pretrained import load_pretrained
from steps.shared.runtime import InputError, reading, stream


def make_base(config: NewModel | Pretrained, vocabulary: Vocabulary, seed: int, out: Path) -> None:
    """Write the base model and its tokenizer to a folder."""
    if isinstance(config, Pretrained):
        save(*pretrained(config), out)
    else:
        tokenizer = word_tokenizer(list(dict.fromkeys([*STRUCTURE, *vocabulary.words()])))
        save(new_llama(config, tokenizer, seed), tokenizer, out)


def new_llama(config: NewModel, tokenizer: Any, seed: int) -> Any:
    """Return a small untrained Llama; weights are drawn from (cellduality, init, seed)."""
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(int(stream("cellduality", "init", seed).integers(2**63)))
    sizes = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=config.width,
        intermediate_size=4 * config.width,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=config.heads,
        max_position_embeddings=config.context,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=tokenizer.eos_token_id,
        # the default of 0.02 is for widths in the thousands: here attention would not form
        initializer_range=config.width**-0.5,
    )
    return LlamaForCausalLM(sizes)


def pretrained(config: Pretrained) -> tuple[Any, Any]:
    """Return a pretrained model and its tokenizer, padding on the left."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    file = {"gguf_file": config.gguf} if config.gguf else {}
    try:
        tokenizer = AutoTokenizer.from_pretrained(config.name, padding_side="left", **file)
        dtype = getattr(torch, config.dtype)
        model = AutoModelForCausalLM.from_pretrained(config.name, dtype=dtype, **file)
    except (OSError, ValueError, ImportError) as error:  # the last: gguf is not in the lock
        reason = one_line(error)
        rule = f"cannot be loaded ({reason})"
        raise InputError(f"pretrained.name = {config.name!r}: {rule}") from None
    if config.gguf:  # dequantised: the configuration must not say otherwise, or it cannot be saved
        del model.config.quantization_config
        whole = type(model)(model.config)
        whole.load_state_dict(model.state_dict())
        whole.tie_weights()
        model = whole.to(dtype)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    tokenizer.chat_template = None  # prompts are plain text
    return model, tokenizer


def save(model: Any, tokenizer: Any, out: Path) -> None:
    """Write a model and its tokenizer to a folder, in one file of weights."""
    model.save_pretrained(out, max_shard_size="1TB")
    tokenizer.save_pretrained(out)


def as_kept(model: Any, config: Pretrained) -> Any:
    """Return a model that was trained in float32 in the type that it is kept in."""
    return model.to(getattr(torch, config.dtype))


def load(folder: Path, device: str = "cpu", dtype: str = "auto") -> tuple[Any, Any]:
    """Read a model and its tokenizer from a folder, ready to answer; `auto` is as it is stored."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    what = "a model as training writes it"
    with reading(folder, what):
        tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    model = load_pretrained(AutoModelForCausalLM, folder, what, dtype=dtype)
    return model.to(device).eval(), tokenizer


def to_train(folder: Path) -> tuple[Any, Any]:
    """Read a model with float32 weights: AdamW's small steps would be lost in bfloat16 ones."""
    return load(folder, dtype="float32")


def lora(config: Lora | None) -> Any:
    """Return PEFT's configuration of adapters on all linear layers; None for full fine-tuning."""
    if config is None:
        return None
    from peft import LoraConfig

    return LoraConfig(
        r=config.rank,
        lora_alpha=config.alpha,
        lora_dropout=0.0,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )


def merged(base: Path, adapter: Path) -> tuple[Any, Any]:
    """Return the model of `base` with the adapter's products added to its weights.

    PEFT leaves what a file lacks as it was made, untrained: such a file is an `InputError`.
    """
    from peft import PeftModel, get_peft_model_state_dict

    model, tokenizer = load(base)
    what = "an adapter as training writes it"
    found = tensor_files.read(adapter / ADAPTER_FILES[1], what, framework="torch")
    with reading(adapter, what):
        adapted = PeftModel.from_pretrained(model, str(adapter))
        own = get_peft_model_state_dict(adapted, save_embedding_layers=False)
        if other := sorted(own.keys() ^ found.keys()):
            raise ValueError(f"{len(other)} tensors differ from the model's, such as {other[0]}")
        return adapted.merge_and_unload(), tokenizer


def copy_files(source: Path, target: Path, names: tuple[str, ...]) -> None:
    """Copy the named files of a folder to another."""
    target.mkdir(parents=True, exist_ok=True)
    for name in names:
        shutil.copyfile(source / name, target / name)
