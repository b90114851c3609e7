"""The sampling rules against transformers' own processors and hand-worked cases."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from transformers import (
    LogitsProcessorList,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from semanticspec.sampling import Sampling, accept_tokens, draw, residual, seeded


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    temperature=st.floats(0.1, 2.0),
    top_p=st.floats(0.05, 1.0),
    top_k=st.integers(0, 12),
)
def test_probabilities_equal_transformers(
    seed: int, temperature: float, top_p: float, top_k: int
) -> None:
    logits = torch.randn(3, 10, generator=torch.Generator().manual_seed(seed)) * 3
    warpers = LogitsProcessorList([TemperatureLogitsWarper(temperature)])
    if top_k:
        warpers.append(TopKLogitsWarper(top_k))
    if top_p < 1:
        warpers.append(TopPLogitsWarper(top_p))
    no_text = torch.zeros(3, 1, dtype=torch.long)
    wanted = warpers(no_text, logits.clone()).softmax(-1)  # pyright: ignore[reportArgumentType]
    ours = Sampling(temperature, top_p, top_k).probabilities(logits)
    # Where the cumulative sum meets top_p within rounding, either side of the cut is right.
    ordered = (logits / temperature).softmax(-1).sort(-1, descending=True).values.cumsum(-1)
    if float((ordered - top_p).abs().min()) > 1e-4:
        torch.testing.assert_close(ours, wanted, atol=1e-5, rtol=1e-4)


def test_low_temperature_reaches_the_drafts_distribution() -> None:
    logits = torch.tensor([1.0, 1.1, 0.3])
    torch.testing.assert_close(
        Sampling(temperature=0.1).probabilities(logits), (logits / 0.1).softmax(-1)
    )


def test_greedy_takes_only_the_argmax_even_where_the_draft_is_likely_to_be_kept() -> None:
    # min(1, p/q) with the raw distributions would often keep token 0.
    greedy = Sampling(temperature=0)
    p = greedy.probabilities(torch.tensor([[0.3, 0.5, 0.2]] * 2).log())
    q = greedy.probabilities(torch.tensor([[0.9, 0.05, 0.05]]).log())
    for seed in range(20):
        assert accept_tokens(p, q, [0], seeded(seed)) == (0, 1)


def test_draw_never_returns_an_index_of_weight_zero_and_follows_the_weights() -> None:
    weights = torch.tensor([0.0, 2.0, 0.0, 1.0, 1.0, 0.0])
    generator = seeded(0, "draw")
    counts = np.bincount([draw(weights, generator) for _ in range(8_000)], minlength=6)
    assert counts[[0, 2, 5]].sum() == 0
    assert stats.chisquare(counts[[1, 3, 4]], np.array([4_000, 2_000, 2_000])).pvalue > 1e-3


def test_residual_of_equal_distributions_is_the_targets() -> None:
    p = torch.tensor([0.25, 0.75])
    torch.testing.assert_close(residual(p, p), p)


def test_streams_depend_on_every_part_of_their_key() -> None:
    first = torch.rand(4, generator=seeded(0, "p1", 0, "target"))
    assert torch.equal(first, torch.rand(4, generator=seeded(0, "p1", 0, "target")))
    for other in [(1, "p1", 0, "target"), (0, "p2", 0, "target"), (0, "p1", 0, "draft")]:
        assert not torch.equal(first, torch.rand(4, generator=seeded(*other)))


@pytest.mark.parametrize("p_first", [0.1, 0.6])
def test_one_token_is_distributed_as_the_targets(p_first: float) -> None:
    p = torch.tensor([[p_first, 0.9 - p_first, 0.1]] * 2)
    q = torch.tensor([[0.5, 0.1, 0.4]])
    generator = seeded(3, "accept")
    counts = np.zeros(3)
    for _ in range(6_000):
        proposed = draw(q[0], generator)
        kept, token = accept_tokens(p, q, [proposed], generator)
        counts[proposed if kept else token] += 1
    wanted = p[0].double().numpy()
    assert stats.chisquare(counts, wanted / wanted.sum() * counts.sum()).pvalue > 1e-3
