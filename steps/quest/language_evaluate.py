"""Measure trained language models on the test split: bits per byte, the largest logit."""

import argparse

from steps.quest import language_model
from steps.quest.language_config import LanguageMeasures
from steps.quest.language_measure import measure, token_file
from steps.shared import selection
from steps.shared.loss import bits_per_byte
from steps.shared.runs import run_of, write_runs
from steps.shared.runtime import deterministic, progress, read_json, reading, torch_device
from steps.shared.token_files import open_tokens, sequential_batches


def run(args: argparse.Namespace, config: LanguageMeasures) -> None:
    """Write the runs of one seed."""
    deterministic(args.threads)
    device = torch_device(args.device)
    note = read_json(args.data, "splits", "vocabulary")
    with reading(args.data, "a corpus as prepare describes it"):
        facts = note["splits"]["test"]
        bytes_per_token = facts["bytes"] / facts["tokens"]
    runs = []
    models = selection.read(args.selection)
    label = f"quest evaluate language seed {args.seed}"
    for row, chosen in progress(models.items(), total=len(models), label=label):
        model = language_model.load(chosen.folder / "model.safetensors")
        context = model.settings["context"]
        tokens = open_tokens(token_file(args.data, "test"), context, note["vocabulary"])
        windows = sequential_batches(tokens, batch=config.batch_size, context=context)
        found = measure(model.to(device), windows)
        bits = bits_per_byte(found["loss"], bytes_per_token=bytes_per_token)
        for metric, value in (("bits_per_byte", bits), ("max_logit", found["max_logit"])):
            run = run_of("language", "test", metric, value)
            runs.append({"dataset": "general", "row": row, **run})
    write_runs(args.out / f"language_seed{args.seed}.csv", runs, seed=args.seed)
