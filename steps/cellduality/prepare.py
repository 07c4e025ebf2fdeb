"""Prepare one seed: splits, sentences, questions of all tasks, and the teacher's drafts."""

from pathlib import Path

from steps.cellduality.config import Prepare
from steps.shared import tensor_files
from steps.shared.flags import read_config, step_parser
from steps.shared.runtime import run_step, sha256_file, write_json


def main(argv: list[str] | None = None) -> None:
    """Write manifest.json, vocabulary.json, questions.json and arrays.safetensors."""
    parser = step_parser(__doc__)
    parser.add_argument("--assets", type=Path, nargs="*", default=[], help="GDSC's two tables")
    parser.add_argument("--out", type=Path, required=True, help="folder for the outputs")
    args = parser.parse_args(argv)
    config = read_config(args, Prepare)
    from steps.cellduality import arrays, questions, sources

    data = sources.load(config, args.seed, args.assets)
    made = questions.make(data, config, args.seed)
    write_json(args.out / "vocabulary.json", data.vocabulary().as_json())
    write_json(args.out / "questions.json", made)
    tensor_files.write(args.out / "arrays.safetensors", arrays.of(data))
    files = ("vocabulary.json", "questions.json", "arrays.safetensors")
    note = {
        "questions": questions.counts(made),
        "lengths": data.lengths(),
        "sources": sources.described(config),
        "sha256": {name: sha256_file(args.out / name) for name in files},
    }
    write_json(args.out / "manifest.json", note)


if __name__ == "__main__":
    run_step(main)
