"""One side of the merging race, in its own process: reads one JSON request a line, answers alike.

Requests: {"do": "time" | "memory" | "save", "threads": t, "curves": K, "keep": true, "out": path}.
`time` answers seconds of one merge from files in the page cache to tensors in memory (opening the
files counts, imports and a first merge do not); `memory` the growth of anonymous memory in MiB
meanwhile. `keep` holds the merged model whole, as one must to use it; else tensors are dropped as
they come. Every merge opens its files anew. "ours again" gives every merge the memory of those
before, as a program does that merges many times.
"""

import ctypes
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

AGAIN: list[Any] = []  # the memory of "ours again"
Merge = Callable[[list[str], list[list[float]], int], Iterator[tuple[str, list[Any]]]]


def ours(files: list[str], weights: list[list[float]], threads: int) -> Iterator:
    """Retable's streaming merge."""
    from steps.shared.checkpoints import merged_tensors

    yield from merged_tensors(files, weights, accumulate="float32", threads=threads)


def ours_again(files: list[str], weights: list[list[float]], threads: int) -> Iterator:
    """Retable's streaming merge, into memory that an earlier one has used."""
    from steps.shared.checkpoint_memory import TensorMemory
    from steps.shared.checkpoints import merged_tensors

    if not AGAIN:
        AGAIN.append(TensorMemory())
    options = {"accumulate": "float32", "threads": threads, "memory": AGAIN[0]}
    yield from merged_tensors(files, weights, **options)


def torch_dict(files: list[str], weights: list[list[float]], threads: int) -> Iterator:
    """The usual few lines: load every state dict, add them up."""
    from safetensors.torch import load_file

    states = [load_file(file) for file in files]
    for name, tensor in states[0].items():
        yield (
            name,
            [
                sum(c * state[name] for c, state in zip(row, states, strict=True)).to(tensor.dtype)
                for row in weights
            ],
        )


def streaming_sum(files: list[str], weights: list[list[float]], threads: int) -> Iterator:
    """The bound: every mapped byte read once, by torch's sum."""
    from steps.shared.checkpoint_files import open_checkpoint, to_tensor

    for checkpoint in [open_checkpoint(file) for file in files]:
        for name, values in checkpoint.data.items():
            yield name, [to_tensor(values, checkpoint.specs[name]).view(-1).sum()]


def mergekit(files: list[str], weights: list[list[float]], threads: int) -> Iterator:
    """The linear method of mergekit through its own planner and executor, short of saving."""
    from mergekit.graph import Executor
    from mergekit.options import MergeOptions
    from mergekit.scripts import merge_raw_pytorch as raw

    for row in weights:
        models = [
            {"model": file, "parameters": {"weight": c}} for file, c in zip(files, row, strict=True)
        ]
        config = raw.RawPyTorchMergeConfig(
            merge_method="linear", models=models, parameters={"normalize": False}
        )
        raw.SimpleLoaderCache().loaders.clear()
        tasks = raw.plan_flat_merge(config, "unused", False, False, MergeOptions())
        names = {task.tensor_task: task.tensor_name for task in tasks[:-1]}
        executor = Executor(list(names), math_device="cpu", storage_device="cpu")
        for task, tensor in executor.run(quiet=True):
            yield names[task], [tensor]


SIDES: dict[str, Merge] = {
    "ours": ours, "ours again": ours_again, "torch": torch_dict, "bound": streaming_sum,
    "mergekit": mergekit,
}  # fmt: skip


def anonymous_mib() -> float:
    """Return this process's anonymous resident memory in MiB."""
    with open("/proc/self/status", encoding="ascii") as file:
        line = next(line for line in file if line.startswith("RssAnon"))
    return int(line.split()[1]) / 1024


def growth(run: Callable[[], Any]) -> float:
    """Return by how many MiB anonymous memory rises while `run` runs, sampled every ms."""
    ctypes.CDLL(None).malloc_trim(0)  # what earlier merges freed must not hide what this one needs
    start, done, peak = anonymous_mib(), threading.Event(), [0.0]

    def watch() -> None:
        while not done.wait(0.001):
            peak[0] = max(peak[0], anonymous_mib() - start)

    watcher = threading.Thread(target=watch)
    watcher.start()
    kept = run()
    peak[0] = max(peak[0], anonymous_mib() - start)
    done.set()
    watcher.join()
    del kept
    return peak[0]


def serve(side: str, files: list[str], weights: list[list[float]]) -> None:
    """Answer requests until standard input ends."""
    import torch

    merge = SIDES[side]
    for line in sys.stdin:
        request = json.loads(line)
        torch.set_num_threads(request["threads"])
        rows = weights[: request["curves"]]

        def run(request: dict = request, rows: list[list[float]] = rows) -> dict | None:
            pairs = merge(files, rows, request["threads"])
            if request["keep"]:
                return dict(pairs)
            for _ in pairs:
                pass
            return None

        if request["do"] == "save":
            from safetensors.torch import save_file

            save_file({name: tensors[0] for name, tensors in run().items()}, request["out"])
            answer = 0.0
        elif request["do"] == "memory":
            answer = growth(run)
        else:
            start = time.perf_counter()
            kept = run()
            answer = time.perf_counter() - start
            del kept
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    with open(sys.argv[2], encoding="utf-8") as spec:
        serve(sys.argv[1], **json.load(spec))
