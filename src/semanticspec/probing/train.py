"""Fit one probe: items split by problem, early stopping on a split of its own."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from tqdm import trange

from ..config import ProbeTrainConfig
from ..types import Author
from .label import Labelled
from .probe import Probe


def split_by_problem(problem: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """Boolean masks ``train`` (70 %), ``stop`` (10 %) and ``test`` (20 % of the problems)."""
    unique = np.random.default_rng(seed).permutation(np.unique(problem))
    first, second = int(0.7 * len(unique)), int(0.8 * len(unique))
    parts = {"train": unique[:first], "stop": unique[first:second], "test": unique[second:]}
    return {name: np.isin(problem, members) for name, members in parts.items()}


def inputs(features: Tensor, pooling: str) -> Tensor:
    """Stored features as the probe's input. Shapes: [N, 2, n_layers, H] -> [N, n_features].

    The order of ``probe.pool``: for each layer the mean, the last token, or both.
    """
    parts = {"mean": [0], "last": [1], "mean+last": [0, 1]}[pooling]
    return torch.cat([features[:, part] for part in parts], dim=-1).float().flatten(1)


def train_probe(
    data: Labelled, model: Author, config: ProbeTrainConfig, masks: dict[str, np.ndarray]
) -> Probe:
    """Train on items of both authors. The loss is the squared error, as in the paper."""
    torch.manual_seed(config.seed)
    x = inputs(data.features[model], config.pooling)
    y = torch.tensor(data.labels[model], dtype=torch.float32)
    parts = {name: torch.from_numpy(np.flatnonzero(mask)) for name, mask in masks.items()}
    rows, stop = parts["train"], parts["stop"]
    probe = Probe(x.shape[1], tuple(config.widths), config.pooling)
    probe.mean.copy_(x[rows].mean(0))
    probe.scale.copy_(x[rows].std(0).clamp_min(1e-3))
    optimizer = torch.optim.AdamW(probe.parameters(), lr=config.learning_rate, weight_decay=1e-2)
    generator = torch.Generator().manual_seed(config.seed)
    best, best_state, waited = float("inf"), probe.state_dict(), 0
    bar = trange(config.max_epochs, desc=f"train {model} probe", unit="epoch")
    for _ in bar:
        probe.train()
        for batch in rows[torch.randperm(len(rows), generator=generator)].split(config.batch_size):
            loss = (probe(x[batch]).sigmoid() - y[batch]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        probe.eval()
        with torch.no_grad():
            error = float((probe(x[stop]).sigmoid() - y[stop]).square().mean())
        bar.set_postfix(stop_mse=f"{error:.4f}")
        if error < best:
            best, waited = error, 0
            best_state = {key: value.clone() for key, value in probe.state_dict().items()}
        else:
            waited += 1
            if waited >= config.patience:
                break
    bar.close()
    probe.load_state_dict(best_state)
    return probe.eval()
