"""Report runs to Weights & Biases, or to nobody. The only file that knows wandb."""

from __future__ import annotations

import hashlib
from types import TracebackType

from .config import TrackerConfig
from .records import RunStore
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
    """One W&B run a (model, method, benchmark, seed); a resumed run goes on in the same one."""

    def __init__(self, config: TrackerConfig, store: RunStore) -> None:
        import wandb  # noqa: PLC0415  (slow to import, and seldom used)

        manifest = store.manifest
        key = f"{store.folder.name}/{manifest.started}"
        self._run = wandb.init(
            project=config.project,
            entity=config.entity,
            mode=config.mode,
            id=hashlib.sha256(key.encode()).hexdigest()[:16],
            resume="allow",
            name=f"{manifest.model}-{manifest.benchmark}-{manifest.method}-s{manifest.seed}",
            group=config.group or f"{manifest.model}-{manifest.benchmark}",
            job_type=manifest.method,
            config={**manifest.config, "hardware": manifest.hardware, "git": manifest.git},
            dir=str(store.folder),
            reinit="create_new",  # methods that alternate are open at once
            settings=wandb.Settings(silent=True, console="off"),
        )
        self._n = self._n_right = self._n_tokens = 0
        self._seconds = 0.0
        for record in store.records:  # of earlier launches
            self._add(record["correct"], record["counts"]["n_tokens"], record["wall_s"])

    def _add(self, correct: bool, n_tokens: int, wall_s: float) -> None:
        self._n += 1
        self._n_right += correct
        self._n_tokens += n_tokens
        self._seconds += wall_s

    def log(self, record: SampleRecord) -> None:
        self._add(record.correct, record.counts.n_tokens, record.wall_s)
        self._run.log(
            {
                "correct": int(record.correct),
                "wall_s": record.wall_s,
                "n_tokens": record.counts.n_tokens,
                **{f"phase_s/{phase}": s for phase, s in record.phase_s.items()},
            }
        )

    def close(self) -> None:
        if self._n:
            self._run.summary["n"] = self._n
            self._run.summary["pass_at_1"] = self._n_right / self._n
        if self._seconds:
            self._run.summary["tokens_per_second"] = self._n_tokens / self._seconds
        self._run.finish()


def start_tracker(config: TrackerConfig, store: RunStore) -> Tracker:
    """The tracker that a configuration names, for one run."""
    return WandbTracker(config, store) if config.name == "wandb" else Tracker()
