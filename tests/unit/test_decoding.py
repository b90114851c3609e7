"""Decoding methods on tiny random models: lossless where they must be, and honest in counting."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from models import tiny_model, tiny_pair
from scipy import stats

from semanticspec import decoding, sampling
from semanticspec.backends import HFModel, Pair
from semanticspec.config import (
    GenerationConfig,
    MethodConfig,
    RandomAcceptConfig,
    SemanticSpecConfig,
    SpecSamplingConfig,
)
from semanticspec.decoding import specsampling
from semanticspec.errors import UserError
from semanticspec.probing import Probe, Probes
from semanticspec.types import Author, Generation, Problem

LIMITS = GenerationConfig(max_new_tokens=40, temperature=0.8, max_step_tokens=9)
GREEDY = replace(LIMITS, temperature=0.0)
PROBLEM = Problem("p", "a b c", "0")


class ConstantProbe(Probe):
    """Says the same of every step."""

    def __init__(self, p: float) -> None:
        super().__init__(1, (), "mean")
        self.p = p

    def predict(self, hidden: torch.Tensor) -> float:
        assert hidden.dim() == 3
        return self.p


def probes(p_target: float, p_draft: float) -> Probes:
    return Probes(ConstantProbe(p_target), ConstantProbe(p_draft), {})


def generate_ids(model: HFModel, prompt: str, n: int) -> list[int]:
    """What transformers' own greedy generate writes."""
    ids = torch.tensor([model.tokenizer(model.prompt_text(prompt)).input_ids])
    out = model.model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=n, do_sample=False
    )
    return out[0, ids.shape[1] :].tolist()


def prompts() -> list[Problem]:
    letters = itertools.product("abcdef", repeat=2)
    return [Problem(f"p{i}", " ".join(pair), "0") for i, pair in enumerate(letters)]


