"""Gather runs into comparisons: the methods of one model on one benchmark, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd

from .. import records
from ..errors import UserError
from ..metrics.summary import BASELINE, StepTheory, Summary, ms_by_phase, step_theory, summarise

# In tables and figures, methods come in this order; those not named here come last.
METHODS = (
    "autoregressive draft_only specsampling prompt_lookup assisted specreason speculative_thinking "
    "lookahead_reasoning confspec semanticspec random_accept oracle"
).split()
# What may differ between methods that are compared, and between seeds that are pooled.
_OF_METHOD = {"method", "probes"}
_OF_SEED = {"seed"}
_SAMPLE = ["model", "benchmark", "method", "seed", "problem_id"]


@dataclass(frozen=True)
class Run:
    """A run folder and its manifest."""

    folder: Path
    manifest: dict[str, Any]


@dataclass(frozen=True)
class Result:
    """One method on one benchmark, all seeds together."""

    method: str
    hashes: tuple[str, ...]
    """Of the configurations that the samples come from."""
    summary: Summary
    phase_ms: dict[str, float]
    """Milliseconds a token by phase."""
    theory: StepTheory | None


@dataclass(frozen=True)
class Comparison:
    """All methods of one model on one benchmark, in the order of ``METHODS``."""

    model: str
    benchmark: str
    results: tuple[Result, ...]


@dataclass(frozen=True)
class Report:
    """What was read from the run folders, and what a reader must know about it."""

    runs: tuple[Run, ...]
    comparisons: tuple[Comparison, ...]
    notes: tuple[str, ...]


def gather(paths: Sequence[Path]) -> Report:
    """Read all runs at or below the given folders.

    Raises ``UserError`` when there are none, or when they do not belong together.
    """
    runs = [Run(folder, records.load_manifest(folder)) for folder in records.run_folders(paths)]
    samples = records.load([run.folder for run in runs])
    if samples.empty:
        raise UserError(
            f"{', '.join(map(str, paths))}: no recorded samples; make some with run.py, or name "
            "its results_dir"
        )
    _check_settings(runs)
    notes: list[str] = []
    repeated = samples.duplicated(_SAMPLE)
    if repeated.any():
        notes.append(
            f"{_count(int(repeated.sum()), 'sample')} made more than once: the first of each counts"
        )
        samples = samples.loc[~repeated.to_numpy()]
    pairs = dict.fromkeys(zip(samples["model"], samples["benchmark"], strict=True))
    comparisons = [
        _compare(
            model,
            benchmark,
            samples.loc[(samples["model"] == model) & (samples["benchmark"] == benchmark)],
            notes,
        )
        for model, benchmark in pairs  # in the order of their folders
    ]
    used = set(samples["run"])
    return Report(
        runs=tuple(run for run in runs if run.folder.name in used),
        comparisons=tuple(comparisons),
        notes=tuple(notes),
    )


def _check_settings(runs: Sequence[Run]) -> None:
    """Everything but the method is equal where methods are compared, and all where seeds pool."""
    _must_agree(runs, ("model", "benchmark"), _OF_METHOD | _OF_SEED)
    _must_agree(runs, ("model", "benchmark", "method"), _OF_SEED)


def _must_agree(runs: Sequence[Run], keys: tuple[str, ...], but: set[str]) -> None:
    def key(run: Run) -> tuple[str, ...]:
        return tuple(run.manifest[k] for k in keys)

    for name, group in groupby(sorted(runs, key=key), key=key):
        first, *others = group
        for other in others:
            differing = _differing(first.manifest["config"], other.manifest["config"], but)
            if differing:
                raise UserError(
                    f"{first.folder} and {other.folder}: two configurations of "
                    f"{' / '.join(name)} ({differing}); name the run folders that belong together"
                )


def _differing(one: dict[str, Any], other: dict[str, Any], but: set[str]) -> str:
    """The settings that two configurations do not share, in words; empty when there are none."""
    left, right = (_flat({k: v for k, v in c.items() if k not in but}) for c in (one, other))
    keys = [k for k in {**left, **right} if left.get(k) != right.get(k)]
    words = [f"{k}: {left.get(k)} and {right.get(k)}" for k in keys[:3]]
    return "; ".join(words) + ("; ..." if len(keys) > 3 else "")


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        flat |= _flat(value, f"{name}.") if isinstance(value, dict) and value else {name: value}
    return flat


def _compare(model: str, benchmark: str, samples: pd.DataFrame, notes: list[str]) -> Comparison:
    by_method = {str(name): chosen for name, chosen in samples.groupby("method", sort=False)}
    baseline = by_method.get(BASELINE)
    where = f"{model} / {benchmark}"
    if baseline is None:
        notes.append(f"{where}: no {BASELINE} run, so no speedup and no length ratio")
    results = []
    for method in sorted(by_method, key=_place):
        chosen = by_method[method]
        summary = summarise(chosen, baseline)
        n_ok = summary.n - summary.n_failed
        if baseline is not None and summary.n_paired < n_ok:
            notes.append(
                f"{where}: {method} has {BASELINE} beside it on {summary.n_paired} of "
                f"{_count(n_ok, 'sample')}; speedup and length ratio are of those"
            )
        if summary.n_apart:
            notes.append(
                f"{where}: {method} and {BASELINE} were timed in different launches on "
                f"{summary.n_apart} of {_count(summary.n_paired, 'sample')}; "
                "their speedup is only as good as the machine was quiet"
            )
        results.append(
            Result(
                method=method,
                hashes=tuple(dict.fromkeys(chosen["config_hash"])),
                summary=summary,
                phase_ms=ms_by_phase(chosen),
                theory=step_theory(chosen, baseline),
            )
        )
    return Comparison(model, benchmark, tuple(results))


def _place(method: str) -> tuple[int, str]:
    return (METHODS.index(method) if method in METHODS else len(METHODS), method)


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"
