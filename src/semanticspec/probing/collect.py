"""Sample next steps at the step boundaries of the pair's own traces, and keep what both models see.

Contexts are on-policy: a trace is written by draft and target in turns, so that contexts look like
those met in use, the draft's mistakes included. At a boundary each model writes ``n_samples`` next
steps in one batch, and reads the other's in another; kept are the texts and, from both models, the
hidden states of chosen layers (mean over the step, and its last token). One file a problem, written
whole or not at all, so that a broken run goes on where it was.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor
from tqdm import tqdm

from ..backends import HFModel, HFSequence, Pair, StopRule, Written
from ..config import CollectConfig, GenerationConfig
from ..sampling import Sampling, seeded
from ..types import Author, Problem


@dataclass(frozen=True)
class Item:
    """One sampled step: the ``context`` it follows (an index in its shard), author and text."""

    context: int
    author: Author
    text: str
    n_tokens: int


@dataclass(frozen=True)
class Shard:
    """What one problem gave.

    Shapes: features[model] [n_items, 2, n_layers, H]; along the second axis mean and last token.
    """

    problem: Problem
    histories: list[list[str]]
    items: list[Item]
    features: dict[Author, Tensor]

    def save(self, file: Path) -> None:
        text = {
            "problem": asdict(self.problem),
            "histories": self.histories,
            "items": [asdict(item) for item in self.items],
        }
        scratch = file.with_suffix(".tmp")
        tensors = {name: tensor.contiguous() for name, tensor in self.features.items()}
        save_file(tensors, scratch, metadata={"shard": json.dumps(text)})
        scratch.replace(file)

    @staticmethod
    def load(file: Path) -> Shard:
        with safe_open(file, framework="pt") as opened:
            text = json.loads(opened.metadata()["shard"])
            features = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        return Shard(
            Problem(**text["problem"]),
            text["histories"],
            [Item(**item) for item in text["items"]],
            features,
        )


def collect(
    pair: Pair,
    problems: Sequence[Problem],
    limits: GenerationConfig,
    config: CollectConfig,
    folder: Path,
    *,
    seed: int,
) -> None:
    """Collect from each problem that has no file yet."""
    folder.mkdir(parents=True, exist_ok=True)
    pair.target.feature_layers = config.target_layers
    pair.draft.feature_layers = config.draft_layers
    for index, problem in enumerate(tqdm(problems, desc="collect", unit="problem")):
        file = folder / f"{index:05d}.safetensors"
        if not file.exists():
            _collect_problem(pair, problem, limits, config, seed).save(file)


def _collect_problem(
    pair: Pair, problem: Problem, limits: GenerationConfig, config: CollectConfig, seed: int
) -> Shard:
    sampling = Sampling(limits.temperature, limits.top_p, limits.top_k)
    choice = random.Random(f"{seed}/{problem.id}")
    target, draft = pair.target.start(problem.prompt), pair.draft.start(problem.prompt)
    histories: list[list[str]] = []
    items: list[Item] = []
    features: dict[Author, list[Tensor]] = {"target": [], "draft": []}
    history: list[str] = []
    n_written = 0
    while n_written < limits.max_new_tokens and len(histories) < config.max_contexts:
        limit = min(limits.max_step_tokens, limits.max_new_tokens - n_written)
        rule = StopRule(limit)
        # The first step is the target's in use too, so nothing is ever judged there.
        here = bool(history) and choice.random() < config.context_rate
        n = config.n_samples if here else 1
        place = len(history)
        by_target = _write(target, n, rule, sampling, (seed, problem.id, place, "target"), here)
        by_draft = _write(draft, n, rule, sampling, (seed, problem.id, place, "draft"), here)
        if here:
            authored: tuple[tuple[Author, list[Written]], ...] = (
                ("target", by_target),
                ("draft", by_draft),
            )
            for author, written in authored:
                own, other = (target, draft) if author == "target" else (draft, target)
                passed = [_pass_on(pair, author, w.token_ids) for w in written]
                read = other.branch(n).read(passed)
                for mine, theirs in zip(written, read, strict=True):
                    assert mine.hidden is not None
                    text = own.model.decode(mine.token_ids)
                    items.append(Item(len(histories), author, text, len(mine.token_ids)))
                    views = (mine.hidden, theirs) if author == "target" else (theirs, mine.hidden)
                    for name, hidden in zip(("target", "draft"), views, strict=True):
                        features[name].append(_summary(hidden))
            histories.append(list(history))
        # The trace goes on with one of the samples, mostly the draft's.
        draft_goes_on = bool(history) and choice.random() < config.draft_share
        chosen = by_draft[0] if draft_goes_on else by_target[0]
        target_ids = chosen.token_ids
        draft_ids = chosen.token_ids
        if draft_goes_on:
            target_ids = pair.to_target(chosen.token_ids)
        else:
            draft_ids = pair.to_draft(chosen.token_ids)
        history.append((pair.draft if draft_goes_on else pair.target).decode(chosen.token_ids))
        n_written += len(target_ids)
        if chosen.ended in ("end_of_text", "think_end"):
            break
        target.append(target_ids)
        draft.append(draft_ids)
    stacked: dict[Author, Tensor] = {
        name: torch.stack(rows) if rows else torch.zeros(0, 2, 1, 1)
        for name, rows in features.items()
    }
    return Shard(problem, histories, items, stacked)


def _write(
    sequence: HFSequence,
    n: int,
    rule: StopRule,
    sampling: Sampling,
    key: tuple[int, str, int, str],
    hidden: bool,
) -> list[Written]:
    """``n`` next steps of one model; the sequence itself stays as it is."""
    seed, *rest = key
    device = sequence.model.device
    generators = [seeded(seed, *rest, index, device=device) for index in range(n)]
    return sequence.branch(n).write(rule, sampling=sampling, generators=generators, hidden=hidden)


def _pass_on(pair: Pair, author: str, ids: list[int]) -> list[int]:
    return pair.to_draft(ids) if author == "target" else pair.to_target(ids)


def _summary(hidden: Tensor) -> Tensor:
    """Mean and last token. Shapes: [n_layers, T, H] -> float16 [2, n_layers, H]."""
    hidden = hidden.float()
    return torch.stack([hidden.mean(1), hidden[:, -1]]).to("cpu", torch.float16)


def model_card(model: HFModel, layers: Sequence[int]) -> dict[str, object]:
    """What a probe's card says of its model."""
    return {
        "model": model.model.config._name_or_path,
        "hidden_size": model.hidden_size,
        "layers": [range(model.n_layers)[layer] for layer in layers],
    }
