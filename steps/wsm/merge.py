"""Average checkpoints along a decay curve (WSM, arXiv 2507.17634, Theorem 3.1).

As a tool, on Hugging Face checkpoints (folders, oldest first), several curves in one pass:

    python -m steps.wsm.merge --checkpoints step1000 step2000 step3000 --curve cosine --out merged
    python -m steps.wsm.merge --checkpoints $(ls -dv step*/) --curve linear ema:0.2 --out merged

With several curves, each goes to a folder of its name under --out. As a phase of the workflow
(--config, --trained, --rows) it makes every merged model of one seed.
"""

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np

from steps.shared import selection
from steps.shared.checkpoint_files import WEIGHTS
from steps.shared.checkpoints import load_model, merge_checkpoints
from steps.shared.flags import read_config, whole_number
from steps.shared.runtime import InputError, run_step, stream
from steps.wsm.config import Merge
from steps.wsm.curves import merge_weights, parse_curve, reverse, scramble, weights_to_decay
from steps.wsm.plan import Merged, checkpoint_name, merged_models


def main(argv: list[str] | None = None) -> None:
    """Run the tool or the phase; see the module's docstring."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    tool = parser.add_argument_group("as a tool")
    tool.add_argument("--checkpoints", type=Path, nargs="+", help="folders, oldest first")
    tool.add_argument("--curve", nargs="+", default=["linear"], help="names, or name:parameter")
    tool.add_argument("--grid", choices=["i/n", "i/k", "(i-1)/k"], default="i/n")
    tool.add_argument("--accumulate", choices=["float32", "float64"], default="float32")
    phase = parser.add_argument_group("as a phase")
    phase.add_argument("--config", help="JSON text, or params.yaml:papers.wsm.merge")
    phase.add_argument("--scale", default="mini")
    phase.add_argument("--seed", type=whole_number, default=0)
    phase.add_argument("--trained", type=Path, help="folder of the train phase")
    phase.add_argument("--rows", nargs="+", help="the trained rows")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args(argv)
    if args.checkpoints and not args.config:
        _tool(args)
    elif args.config and args.trained and args.rows and not args.checkpoints:
        _phase(args)
    else:
        raise InputError("give --checkpoints (a tool), or --config, --trained and --rows (a phase)")


def _tool(args: argparse.Namespace) -> None:
    curves = [parse_curve(text) for text in args.curve]
    weights = [merge_weights(curve, len(args.checkpoints), grid=args.grid) for curve in curves]
    outs = [args.out] if len(curves) == 1 else [args.out / text for text in args.curve]
    merge_checkpoints(
        args.checkpoints, weights, outs, accumulate=args.accumulate, threads=args.threads
    )


def _phase(args: argparse.Namespace) -> None:
    config = read_config(args, Merge)
    trained = {row: args.trained / row / f"seed{args.seed}" for row in args.rows}
    if "constant" not in trained:
        raise InputError("--rows: must name constant, the run whose checkpoints are merged")
    last = {row: _last(folder) for row, folder in trained.items()}
    end = int(last["constant"].name.removeprefix("step"))
    together: dict[tuple, list[Merged]] = defaultdict(list)
    for model in merged_models(config.model_dump(), end):
        together[model.source, model.updates].append(model)
    for (source, updates), models in together.items():
        merge_checkpoints(
            [trained[source] / checkpoint_name(update) for update in updates],
            [_weights(model, config, args.seed) for model in models],
            [args.out / model.name for model in models],
            accumulate="float64",
            threads=args.threads,
        )
    merged = {m.name: args.out / m.name for group in together.values() for m in group}
    errors = {}
    for (source, updates), models in together.items():
        folders = [trained[source] / checkpoint_name(update) for update in updates]
        for model in models:
            error = identity_error(
                folders, args.out / model.name, _weights(model, config, args.seed)
            )
            errors[model.name] = {"identity_error": error}
    models = {row: [folder / WEIGHTS] for row, folder in {**last, **merged}.items()}
    selection.write(args.out, models, errors)


def _last(folder: Path) -> Path:
    found = sorted(folder.glob("step*"))
    if not found:
        raise InputError(f"{folder}: holds no checkpoint (step*); train this row first")
    return found[-1]


def identity_error(checkpoints: list[Path], merged: Path, weights: np.ndarray) -> float:
    """Return the largest difference between `merged` and the decayed sum of updates.

    Theorem 3.1: sum_j c_j theta_j = theta_0 - sum_i w_i (theta_{i-1} - theta_i), where w holds the
    suffix sums of c.
    """
    decay = weights_to_decay(weights)
    models = [load_model(folder) for folder in checkpoints]
    worst = 0.0
    for name, value in load_model(merged).items():
        theta = [model[name].double() for model in models]
        steps = zip(decay, theta, theta[1:], strict=False)
        expected = theta[0] - sum(w * (before - after) for w, before, after in steps)
        worst = max(worst, float((value.double() - expected).abs().max()))
    return worst


def _weights(model: Merged, config: Merge, seed: int) -> np.ndarray:
    weights = merge_weights(parse_curve(model.curve), len(model.updates), grid=config.grid)
    if model.control == "reversed":
        return reverse(weights)
    if model.control == "scrambled":
        return scramble(weights, stream("wsm", "scramble", seed))
    return weights


if __name__ == "__main__":
    run_step(main)
