"""From samples to the numbers of a table. Terms as in the field; see each function."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from .uncertainty import Estimate, ratio_of_sums, share

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
    ok = samples[samples["error"].isna()]
    tokens, seconds = float(ok["n_tokens"].sum()), float(ok["wall_s"].sum())
    paired = pair(ok, baseline)
    problems = samples["problem_id"].to_numpy()
    return Summary(
        n=len(samples),
        n_failed=len(samples) - len(ok),
        pass_at_1=share(samples["correct"].to_numpy(bool), problems),
        seconds_per_problem=ratio_of_sums(
            ok["wall_s"].to_numpy(float), np.ones(len(ok)), ok["problem_id"].to_numpy()
        ),
        ms_per_token=1_000 * _ratio(seconds, tokens),
        tokens_per_second=_ratio(tokens, seconds),
        speedup=_paired_ratio(paired, "wall_s_base", "wall_s"),
        length_ratio=_paired_ratio(paired, "n_tokens", "n_tokens_base"),
        step_acceptance_rate=_rate(ok, "n_steps_accepted", "n_steps_proposed"),
        token_acceptance_rate=_rate(ok, "n_tokens_accepted", "n_tokens_proposed"),
        block_efficiency=_rate(ok, "n_tokens", "n_target_passes"),
        draft_share=_ratio(float(ok["n_draft_tokens_kept"].sum()), tokens),
        truncation_rate=float(ok["truncated"].mean()) if len(ok) else float("nan"),
    )


def pair(samples: pd.DataFrame, baseline: pd.DataFrame | None) -> pd.DataFrame:
    """Samples beside autoregressive ones of the same problem and seed (suffix ``_base``)."""
    if baseline is None:
        return samples.iloc[:0]
    usable = baseline[baseline["error"].isna()]
    return samples.merge(usable, on=["problem_id", "seed"], suffixes=("", "_base"))


def _paired_ratio(paired: pd.DataFrame, top: str, bottom: str) -> Estimate | None:
    if not len(paired):
        return None
    return ratio_of_sums(
        paired[top].to_numpy(float), paired[bottom].to_numpy(float), paired["problem_id"].to_numpy()
    )


def _rate(samples: pd.DataFrame, top: str, bottom: str) -> float | None:
    """A ratio of sums; ``None`` when there was nothing to count."""
    below = float(samples[bottom].sum())
    return float(samples[top].sum()) / below if below else None


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

    @property
    def speedup(self) -> float:
        """Per token, steps one after the other: 1 / (c + v/L + 1 - a). Pays only if a > c + v/L."""
        return 1 / (self.c + self.v / self.step_length + 1 - self.a)


def step_theory(samples: pd.DataFrame, baseline: pd.DataFrame | None) -> StepTheory | None:
    """Measure a step-level method's c, v, L and a; ``None`` when there is nothing to measure by."""
    paired = pair(samples[samples["error"].isna()], baseline)
    n_proposed = float(paired["n_steps_proposed"].sum()) if len(paired) else 0.0
    if not n_proposed:
        return None
    kept = float(paired["n_draft_tokens_kept"].sum())
    rejected = sum(step["n_rejected_tokens"] for steps in paired["steps"] for step in steps)
    n_draft = kept + rejected
    target_s = float(paired["target_s_base"].sum()) / float(paired["n_tokens_base"].sum())
    judged_s = float(paired["verify_s"].sum()) + float(paired["probe_s"].sum())
    return StepTheory(
        c=float(paired["draft_s"].sum()) / n_draft / target_s,
        v=judged_s / n_proposed / target_s,
        step_length=n_draft / n_proposed,
        a=float(paired["n_steps_accepted"].sum()) / n_proposed,
    )
