"""Intervals by resampling problems: samples of one problem are not independent of each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats

N_RESAMPLES = 2_000
LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """A value with a 95 % interval."""

    value: float
    low: float
    high: float


def ratio_of_sums(top: np.ndarray, bottom: np.ndarray, cluster: np.ndarray) -> Estimate:
    """sum(top) / sum(bottom), with a bootstrap over clusters (problems).

    Both sides of a problem are drawn together, so a ratio of two methods on the same problems is
    paired: what makes a problem long for both cancels. Shapes: [N] each.
    """
    _, index = np.unique(cluster, return_inverse=True)
    sums = np.stack([np.bincount(index, weights=side) for side in (top, bottom)])

    def ratio(a: np.ndarray, b: np.ndarray, axis: int = -1) -> np.ndarray:
        with np.errstate(invalid="ignore", divide="ignore"):  # of nothing: nan
            return a.sum(axis) / b.sum(axis)

    return _bootstrap((sums[0], sums[1]), ratio)


def mean(values: np.ndarray, cluster: np.ndarray) -> Estimate:
    """The mean, with a bootstrap over clusters. Shapes: [N] each."""
    return ratio_of_sums(values.astype(float), np.ones(len(values)), cluster)


def _bootstrap(data: tuple[np.ndarray, ...], statistic: Callable[..., np.ndarray]) -> Estimate:
    value = float(statistic(*data))
    if len(data[0]) < 2 or not np.isfinite(value):
        return Estimate(value, float("nan"), float("nan"))
    result = stats.bootstrap(
        data,
        statistic,
        paired=True,
        vectorized=True,
        n_resamples=N_RESAMPLES,
        confidence_level=LEVEL,
        method="percentile",
        rng=np.random.default_rng(0),
    )
    low, high = result.confidence_interval
    return Estimate(value, float(low), float(high))


def share(successes: np.ndarray, cluster: np.ndarray) -> Estimate:
    """A share of yes-or-no outcomes (1 or 0). Shapes: [N] each.

    With one sample a problem the outcomes are independent and Wilson's interval holds, also at 0
    and 1, where a bootstrap would claim certainty. With more, problems are resampled.
    """
    n = len(successes)
    if len(np.unique(cluster)) < n:
        return mean(successes, cluster)
    test = stats.binomtest(int(successes.sum()), n)
    interval = test.proportion_ci(LEVEL, method="wilson")
    return Estimate(float(successes.mean()), float(interval.low), float(interval.high))
