"""Measure the embedded pair and write its card: ``python -m semanticspec.proxies.card``."""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import time
from pathlib import Path
from typing import Any

import torch

from ..backends import HFModel, Pair, StopRule, load_pair
from ..backends.load import EMBEDDED
from ..config import ModelConfig, ModelSpec
from ..sampling import Sampling, seeded
from .accuracy import TEMPERATURE, free_running
from .train import TRAINING

CARD = EMBEDDED / "card.json"
N_COST_ROUNDS = 15


def embedded_pair() -> Pair:
    """The pair as ``model=proxy`` loads it."""
    specs = (ModelSpec(path=f"embedded:{name}", dtype="float32") for name in ("target", "draft"))
    return load_pair(ModelConfig("proxy", *specs))


def file_hashes(folder: Path) -> dict[str, str]:
    """sha256 of the files that make a model."""
    names = ("config.json", "model.safetensors", "tokenizer.json")
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}


@torch.inference_mode()
def token_acceptance(pair: Pair, texts: list[tuple[str, str]]) -> float:
    """How much the two models' next-token distributions overlap on the target's own text.

    The mean of sum(min(p, q)) = 1 - TV(p, q) over the written tokens: the chance that lossless
    speculation keeps a token.
    """
    rule, overlap, n = Sampling(TEMPERATURE), 0.0, 0
    for prompt, answer in texts:
        start = len(pair.target.encode(prompt))
        ids = torch.tensor([pair.target.encode(prompt + answer)])
        p, q = (
            rule.probabilities(model.model(input_ids=ids).logits[0, start - 1 : -1])
            for model in (pair.target, pair.draft)
        )
        overlap += float(torch.minimum(p, q).sum())
        n += len(p)
    return overlap / n


def cost_ratio(pair: Pair) -> dict[str, float]:
    """Milliseconds a token of both models, writing alone and alternating, and their ratio."""
    prompt = free_running(pair.draft.model, pair.draft.tokenizer, n=1, split="probe").texts[0][0]

    def ms_per_token(model: HFModel, n: int = 64) -> float:
        sequence = model.start_ids(model.encode(prompt))
        started = time.perf_counter()
        written = sequence.write(
            StopRule(n, steps=False), sampling=Sampling(TEMPERATURE), generator=seeded(0)
        )
        return 1_000 * (time.perf_counter() - started) / len(written.token_ids)

    rounds = [(ms_per_token(pair.target), ms_per_token(pair.draft)) for _ in range(N_COST_ROUNDS)]
    target, draft = (statistics.median(side) for side in zip(*rounds[2:], strict=True))
    return {
        "target_ms": round(target, 3),
        "draft_ms": round(draft, 3),
        "ratio": round(statistics.median(t / d for t, d in rounds[2:]), 2),
    }


def measure(n: int) -> dict[str, Any]:
    """Everything on the card that is not a fact of the training."""
    pair = embedded_pair()
    card: dict[str, Any] = {
        "temperature": TEMPERATURE,
        "n_held_out_problems": 4 * n,
        "cost_a_token": cost_ratio(pair),
    }
    for name, model in (("target", pair.target), ("draft", pair.draft)):
        scores = free_running(model.model, model.tokenizer, n=n, split="test", seed=7)
        card[name] = {
            "n_parameters": sum(p.numel() for p in model.model.parameters()),
            "training": json.loads((EMBEDDED / name / TRAINING).read_text(encoding="utf-8")),
            "accuracy": sum(scores.right.values()) / len(scores.right),
            "accuracy_by_benchmark": scores.right,
            "step_accuracy_by_benchmark": scores.right_steps,
            "sha256": file_hashes(EMBEDDED / name),
        }
        if name == "target":
            card["token_acceptance_on_target_text"] = token_acceptance(pair, scores.texts)
    return card


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=128, help="problems of each benchmark")
    card = measure(parser.parse_args().n)
    CARD.write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
