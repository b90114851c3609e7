"""How well predicted probabilities match observed shares."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats


def noise_floor(labels: np.ndarray, n: np.ndarray) -> float:
    """The squared error that a perfect probe would still show, the labels being shares of n draws.

    A share of n draws has variance p(1 - p)/n; its unbiased estimate from the share y itself is
    y(1 - y)/(n - 1). Shapes: labels, n [N].
    """
    return float(np.mean(labels * (1 - labels) / np.maximum(n - 1, 1)))


def r_squared(predicted: np.ndarray, labels: np.ndarray) -> float:
    """Share of the labels' variance that is explained; nan when they do not vary."""
    variance = float(np.var(labels))
    return 1 - float(np.mean((predicted - labels) ** 2)) / variance if variance else float("nan")


def spearman(predicted: np.ndarray, labels: np.ndarray) -> float:
    """Rank correlation; nan when either side does not vary."""
    if np.ptp(predicted) == 0 or np.ptp(labels) == 0:
        return float("nan")
    result: Any = stats.spearmanr(predicted, labels)
    return float(result.statistic)


def spearman_within(predicted: np.ndarray, labels: np.ndarray, context: np.ndarray) -> float:
    """Mean rank correlation inside contexts, over those in which it is defined."""
    values = []
    for members in _groups(context):
        if len(members) > 2:
            value = spearman(predicted[members], labels[members])
            if not np.isnan(value):
                values.append(value)
    return float(np.mean(values)) if values else float("nan")


def _groups(keys: np.ndarray) -> list[np.ndarray]:
    order = np.argsort(keys, kind="stable")
    cuts = np.flatnonzero(np.diff(keys[order])) + 1
    return np.split(order, cuts)


def expected_calibration_error(
    predicted: np.ndarray, labels: np.ndarray, *, n_bins: int = 15
) -> float:
    """Mean distance of prediction and label over bins of equal mass."""
    order = np.argsort(predicted, kind="stable")
    error = 0.0
    for members in np.array_split(order, min(n_bins, len(order))):
        gap = abs(float(predicted[members].mean() - labels[members].mean()))
        error += gap * len(members) / len(order)
    return error


def auroc(scores: np.ndarray, positive: np.ndarray) -> float:
    """Chance that a positive scores above a negative, ties counted half (Mann-Whitney)."""
    ranks = stats.rankdata(scores)
    n_positive = int(positive.sum())
    n_negative = len(positive) - n_positive
    above = ranks[positive].sum() - n_positive * (n_positive + 1) / 2
    return float(above / (n_positive * n_negative))
