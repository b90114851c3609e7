"""From samples to the numbers of a table. Terms as in the field; see each function."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..types import PHASES
from .uncertainty import Estimate, mean, ratio_of_sums, share

BASELINE = "autoregressive"


@dataclass(frozen=True)
class Summary:
    """One method on one benchmark; ``None`` where a number has no meaning or no data."""

    n: int
    n_failed: int
    pass_at_1: Estimate
    """Share of right answers; a failed sample is a wrong one."""
    seconds_per_problem: Estimate
    ms_per_token: float
    tokens_per_second: float
    """Sum of tokens over sum of seconds: a mean of ratios would hide slow problems."""
    speedup: Estimate | None
    """Autoregressive seconds over the method's, on the same (problem, seed) pairs."""
    n_paired: int
    """Samples behind speedup and length ratio."""
    n_apart: int
    """Of these, those that another launch made than their autoregressive ones: times may drift."""
    length_ratio: Estimate | None
    """The method's tokens over autoregressive's, on the same pairs."""
    step_acceptance_rate: float | None
    token_acceptance_rate: float | None
    block_efficiency: float | None
    """Tokens a target pass, the bonus token included."""
    draft_share: float
    """Share of the tokens that the draft wrote."""
    truncation_rate: float


def summarise(samples: pd.DataFrame, baseline: pd.DataFrame | None) -> Summary:
    """Summarise one method's samples, paired with autoregressive ones when there are any."""
    ok = _finished(samples)
    tokens, seconds = _sum(ok, "n_tokens"), _sum(ok, "wall_s")
    paired = pair(samples, baseline)
    return Summary(
        n=len(samples),
        n_failed=len(samples) - len(ok),
        pass_at_1=share(_numbers(samples, "correct"), samples["problem_id"].to_numpy()),
        seconds_per_problem=mean(_numbers(ok, "wall_s"), ok["problem_id"].to_numpy()),
        ms_per_token=1_000 * _ratio(seconds, tokens),
        tokens_per_second=_ratio(tokens, seconds),
        n_paired=len(paired),
        n_apart=int(np.sum(paired["process"].to_numpy() != paired["process_base"].to_numpy())),
        speedup=_paired_ratio(paired, "wall_s_base", "wall_s"),
        length_ratio=_paired_ratio(paired, "n_tokens", "n_tokens_base"),
        step_acceptance_rate=_rate(ok, "n_steps_accepted", "n_steps_proposed"),
        token_acceptance_rate=_rate(ok, "n_tokens_accepted", "n_tokens_proposed"),
        block_efficiency=_rate(ok, "n_tokens", "n_target_passes"),
        draft_share=_ratio(_sum(ok, "n_draft_tokens_kept"), tokens),
        truncation_rate=_ratio(_sum(ok, "truncated"), len(ok)),
    )


def pair(samples: pd.DataFrame, baseline: pd.DataFrame | None) -> pd.DataFrame:
    """Samples beside autoregressive ones of the same problem and seed (suffix ``_base``).

    Failed samples, which have no time, are in no pair.
    """
    others = samples.iloc[:0] if baseline is None else _finished(baseline)
    return _finished(samples).merge(others, on=["problem_id", "seed"], suffixes=("", "_base"))


def ms_by_phase(samples: pd.DataFrame) -> dict[str, float]:
    """Milliseconds a token by phase; they add up to ``ms_per_token``."""
    ok = _finished(samples)
    n_tokens = _sum(ok, "n_tokens")
    return {phase: 1_000 * _ratio(_sum(ok, f"{phase}_s"), n_tokens) for phase in PHASES}


def _finished(samples: pd.DataFrame) -> pd.DataFrame:
    return samples.loc[samples["error"].isna().to_numpy()]


def _numbers(samples: pd.DataFrame, column: str) -> np.ndarray:
    return np.asarray(samples[column], dtype=float)


def _sum(samples: pd.DataFrame, column: str) -> float:
    return float(_numbers(samples, column).sum())


def _paired_ratio(paired: pd.DataFrame, top: str, bottom: str) -> Estimate | None:
    if not len(paired):
        return None
    problems = paired["problem_id"].to_numpy()
    return ratio_of_sums(_numbers(paired, top), _numbers(paired, bottom), problems)


def _rate(samples: pd.DataFrame, top: str, bottom: str) -> float | None:
    """A ratio of sums; ``None`` when there was nothing to count."""
    below = _sum(samples, bottom)
    return _sum(samples, top) / below if below else None


def _ratio(top: float, bottom: float) -> float:
    return top / bottom if bottom else float("nan")


@dataclass(frozen=True)
class StepTheory:
    """What step-level speculation costs and yields, measured, and the speedup that follows."""

    c: float
    """Draft seconds a token over target seconds a token."""
    v: float
    """Seconds to verify a step, in target seconds a token; the probes' time is included."""
    step_length: float
    """Mean tokens of a proposed step."""
    a: float
    """Step acceptance rate."""
    measured: float
    """Speedup per token as it was, to set beside the prediction."""

    @property
    def terms(self) -> dict[str, float]:
        """What a token costs, in target tokens: drafting, verifying, writing again."""
        return {"c": self.c, "v/L": self.v / self.step_length, "1 - a": 1 - self.a}

    @property
    def speedup(self) -> float:
        """Per token, steps one after the other: 1 / (c + v/L + 1 - a). Pays only if a > c + v/L.

        Leaves out reading the prompt, and what the target always writes (first steps, answer).
        """
        return 1 / sum(self.terms.values())


def step_theory(samples: pd.DataFrame, baseline: pd.DataFrame | None) -> StepTheory | None:
    """Measure a step-level method's c, v, L and a; ``None`` when there is nothing to measure by."""
    paired = pair(samples, baseline)
    n_proposed = _sum(paired, "n_steps_proposed")
    if not n_proposed:
        return None
    steps = [step for steps in paired["steps"] for step in steps]
    n_rejected = sum(step["n_rejected_tokens"] for step in steps)
    n_accepted = sum(step["n_tokens"] for step in steps if step["accepted"])
    # The draft may write the answer too: time without a proposal.
    n_drafted = _sum(paired, "n_draft_tokens_kept") + n_rejected
    target_s = _sum(paired, "target_s_base") / _sum(paired, "n_tokens_base")
    return StepTheory(
        c=_sum(paired, "draft_s") / n_drafted / target_s,
        v=(_sum(paired, "verify_s") + _sum(paired, "probe_s")) / n_proposed / target_s,
        step_length=(n_accepted + n_rejected) / n_proposed,
        a=_sum(paired, "n_steps_accepted") / n_proposed,
        measured=(_sum(paired, "wall_s_base") / _sum(paired, "n_tokens_base"))
        / (_sum(paired, "wall_s") / _sum(paired, "n_tokens")),
    )
