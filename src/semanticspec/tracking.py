"""Report runs to Weights & Biases, or to nobody. The only file that knows wandb."""

from __future__ import annotations

from types import TracebackType
from typing import Any

from .config import TrackerConfig
from .records import RunManifest
from .types import SampleRecord


class Tracker:
    """Reports to nobody; the base of those that report to somebody. A context manager."""

    def log(self, record: SampleRecord) -> None:
        """One sample has been recorded."""

    def close(self) -> None:
        """The run is over, whatever ended it."""

    def __enter__(self) -> Tracker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class WandbTracker(Tracker):
    """One W&B run a (model, method, benchmark, seed)."""

    def __init__(self, config: TrackerConfig, manifest: RunManifest) -> None:
        import wandb  # noqa: PLC0415  (slow to import, and seldom used)

        name = f"{manifest.model}-{manifest.benchmark}-{manifest.method}-s{manifest.seed}"
        self._run: Any = wandb.init(
            project=config.project,
            entity=config.entity,
            mode=config.mode,  # type: ignore[arg-type]
            group=config.group or f"{manifest.model}-{manifest.benchmark}",
            job_type=manifest.method,
            name=name,
            config={**manifest.config, "hardware": manifest.hardware, "git": manifest.git},
            reinit="create_new",  # methods that alternate are open at once
        )
        self._n = self._n_right = self._n_tokens = 0
        self._seconds = 0.0

    def log(self, record: SampleRecord) -> None:
        self._n += 1
        self._n_right += record.correct
        self._n_tokens += record.counts.n_tokens
        self._seconds += record.wall_s
        self._run.log(
            {
                "pass_at_1": self._n_right / self._n,
                "tokens_per_second": self._n_tokens / self._seconds if self._seconds else 0.0,
                "correct": int(record.correct),
                "wall_s": record.wall_s,
                "n_tokens": record.counts.n_tokens,
                **{f"phase_s/{phase}": s for phase, s in record.phase_s.items()},
            }
        )

    def close(self) -> None:
        self._run.finish()


def start_tracker(config: TrackerConfig, manifest: RunManifest) -> Tracker:
    """The tracker that a configuration names, for one run."""
    return WandbTracker(config, manifest) if config.name == "wandb" else Tracker()
