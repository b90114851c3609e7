"""Is the engine fast? ``python -m semanticspec.bench [KEY=VALUE ...]``, or ``make bench``.

Everything compared is timed in one process, in turns, after a warm-up; ratios are medians over
problems with a 95 % bootstrap interval. Greedy decoding in float32 makes both sides write the same
tokens, so that nothing but the time differs. Exits with 1 when autoregressive decoding is slower
than transformers' ``generate``: no speedup may be measured against a weak baseline.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch
from scipy import stats
from tqdm import tqdm

from . import benchmarks, decoding
from .backends import HFModel, Need, Pair, StopRule, load_pair
from .compose import compose
from .config import Config, MethodConfig, SpecSamplingConfig
from .errors import UserError
from .sampling import Sampling, seeded
from .types import Problem

N_PROBLEMS = 20
CONTEXT_LENGTHS = (64, 256, 1_024, 2_048)
STEP_LENGTH = 16


@dataclass(frozen=True)
class Timed:
    """Seconds and tokens of one answer."""

    seconds: float
    n_tokens: int


def main(overrides: list[str]) -> int:
    logging.getLogger("transformers").setLevel(logging.ERROR)
    try:
        config = compose(["limit=20", *overrides])
        if config.threads:
            torch.set_num_threads(config.threads)
        pair = load_pair(config.model)
        problems = benchmarks.load(next(iter(config.benchmarks.values())), limit=config.limit)
    except UserError as error:
        print(f"semanticspec.bench: {error}", file=sys.stderr)
        return 2
    rows = [
        compare("autoregressive", "generate", *plain(pair, config), problems),
        compare("draft_only", "generate (draft)", *plain_draft(pair, config), problems),
    ]
    if pair.same_vocabulary:
        rows += [
            compare("specsampling", "assisted generation", *speculative(pair, config), problems),
            compare("specsampling", "autoregressive", *lossless(pair, config), problems),
        ]
    print(pd.DataFrame(rows).to_markdown(index=False, floatfmt=".2f"))
    print()
    print(pd.DataFrame(step_costs(pair)).to_markdown(index=False, floatfmt=".2f"))
    behind = float(rows[0]["high"]) < 1
    if behind:
        print("autoregressive decoding is slower than generate", file=sys.stderr)
    return int(behind)


Answer = Callable[[Problem], Timed]


def compare(
    name: str, peer: str, ours: Answer, theirs: Answer, problems: list[Problem]
) -> dict[str, str | float]:
    """Time two ways of answering in turns; ``ratio`` is the peer's ms a token over ours."""
    for answer in (ours, theirs):  # warm-up
        answer(problems[0])
    pairs = []
    for index, problem in enumerate(tqdm(problems, desc=f"{name} / {peer}", leave=False)):
        order = (ours, theirs) if index % 2 else (theirs, ours)
        done = {answer: answer(problem) for answer in order}
        pairs.append([1_000 * done[a].seconds / done[a].n_tokens for a in (ours, theirs)])
    mine, other = np.array(pairs).T
    ratio = other / mine
    interval = stats.bootstrap(
        (ratio,), np.median, method="percentile", rng=np.random.default_rng(0)
    ).confidence_interval
    return {
        "ours": name,
        "peer": peer,
        "ms a token": float(np.median(mine)),
        "peer's": float(np.median(other)),
        "ratio": float(np.median(ratio)),
        "low": float(interval.low),
        "high": float(interval.high),
        "n": len(problems),
    }


def _by_method(pair: Pair, config: Config, method: MethodConfig) -> Answer:
    limits = replace(config.generation, temperature=0.0)
    built = decoding.build(method, pair, None, limits)

    def answer(problem: Problem) -> Timed:
        out = built.generate(problem, config.seed)
        return Timed(out.wall_s, out.counts.n_tokens)

    return answer


def _by_generate(model: HFModel, config: Config, assistant: HFModel | None = None) -> Answer:
    extra = {} if assistant is None else {"assistant_model": assistant.model}

    def answer(problem: Problem) -> Timed:
        text = model.prompt_text(problem.prompt)
        started = time.perf_counter()
        ids = model.tokenizer(text, add_special_tokens=False, return_tensors="pt").to(model.device)
        out = model.model.generate(
            **ids, do_sample=False, max_new_tokens=config.generation.max_new_tokens, **extra
        )
        n_tokens = out.shape[1] - ids.input_ids.shape[1]
        return Timed(time.perf_counter() - started, n_tokens)

    return answer


def plain(pair: Pair, config: Config) -> tuple[Answer, Answer]:
    ours = _by_method(pair, config, MethodConfig("autoregressive"))
    return ours, _by_generate(pair.target, config)


def plain_draft(pair: Pair, config: Config) -> tuple[Answer, Answer]:
    ours = _by_method(pair, config, MethodConfig("draft_only"))
    return ours, _by_generate(pair.draft, config)


def speculative(pair: Pair, config: Config) -> tuple[Answer, Answer]:
    ours = _by_method(pair, config, SpecSamplingConfig())
    return ours, _by_generate(pair.target, config, pair.draft)


def lossless(pair: Pair, config: Config) -> tuple[Answer, Answer]:
    ours = _by_method(pair, config, SpecSamplingConfig())
    return ours, _by_method(pair, config, MethodConfig("autoregressive"))


def step_costs(pair: Pair) -> list[dict[str, float]]:
    """Milliseconds of one step at growing context lengths: to draft, verify and drop it."""
    rows = []
    for length in CONTEXT_LENGTHS:
        context = [index % 50 + 10 for index in range(length)]
        target, draft = pair.target.start_ids(context), pair.draft.start_ids(context)
        drafts, verifies, crops = [], [], []
        for _ in range(9):
            started = time.perf_counter()
            written = draft.write(
                StopRule(STEP_LENGTH, steps=False), sampling=Sampling(1.0), generator=seeded(0)
            )
            drafted = time.perf_counter()
            target.forward(written.token_ids, need=Need.HIDDEN)
            verified = time.perf_counter()
            target.crop(length)
            draft.crop(length)
            crops.append(time.perf_counter() - verified)
            drafts.append((drafted - started) / len(written.token_ids))
            verifies.append(verified - drafted)
        median = {name: 1_000 * float(np.median(values[2:])) for name, values in
                  (("draft ms a token", drafts), ("verify ms a step", verifies),
                   ("drop ms", crops))}  # fmt: skip
        rows.append({"context tokens": length, **median})
    return rows


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
