"""The training loop in several processes: the same result as in one, within float rounding."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = """
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

from steps.shared.fit import Fit
from steps.shared.fit_config import FitConfig

state = Path(sys.argv[1])
torch.manual_seed(0)


def batch(update):
    x = torch.randn(8, 3, generator=torch.Generator().manual_seed(update))
    return x, x.sum(1, keepdim=True)


config = FitConfig(
    learning_rate=0.01, beta1=0.9, beta2=0.95, weight_decay=0.1, clip_norm=1.0, batch_size=8,
    micro_batch=3, precision="no", log_every=5, checkpoint_every=5,
)
fit = Fit(
    nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)), config, batch=batch,
    loss=lambda model, batch: F.mse_loss(model(batch[0]), batch[1]), rate=lambda update: 1.0,
    state=state, cpu=True,
)
fit.resume()
fit.run(int(sys.argv[2]), label="fit")
fit.save_state(state / "end.safetensors")
"""


def train(folder: Path, processes: int, last: int = 20) -> dict[str, torch.Tensor]:
    """Run the script under `accelerate launch` and return the final training state."""
    folder.mkdir(exist_ok=True)
    script = folder / "train.py"
    script.write_text(SCRIPT)
    launch = [sys.executable, "-m", "accelerate.commands.launch", "--cpu"]
    if processes > 1:
        launch += ["--num_processes", str(processes), "--main_process_port", "0"]
    command = [*launch, "--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no"]
    done = subprocess.run(
        [*command, str(script), str(folder), str(last)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return load_file(folder / "end.safetensors")


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> dict[str, torch.Tensor]:
    return train(tmp_path_factory.mktemp("alone"), 1)


def assert_alike(one: dict[str, torch.Tensor], two: dict[str, torch.Tensor]) -> None:
    assert one.keys() == two.keys()
    for name in one:
        torch.testing.assert_close(one[name], two[name], rtol=1e-4, atol=1e-6, msg=name)


def test_two_processes_train_like_one(tmp_path, alone):
    assert_alike(alone, train(tmp_path, 2))


def test_two_processes_continue_from_a_checkpoint(tmp_path, alone):
    train(tmp_path, 2, last=12)
    assert (tmp_path / "checkpoint.safetensors").exists()
    assert_alike(alone, train(tmp_path, 2))
