"""How far to trust a probe: on problems that it has not seen, by who wrote the step."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..metrics.calibration import (
    auroc,
    expected_calibration_error,
    noise_floor,
    r_squared,
    spearman,
    spearman_within,
)
from ..types import Author
from .label import Labelled
from .probe import Probe
from .train import inputs


def predictions(probe: Probe, data: Labelled, model: Author) -> np.ndarray:
    """The probe's probabilities. Shapes: [N]."""
    with torch.no_grad():
        return probe(inputs(data.features[model], probe.pooling)).sigmoid().numpy()


def evaluate_probe(
    predicted: np.ndarray, data: Labelled, model: Author, mask: np.ndarray
) -> dict[str, Any]:
    """Numbers for the card, of all held-out steps and of draft-written ones (used in decoding)."""
    groups = {"all": mask, "draft_written": mask & data.by_draft}
    return {name: _known(_scores(predicted, data, model, rows)) for name, rows in groups.items()}


def _known(scores: dict[str, Any]) -> dict[str, Any]:
    """Undefined numbers as ``None``: JSON has no nan."""
    return {name: None if value != value else value for name, value in scores.items()}


def _scores(p: np.ndarray, data: Labelled, model: Author, rows: np.ndarray) -> dict[str, Any]:
    y, n = data.labels[model][rows], data.n[model][rows]
    p = p[rows]
    scores: dict[str, Any] = {
        "n_items": int(rows.sum()),
        "n_contexts": len(np.unique(data.context[rows])),
        "mse": float(np.mean((p - y) ** 2)),
        "mse_noise_floor": noise_floor(y, n),
        "mse_of_constant": float(np.var(y)),
        "r2": r_squared(p, y),
        "spearman": spearman(p, y),
        "spearman_within_context": spearman_within(p, y, data.context[rows]),
        "ece": expected_calibration_error(p, y),
    }
    wrong = data.wrong[rows]
    if (wrong >= 0).all() and 0 < wrong.sum() < len(wrong):
        scores["share_wrong"] = float(wrong.mean())
        scores["auroc_wrong"] = auroc(-p, wrong.astype(bool))
        scores["auroc_wrong_of_labels"] = auroc(-y, wrong.astype(bool))
    return scores


def decision_scores(
    p_target: np.ndarray, p_draft: np.ndarray, data: Labelled, rows: np.ndarray
) -> dict[str, Any]:
    """The acceptance probability min(1, p_target / p_draft), predicted against sampled.

    Only draft-written steps count: nothing else is ever judged.
    """
    rows = rows & data.by_draft
    tiny = 1e-6
    predicted = np.minimum(1, p_target[rows] / np.maximum(p_draft[rows], tiny))
    sampled = np.minimum(
        1, data.labels["target"][rows] / np.maximum(data.labels["draft"][rows], tiny)
    )
    scores = {
        "acceptance_predicted": float(predicted.mean()),
        "acceptance_sampled": float(sampled.mean()),
        "acceptance_mae": float(np.abs(predicted - sampled).mean()),
        "acceptance_spearman": spearman(predicted, sampled),
    }
    wrong = data.wrong[rows]
    if (wrong >= 0).all() and 0 < wrong.sum() < len(wrong):
        scores["auroc_wrong"] = auroc(-predicted, wrong.astype(bool))
        scores["accepted_share_of_wrong"] = float(predicted[wrong == 1].mean())
        scores["accepted_share_of_right"] = float(predicted[wrong == 0].mean())
    return _known(scores)
