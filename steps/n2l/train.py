"""Make the CLIP of one data set (a row) for one seed, and embed its images and class names."""

from pathlib import Path

from steps.n2l.config import Train
from steps.shared.flags import read_config, step_parser
from steps.shared.histories import write_history
from steps.shared.job_state import job_key, training_state
from steps.shared.runtime import deterministic, is_main_process, run_step, write_csv
from steps.shared.tracking import live_log, log_run, training_run

HISTORY = ("step", "train_loss", "learning_rate", "grad_norm")


def main(argv: list[str] | None = None) -> None:
    """Write learn.safetensors, test.safetensors and history.csv into --out."""
    parser = step_parser(__doc__, "state", "threads", "device")
    parser.add_argument("--data", type=Path, required=True, help="manifest of the data set")
    parser.add_argument("--out", type=Path, required=True, help="folder for the outputs")
    args = parser.parse_args(argv)
    config = read_config(args, Train)
    from steps.n2l import clip_training

    deterministic(args.threads)
    note, data = clip_training.read_data(args.data)
    if note["kind"] == "hub":
        clip_training.write(args, note, data, None)
        write_csv(args.out / "history.csv", HISTORY, [])  # a given CLIP has none
        return
    key = job_key(
        "steps.n2l.train", args, paper="n2l", row=args.row, config=config, inputs=[args.data]
    )
    run = training_run(args, paper="n2l", row=args.row, config=config)
    with training_state(args.state, key) as state:
        with live_log(run) as on_log:
            fit = clip_training.train(note, data, config, args, state, on_log)
        clip_training.write(args, note, data, fit)
        if is_main_process():
            history = args.out / "history.csv"
            log_run(**run, history=history, summary=write_history(history, fit.history))


if __name__ == "__main__":
    run_step(main)
