"""The race of WSM: merging checkpoints, against mergekit's linear method and plain torch.

    python benchmarks/wsm.py
    python benchmarks/wsm.py --megabytes 4 --checkpoints 3 --repeats 2 --out small.csv

Sides take turns, each in a process of its own; medians, with the smallest and largest ratio of one
round. Results are compared before anything is timed. mergekit gets an environment of its own
(benchmarks/mergekit.txt), made on first use. Writes benchmarks/results/wsm.csv.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.sides.peers import environment, pinned  # noqa: E402
from benchmarks.sides.race import alternate, outcome, write_table  # noqa: E402

CURVES = ("linear", "cosine", "1-sqrt", "1-t^2", "ema:0.2")
TOLERANCE = {"float32": 1e-6, "bfloat16": 2.0**-10}  # of values below .25: 1 ulp in bfloat16


def main() -> None:
    """Run every race and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--megabytes", type=int, default=200, help="of one checkpoint")
    parser.add_argument("--checkpoints", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/wsm.csv")
    args = parser.parse_args()
    peer = environment("mergekit")
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for dtype in TOLERANCE:
            files = write_checkpoints(Path(folder) / dtype, args.checkpoints, args.megabytes, dtype)
            size = f"{args.checkpoints} x {args.megabytes} MB {dtype}"
            rows += in_process(files, peer, size, dtype, args)
            if dtype == "float32":
                rows += commands(files, peer, size, args)
    write_table(args.out, rows)


def write_checkpoints(folder: Path, n: int, megabytes: int, dtype: str) -> list[str]:
    """Write n checkpoints of a Llama-shaped model with small random weights."""
    import torch

    from steps.shared.checkpoints import save_model

    width = 512 if megabytes >= 50 else 64
    shapes = {"model.embed_tokens.weight": (32 * width, width), "model.norm.weight": (width,)}
    layer = {
        "q_proj": (width, width), "k_proj": (width, width), "v_proj": (width, width),
        "o_proj": (width, width), "gate_proj": (4 * width, width), "up_proj": (4 * width, width),
        "down_proj": (width, 4 * width), "input_layernorm": (width,),
    }  # fmt: skip
    torch_dtype = getattr(torch, dtype)
    elements = megabytes * 1_000_000 // torch_dtype.itemsize
    for number in range(max(1, round((elements - 32 * width**2) / (16 * width**2)))):
        shapes |= {f"model.layers.{number}.{name}.weight": shape for name, shape in layer.items()}
    generator = torch.Generator().manual_seed(0)
    files = []
    for step in range(n):
        state = {
            name: (0.02 * torch.randn(shape, generator=generator)).to(torch_dtype)
            for name, shape in shapes.items()
        }
        files.append(str(folder / f"step{step:02d}.safetensors"))
        save_model(files[-1], state)
    return files


class Side:
    """A process of `sides/wsm.py` that merges on request."""

    def __init__(self, name: str, python: Path | str, spec: Path) -> None:
        command = [python, ROOT / "benchmarks" / "sides" / "wsm.py", name, spec]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, env=os.environ | {"PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"},
        )  # fmt: skip

    def ask(
        self, do: str, threads: int, *, curves: int = 1, keep: bool = True, out: str = ""
    ) -> float:
        """Send a request and return its answer."""
        request = {"do": do, "threads": threads, "curves": curves, "keep": keep, "out": out}
        print(json.dumps(request), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self._process.stdin.close()
        self._process.wait()


def in_process(
    files: list[str], peer: Path, size: str, dtype: str, args: argparse.Namespace
) -> list[dict[str, Any]]:
    """Race merges from the page cache into memory, without saving."""
    from steps.wsm.curves import merge_weights

    weights = [merge_weights(curve, len(files), grid="i/n").tolist() for curve in CURVES]
    folder = Path(files[0]).parent
    spec = folder / "spec.json"
    spec.write_text(json.dumps({"files": files, "weights": weights}))
    pythons = {name: sys.executable for name in ("ours", "ours again", "torch", "bound")}
    sides = {n: Side(n, p, spec) for n, p in (pythons | {"mergekit": peer / "python"}).items()}
    us, rows = sides["ours"], []
    errors = {"bound": None} | compare(sides, folder, dtype)
    for threads in args.threads:
        label = f"{size}, {threads} thread(s)"
        for ours, race in (("ours", "merge"), ("ours again", "merge, memory used again")):
            for name in ("mergekit", "torch", "bound"):
                turns = (partial(sides[side].ask, "time", threads) for side in (ours, name))
                pairs = alternate(args.repeats, *turns)
                rows.append(row(race, label, name, "s", pairs, errors[name]))
        for name, race in (("ours", "5 curves, peer one by one"), ("mergekit", "5 curves")):
            five = partial(sides["ours again"].ask, "time", threads, curves=5, keep=False)
            single = partial(one_by_one, sides, name, threads)
            rows.append(row(race, label, name, "s", alternate(args.repeats, five, single), None))
    for name in ("mergekit", "torch"):
        pair = [(us.ask("memory", 1), sides[name].ask("memory", 1))]
        rows.append(row("merge, growth of anonymous memory", size, name, "MiB", pair, None))
    for side in sides.values():
        side.close()
    return rows


def one_by_one(sides: dict[str, Side], name: str, threads: int) -> float:
    """Return the seconds of five curves, each merged on its own."""
    if name == "mergekit":
        return sides[name].ask("time", threads, curves=5, keep=False)
    return sum(sides["ours again"].ask("time", threads, keep=False) for _ in CURVES)


def compare(sides: dict[str, Side], folder: Path, dtype: str) -> dict[str, float]:
    """Merge once on every side and return the largest difference of ours from each."""
    from safetensors.torch import load_file

    merged = {}
    for name in ("ours", "torch", "mergekit"):
        sides[name].ask("save", 1, out=str(folder / f"{name}.out"))
        merged[name] = load_file(folder / f"{name}.out")
    errors = {
        name: max(
            float((merged["ours"][k].double() - value.double()).abs().max())
            for k, value in merged[name].items()
        )
        for name in ("torch", "mergekit")
    }
    # Plain torch adds bfloat16 in bfloat16: its error there is its own.
    if errors["mergekit"] > TOLERANCE[dtype] or (dtype == "float32" and errors["torch"] > 1e-6):
        raise SystemExit(f"results differ: {errors}")
    sides["bound"].ask("time", 1)
    return errors


def commands(
    files: list[str], peer: Path, size: str, args: argparse.Namespace
) -> list[dict[str, Any]]:
    """Race the commands a user would type, from start to saved model, and their start alone."""
    folder = Path(files[0]).parent
    models = [{"model": file, "parameters": {"weight": 1.0}} for file in files]
    config = folder / "linear.yaml"
    config.write_text(json.dumps({"merge_method": "linear", "models": models}))
    merge = [sys.executable, "-m", "steps.wsm.merge", "--checkpoints", *files, "--curve", "linear"]
    our_command = [*merge, "--out", folder / "ours"]
    their_command = [peer / "mergekit-pytorch", config, folder / "theirs"]
    our_start = [sys.executable, "-c", "import steps.wsm.merge"]
    their_start = [peer / "python", "-c", "import mergekit.scripts.merge_raw_pytorch"]
    races = {
        "command": (our_command, their_command),
        "command, imports only": (our_start, their_start),
    }
    rows = []
    for race, (one, two) in races.items():
        results: dict[str, list[tuple[float, float]]] = {"s": [], "MiB": []}
        timed(one), timed(two)  # so that both find their libraries in the page cache
        for _ in range(args.repeats):
            (seconds, mib), (their_seconds, their_mib) = timed(one), timed(two)
            results["s"].append((seconds, their_seconds))
            results["MiB"].append((mib, their_mib))
        rows.append(row(race, size, "mergekit", "s", results["s"], None))
        rows.append(
            row(f"{race}, peak anonymous memory", size, "mergekit", "MiB", results["MiB"], None)
        )
    return rows


def timed(command: Iterable[Any]) -> tuple[float, float]:
    """Run a command; return its wall seconds and peak anonymous memory in MiB."""
    start, peak = time.perf_counter(), 0
    environment = os.environ | {"PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    process = subprocess.Popen(
        [str(part) for part in command], env=environment, cwd=ROOT,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    status = Path(f"/proc/{process.pid}/status")
    while process.poll() is None:
        for line in status.read_text(encoding="ascii").splitlines():
            if line.startswith("RssAnon"):
                peak = max(peak, int(line.split()[1]))
        time.sleep(0.002)
    if process.returncode:
        raise SystemExit(f"failed: {' '.join(map(str, command))}")
    return time.perf_counter() - start, peak / 1024


def row(
    race: str,
    size: str,
    peer: str,
    unit: str,
    pairs: list[tuple[float, float]],
    error: float | None,
) -> dict[str, Any]:
    """Return one line of the table."""
    import importlib.metadata

    versions = {"mergekit": pinned("mergekit", "mergekit"), "ours": "", "bound": ""}
    version = versions.get(peer) or importlib.metadata.version("torch")
    named = {"bound": "one streaming sum", "ours": "this merger", "torch": "torch dict average"}
    return outcome(race, size, named.get(peer, peer), version, pairs, unit=unit, error=error)


if __name__ == "__main__":
    main()
