"""Labels: the share of a model's next steps that mean the same, the labelled step left out.

Draft and target samples of a context are sorted into classes together, so that both probabilities
speak of the same classes. A step's label under its own author is (class size - 1) / (n - 1); under
the other model it is class size / n. Counting the step itself would put a floor of 1/n under each
label, and two floors look like agreement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..equivalence import Judge
from ..equivalence.exact import wrong_steps
from ..types import Author
from .collect import Shard


@dataclass(frozen=True)
class Labelled:
    """All items of a collection.

    Shapes: features[model] [N, 2, n_layers, H]; the rest [N]. ``wrong`` is -1 where the truth is
    not known. ``n`` is the number of samples behind the label, by model.
    """

    features: dict[Author, Tensor]
    labels: dict[Author, np.ndarray]
    n: dict[Author, np.ndarray]
    by_draft: np.ndarray
    problem: np.ndarray
    context: np.ndarray
    n_tokens: np.ndarray
    wrong: np.ndarray


def leave_one_out(classes: Sequence[int], authors: Sequence[str], model: str) -> list[float]:
    """Each step's label under one model.

    Three classes, five samples: classes [0, 0, 1] by the target and [0, 2] by the draft give under
    the target [1/2, 1/2, 0] for its own and [2/3, 0] for the draft's.
    """
    own = [c for c, author in zip(classes, authors, strict=True) if author == model]
    labels = []
    for cls, author in zip(classes, authors, strict=True):
        mine = author == model
        n = len(own) - mine
        labels.append((own.count(cls) - mine) / n if n else 0.0)
    return labels


def label(folder: Path, judge: Judge) -> Labelled:
    """Label everything in a folder of shards."""
    columns: dict[str, list[float]] = {
        name: []
        for name in ("target", "draft", "n_target", "n_draft", "by", "problem", "context", "wrong")
    }
    n_tokens: list[int] = []
    features: dict[Author, list[Tensor]] = {"target": [], "draft": []}
    n_contexts = 0
    for index, file in enumerate(sorted(folder.glob("*.safetensors"))):
        shard = Shard.load(file)
        if not shard.items:
            continue
        for name in features:
            features[name].append(shard.features[name])
        for context, history in enumerate(shard.histories):
            items = [item for item in shard.items if item.context == context]
            texts, authors = [i.text for i in items], [i.author for i in items]
            classes = judge.classes(shard.problem, history, texts)
            wrong = wrong_steps(shard.problem, history, texts)
            for model in ("target", "draft"):
                columns[model] += leave_one_out(classes, authors, model)
                n = authors.count(model)
                columns[f"n_{model}"] += [n - (author == model) for author in authors]
            columns["by"] += [author == "draft" for author in authors]
            columns["problem"] += [index] * len(items)
            columns["context"] += [n_contexts] * len(items)
            columns["wrong"] += [-1] * len(items) if wrong is None else wrong
            n_tokens += [item.n_tokens for item in items]
            n_contexts += 1
    arrays = {name: np.asarray(values) for name, values in columns.items()}
    return Labelled(
        {name: torch.cat(rows) for name, rows in features.items()},
        {"target": arrays["target"], "draft": arrays["draft"]},
        {"target": arrays["n_target"], "draft": arrays["n_draft"]},
        arrays["by"].astype(bool),
        arrays["problem"].astype(int),
        arrays["context"].astype(int),
        np.asarray(n_tokens),
        arrays["wrong"].astype(int),
    )
