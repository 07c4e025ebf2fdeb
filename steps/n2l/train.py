"""Make the CLIP of one data set (a row) for one seed, and embed its images and class names."""

from contextlib import nullcontext
from pathlib import Path

from steps.n2l.config import Train
from steps.shared.config import read_config, step_parser
from steps.shared.job_state import job_key, training_state
from steps.shared.runtime import deterministic, is_main_process, run_step
from steps.shared.tracking import log_run, open_run, training_run


def main(argv: list[str] | None = None) -> None:
    """Write learn.safetensors, test.safetensors and history.csv into --out."""
    parser = step_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True, help="manifest of the data set")
    parser.add_argument("--out", type=Path, required=True, help="folder for the outputs")
    parser.add_argument("--state", type=Path, default=Path("state"), help="checkpoint folder")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", choices=["cpu", "auto"], default="cpu")
    args = parser.parse_args(argv)
    config = read_config(args, Train)
    from steps.n2l import clip_training

    deterministic(args.threads)
    note, data = clip_training.read_data(args.data)
    if note["kind"] == "hub":
        clip_training.write(args, note, data, None)
        return
    key = job_key(
        "steps.n2l.train", args, paper="n2l", row=args.row, config=config, inputs=[args.data]
    )
    run = training_run(args, paper="n2l", row=args.row, config=config)
    with training_state(args.state, key) as state:
        with open_run(**run) if is_main_process() else nullcontext() as live:
            fit = clip_training.train(note, data, config, args, state, live)
        clip_training.write(args, note, data, fit)
        if is_main_process():
            last = {name: value for name, value in fit.history[-1].items() if name != "step"}
            log_run(**run, history=args.out / "history.csv", summary=last)


if __name__ == "__main__":
    run_step(main)
