"""Where the time goes: seconds by phase that add up to the wall time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from ..types import PHASES


class Clock:
    """A stopwatch with phases; what no phase claims is ``other``.

    Kernels on an accelerator run behind the program: its queue is emptied where a phase ends, so
    that each phase pays for its own work.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._spent: dict[str, float] = dict.fromkeys(PHASES, 0.0)
        self._started = self._now()

    def _now(self) -> float:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return time.perf_counter()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        started = self._now()
        try:
            yield
        finally:
            self._spent[name] += self._now() - started

    def stop(self) -> tuple[float, dict[str, float]]:
        """Wall seconds, and seconds by phase."""
        wall = self._now() - self._started
        spent = dict(self._spent)
        spent["other"] = max(0.0, wall - sum(spent.values()))
        return wall, spent
