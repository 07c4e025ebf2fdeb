"""Measure the models of one task and seed on test data: runs, and what the figures need."""

from pathlib import Path

from steps.quest.config import Evaluate, ToyEvaluate, read_task
from steps.shared.config import step_parser
from steps.shared.runtime import deterministic, progress, read_json, run_step, write_csv

RUN = ["table", "dataset", "split", "row", "metric", "seed", "x", "value"]
MAP = ["dataset", "split", "row", "sample", "token", "is_answer", "attention"]


def main(argv: list[str] | None = None) -> None:
    """Write <task>_seed<seed>.csv (runs); of the toy also toy_attention_seed<seed>.csv."""
    parser = step_parser(__doc__)
    parser.add_argument("--task", choices=["toy"], required=True)
    parser.add_argument("--selection", type=Path, required=True, help="selection.json of merge")
    parser.add_argument("--data", type=Path, required=True, help="toy.safetensors of prepare")
    parser.add_argument("--out", type=Path, required=True, help="folder for the outputs")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args(argv)
    config = read_task(args, Evaluate, ToyEvaluate).toy
    from steps.quest import toy_evaluate

    deterministic(args.threads)
    runs, maps = [], []
    selection = read_json(args.selection)
    for row, entry in progress(selection.items(), total=len(selection), label="quest toy"):
        folder = args.selection.parent / entry["folder"]
        for found, lines in toy_evaluate.measure_row(row, folder, args.data, config):
            runs += [{**run, "seed": args.seed} for run in found]
            maps += lines
    write_csv(args.out / f"toy_seed{args.seed}.csv", RUN, runs)
    write_csv(args.out / f"toy_attention_seed{args.seed}.csv", MAP, maps)


if __name__ == "__main__":
    run_step(main)
