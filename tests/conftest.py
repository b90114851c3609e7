"""For every test: no network, no account, and no more threads than needed."""

from __future__ import annotations

import os

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["WANDB_MODE"] = "offline"
os.environ.setdefault("OMP_NUM_THREADS", "2")
