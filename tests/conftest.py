"""Settings of every test: offline, nothing mirrored, one thread, no test fails for its time."""

import os

from hypothesis import settings

settings.register_profile("without deadlines", deadline=None)
settings.load_profile("without deadlines")

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["WANDB_MODE"] = "disabled"
os.environ.setdefault("OMP_NUM_THREADS", "1")
# kernels are compiled here; a test that interprets them starts a process of its own
os.environ["TRITON_INTERPRET"] = "0"
