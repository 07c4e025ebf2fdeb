"""Prepare one data set: its images, or features of frozen towers, and a manifest."""

from importlib import import_module
from pathlib import Path

from steps.n2l.config import Prepare
from steps.n2l.data_config import MODULES
from steps.shared import tensor_files
from steps.shared.flags import read_part, step_parser
from steps.shared.runtime import InputError, deterministic, run_step, sha256_file, write_json


def main(argv: list[str] | None = None) -> None:
    """Write <dataset>.json and <dataset>.safetensors."""
    parser = step_parser(__doc__, "threads")
    parser.add_argument("--assets", type=Path, nargs="*", default=[], help="its packaged files")
    parser.add_argument("--out", type=Path, required=True, help="folder for the outputs")
    args = parser.parse_args(argv)
    if args.row not in Prepare.model_fields:
        known = ", ".join(Prepare.model_fields)
        raise InputError(f"--row {args.row}: must be one of {known}")
    config = read_part(args, Prepare, args.row)
    if config is None:
        raise InputError(f"--row {args.row}: the configuration has no such data set")
    from torch import as_tensor

    deterministic(args.threads)
    manifest, arrays = import_module(f"steps.n2l.{MODULES[config.kind]}").prepare(
        config, args.assets
    )
    path = args.out / f"{args.row}.safetensors"
    tensor_files.write(path, {key: as_tensor(value) for key, value in arrays.items()})
    sizes = {key: list(value.shape) for key, value in arrays.items()}
    write_json(
        args.out / f"{args.row}.json", manifest | {"shapes": sizes, "sha256": sha256_file(path)}
    )


if __name__ == "__main__":
    run_step(main)