@pytest.mark.parametrize("gamma", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("padding", [0, 7])
def test_greedy_specsampling_equals_generate(gamma: int, padding: int) -> None:
    pair = tiny_pair(padding=padding)
    method = decoding.build(SpecSamplingConfig(gamma=gamma), pair, None, GREEDY)
    for problem in prompts()[:6]:
        out = method.generate(problem, seed=0)
        assert list(out.token_ids) == generate_ids(pair.target, problem.prompt, 40)


def test_greedy_semanticspec_that_keeps_nothing_equals_generate() -> None:
    pair = tiny_pair()
    config = SemanticSpecConfig(tau=float("inf"))
    method = decoding.build(config, pair, probes(0.9, 0.1), GREEDY, debug=True)
    for problem in prompts()[:6]:
        out = method.generate(problem, seed=0)
        assert list(out.token_ids) == generate_ids(pair.target, problem.prompt, 40)
        assert out.counts.n_steps_accepted == 0


def test_greedy_semanticspec_that_keeps_all_follows_the_draft() -> None:
    pair = tiny_pair()
    config = SemanticSpecConfig(target_first_steps=0, answer_by="draft")
    method = decoding.build(config, pair, probes(0.9, 0.1), GREEDY, debug=True)
    out = method.generate(PROBLEM, seed=0)
    assert list(out.token_ids) == generate_ids(pair.draft, PROBLEM.prompt, 40)
    assert out.counts.n_draft_tokens_kept == len(out.token_ids)


# --- the sampled distribution, against exact enumeration -----------------------------------------

SMALL = ["a", "b", "c"]
LENGTH = 3
N_DRAWS = 1_500


def small_pair() -> Pair:
    return Pair(
        "small",
        tiny_model(seed=11, words=SMALL, layers=1),
        tiny_model(seed=12, words=SMALL, layers=1),
    )


def enumerate_sequences(pair: Pair, limits: GenerationConfig) -> dict[tuple[int, ...], float]:
    """The exact probability of every text of at most LENGTH tokens under the target."""
    model, end = pair.target, pair.target.tokenizer.eos_token_id
    rule = sampling.Sampling(limits.temperature, limits.top_p, limits.top_k)
    start = model.tokenizer(model.prompt_text("a")).input_ids
    result: dict[tuple[int, ...], float] = {}
    frontier: dict[tuple[int, ...], float] = {(): 1.0}
    for _ in range(LENGTH):
        following: dict[tuple[int, ...], float] = {}
        for text, mass in frontier.items():
            with torch.inference_mode():
                logits = model.model(torch.tensor([[*start, *text]])).logits[0, -1]
            for token, p in enumerate(rule.probabilities(logits).tolist()):
                if p > 0:
                    ended = token == end
                    (result if ended else following)[(*text, token)] = mass * p
        frontier = following
    return result | frontier


def p_value(pair: Pair, limits: GenerationConfig, gamma: int) -> float:
    """Chi-square of sampled texts against the enumeration; rare texts are pooled."""
    exact = enumerate_sequences(pair, limits)
    assert sum(exact.values()) == pytest.approx(1, abs=1e-4)
    method = decoding.build(SpecSamplingConfig(gamma=gamma), pair, None, limits)
    problem = Problem("p", "a", "0")
    seen = Counter(method.generate(problem, seed).token_ids for seed in range(N_DRAWS))
    if not set(seen) <= set(exact):
        return 0.0  # a text was written that the target never would
    common = [text for text, p in exact.items() if p * N_DRAWS >= 5]
    observed = [seen[text] for text in common]
    expected = [exact[text] * N_DRAWS for text in common]
    rest = N_DRAWS - sum(expected)
    if rest > 1e-6:
        observed.append(N_DRAWS - sum(observed))
        expected.append(rest)
    scale = sum(observed) / sum(expected)
    return float(stats.chisquare(observed, np.array(expected) * scale).pvalue)


@pytest.mark.parametrize(
    ("gamma", "top_p", "top_k"), [(2, 1.0, 0), (3, 0.9, 4)], ids=["plain", "top-p and top-k"]
)
def test_sampled_texts_are_distributed_as_the_targets(gamma: int, top_p: float, top_k: int) -> None:
    limits = replace(LIMITS, max_new_tokens=LENGTH, top_p=top_p, top_k=top_k)
    assert p_value(small_pair(), limits, gamma) > 1e-3


def test_the_distribution_test_notices_a_missing_residual(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "residual", lambda p, q: p)
    limits = replace(LIMITS, max_new_tokens=LENGTH)
    assert p_value(small_pair(), limits, 2) < 1e-3


def test_the_distribution_test_notices_a_lenient_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    def lenient(p: torch.Tensor, q: torch.Tensor, proposed: list[int], g: torch.Generator):
        return sampling.accept_tokens(p.clamp_min(0.3), q, proposed, g)

    monkeypatch.setattr(specsampling, "accept_tokens", lenient)
    limits = replace(LIMITS, max_new_tokens=LENGTH)
    assert p_value(small_pair(), limits, 2) < 1e-3


# --- caches, counts, seeds -----------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    rate=st.sampled_from([0.0, 0.3, 0.7, 1.0]),
    step_tokens=st.integers(1, 9),
    unlike=st.booleans(),
    answer_by=st.sampled_from(["target", "draft"]),
    first=st.integers(0, 2),
)
def test_both_caches_hold_the_accepted_text_whatever_happens(
    seed: int, rate: float, step_tokens: int, unlike: bool, answer_by: Author, first: int
) -> None:
    # debug=True compares both caches with fresh passes after every step.
    words = ["f", "\n\n", "b", " ", "a", "\n", "."] if unlike else None
    pair = tiny_pair(draft_words=words)
    assert pair.same_vocabulary is not unlike
    config = RandomAcceptConfig(rate=rate, answer_by=answer_by, target_first_steps=first)
    limits = replace(LIMITS, max_step_tokens=step_tokens, temperature=1.0)
    out = decoding.build(config, pair, None, limits, debug=True).generate(PROBLEM, seed)
    assert len(out.token_ids) == out.counts.n_tokens <= limits.max_new_tokens
    assert sum(step.n_tokens for step in out.steps) == out.counts.n_tokens
    assert out.counts.n_steps_accepted <= out.counts.n_steps_proposed


