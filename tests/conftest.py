"""Settings of every test: offline, nothing mirrored, one thread."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["WANDB_MODE"] = "disabled"
os.environ.setdefault("OMP_NUM_THREADS", "1")
# kernels are compiled here; a test that interprets them starts a process of its own
os.environ["TRITON_INTERPRET"] = "0"
