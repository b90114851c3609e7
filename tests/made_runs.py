"""Run folders made by hand, for tests of what reads them. No number in them was measured."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from semanticspec import records
from semanticspec.records import RunManifest
from semanticspec.types import PHASES, Counts, SampleRecord, Step


def sample(
    problem_id: str,
    *,
    seed: int = 0,
    correct: bool = True,
    wall_s: float = 1.0,
    n_tokens: int = 100,
    phase_s: dict[str, float] | None = None,
    steps: tuple[Step, ...] = (),
    truncated: bool = False,
    error: str | None = None,
    **counts: int,
) -> SampleRecord:
    """One sample; time that no phase claims is the target's."""
    phases = dict.fromkeys(PHASES, 0.0) | (phase_s or {})
    phases["target"] += wall_s - sum(phases.values())
    return SampleRecord(
        problem_id=problem_id,
        seed=seed,
        gold="7",
        text="\\boxed{7}",
        answer="7" if correct else None,
        correct=correct,
        truncated=truncated,
        stop_reason="error" if error else "end_of_text",
        wall_s=wall_s,
        phase_s=phases,
        counts=Counts(n_prompt_tokens=20, n_tokens=n_tokens, **counts),
        steps=steps,
        error=error,
    )


def manifest(
    method: str = "autoregressive",
    *,
    model: str = "toy",
    benchmark: str = "sums",
    seed: int = 0,
    process: str = "launch-1",
    settings: dict[str, Any] | None = None,
) -> RunManifest:
    """A manifest whose hash tells method, seed and settings apart, as the real one does."""
    settings = {"generation": {"temperature": 0.8, "top_p": 1.0}} | (settings or {})
    extra = "" if settings["generation"]["temperature"] == 0.8 else "t"
    return RunManifest(
        model=model,
        method=method,
        benchmark=benchmark,
        seed=seed,
        config={**settings, "method": {"name": method}, "seed": seed},
        config_hash=f"{method[:6]}{seed}{extra}",
        process=process,
        git={"sha": "0123456789abcdef", "dirty": False},
        packages={"python": "3.11"},
        hardware={"cpu": "Abacus", "n_threads": 2, "accelerators": []},
        started="2026-01-02T03:04:05+00:00",
    )


def make_run(results: Path, about: RunManifest, samples: Iterable[SampleRecord]) -> Path:
    """Write a run folder as the runner does."""
    with records.open_run(results, about) as store:
        for one in samples:
            store.append(one)
        return store.folder