@pytest.mark.parametrize("name", ["autoregressive", "draft_only", "specsampling", "semanticspec"])
def test_seeds(name: str) -> None:
    configs: dict[str, MethodConfig] = {
        "specsampling": SpecSamplingConfig(),
        "semanticspec": SemanticSpecConfig(tau=0),
    }
    method = decoding.build(
        configs.get(name, MethodConfig(name)), tiny_pair(), probes(0.4, 0.5), LIMITS
    )
    first = method.generate(PROBLEM, 0)
    other_problem = method.generate(replace(PROBLEM, id="q"), 0)
    assert method.generate(PROBLEM, 0).token_ids == first.token_ids
    assert method.generate(PROBLEM, 1).token_ids != first.token_ids
    assert other_problem.token_ids != first.token_ids


@pytest.mark.parametrize("name", ["autoregressive", "specsampling", "semanticspec"])
def test_phases_add_up_to_the_wall_time(name: str) -> None:
    configs: dict[str, MethodConfig] = {
        "specsampling": SpecSamplingConfig(),
        "semanticspec": SemanticSpecConfig(),
    }
    out = decoding.build(
        configs.get(name, MethodConfig(name)), tiny_pair(), probes(0.5, 0.5), LIMITS
    ).generate(PROBLEM, 0)
    assert sum(out.phase_s.values()) == pytest.approx(out.wall_s, rel=0.02)
    assert out.phase_s["other"] >= 0
    used = {"autoregressive": "target", "specsampling": "draft", "semanticspec": "probe"}[name]
    assert out.phase_s[used] > 0


def test_tokens_after_the_end_of_text_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = tiny_pair()
    end, x, y = pair.target.tokenizer.eos_token_id, 1, 2
    one_hot = torch.eye(pair.target.vocab_size)

    def propose(self: specsampling.SpecSampling, run: object, n: int):
        run.draft.append([x, end, y])  # type: ignore[attr-defined]
        return [x, end, y], one_hot[[x, end, y]]

    monkeypatch.setattr(specsampling.SpecSampling, "_propose", propose)
    monkeypatch.setattr(specsampling, "accept_tokens", lambda p, q, proposed, g: (3, y))
    out = decoding.build(SpecSamplingConfig(), pair, None, LIMITS).generate(PROBLEM, 0)
    assert out.token_ids == (x, end)
    assert out.counts.n_tokens == 2 and out.counts.n_draft_tokens_kept == 2
    assert out.stop_reason == "end_of_text"


def test_counts_do_not_leak_from_problem_to_problem() -> None:
    method = decoding.build(SpecSamplingConfig(gamma=3), tiny_pair(), None, LIMITS)

    def counts(out: Generation) -> object:
        return out.counts

    first, second = prompts()[:2]
    one_way = [counts(method.generate(p, 0)) for p in (first, second)]
    other_way = [counts(method.generate(p, 0)) for p in (second, first)]
    assert one_way == other_way[::-1]


def test_specsampling_refuses_unlike_vocabularies() -> None:
    with pytest.raises(UserError, match="vocabularies differ"):
        decoding.build(SpecSamplingConfig(), tiny_pair(draft_words=["x", "y"]), None, LIMITS)


def test_acceptance_follows_the_ratio() -> None:
    # r = 0.4 / 0.5: four of five steps are kept in the long run; below tau none is.
    pair = tiny_pair()
    limits = replace(LIMITS, max_step_tokens=1)
    config = SemanticSpecConfig(tau=0.5, target_first_steps=0)
    method = decoding.build(config, pair, probes(0.4, 0.5), limits)
    n = accepted = seed = 0
    while n < 200:
        counts = method.generate(PROBLEM, seed).counts
        n, accepted = n + counts.n_steps_proposed, accepted + counts.n_steps_accepted
        seed += 1
    assert stats.binomtest(accepted, n, 0.8).pvalue > 1e-3
    strict = decoding.build(SemanticSpecConfig(tau=0.9), pair, probes(0.4, 0.5), limits)
    assert strict.generate(PROBLEM, 0).counts.n_steps_accepted == 0


def test_rejected_steps_are_on_record() -> None:
    method = decoding.build(
        SemanticSpecConfig(tau=0.9), tiny_pair(), probes(0.4, 0.5), LIMITS, debug=True
    )
    steps = method.generate(PROBLEM, 0).steps
    judged = [step for step in steps if step.accepted is not None]
    assert judged
    for step in judged:
        assert step.author == "target" and step.accepted is False
        assert (step.p_target, step.p_draft) == (0.4, 0.5)
        assert step.rejected_text is not None and step.n_rejected_tokens > 0
