"""Prepare one data set: its images, or features of frozen towers, and a manifest."""

from importlib import import_module
from pathlib import Path

from steps.n2l.config import Prepare, part
from steps.n2l.data_config import MODULES
from steps.shared import tensor_files
from steps.shared.config import read_config, step_parser
from steps.shared.runtime import InputError, deterministic, run_step, sha256_file, write_json


def main(argv: list[str] | None = None) -> None:
    """Write <dataset>.json and <dataset>.safetensors."""
    parser = step_parser(__doc__)
    parser.add_argument("--dataset", required=True, help="digits, emoji, or one of the paper's")
    parser.add_argument("--assets", type=Path, nargs="*", default=[], help="its packaged files")
    parser.add_argument("--out", type=Path, required=True, help="folder for the outputs")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args(argv)
    if args.dataset not in Prepare.model_fields:
        known = ", ".join(Prepare.model_fields)
        raise InputError(f"--dataset {args.dataset}: must be one of {known}")
    alone = args.config.lstrip().startswith("{")
    read = read_config(args, part(args.dataset) if alone else Prepare)
    config = getattr(read, args.dataset)
    if config is None:
        raise InputError(f"--dataset {args.dataset}: the configuration has no such data set")
    from torch import as_tensor

    deterministic(args.threads)
    manifest, arrays = import_module(f"steps.n2l.{MODULES[config.kind]}").prepare(
        config, args.assets
    )
    path = args.out / f"{args.dataset}.safetensors"
    tensor_files.write(path, {key: as_tensor(value) for key, value in arrays.items()})
    sizes = {key: list(value.shape) for key, value in arrays.items()}
    write_json(
        args.out / f"{args.dataset}.json", manifest | {"shapes": sizes, "sha256": sha256_file(path)}
    )


if __name__ == "__main__":
    run_step(main)
