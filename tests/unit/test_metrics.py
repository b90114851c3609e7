"""Ratios against numbers worked by hand, and intervals against theory."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_runs import make_run, manifest, sample

from semanticspec import records
from semanticspec.metrics.calibration import auroc, expected_calibration_error, noise_floor
from semanticspec.metrics.summary import ms_by_phase, pair, step_theory, summarise
from semanticspec.metrics.uncertainty import mean, ratio_of_sums, share
from semanticspec.types import SampleRecord, Step


@pytest.fixture
def loaded(tmp_path: Path):
    """Samples as ``records.load`` gives them, each call a run of its own."""

    def load(*samples: SampleRecord, process: str = "launch-1") -> pd.DataFrame:
        results = tmp_path / str(len(list(tmp_path.iterdir())))
        return records.load(make_run(results, manifest(process=process), samples))

    return load


def test_tokens_a_second_is_a_ratio_of_sums_not_a_mean_of_ratios(loaded) -> None:
    samples = loaded(sample("a", n_tokens=100, wall_s=1.0), sample("b", n_tokens=10, wall_s=0.5))
    summary = summarise(samples, None)
    assert summary.tokens_per_second == pytest.approx(73.3, abs=0.04)  # not (100 + 20) / 2
    assert summary.ms_per_token == pytest.approx(1_500 / 110)
    assert summary.seconds_per_problem.value == pytest.approx(0.75)


def test_a_slower_method_has_a_speedup_below_1(loaded) -> None:
    baseline = loaded(sample("a", wall_s=1.0), sample("b", wall_s=3.0))
    slower = loaded(sample("a", wall_s=4.0, n_tokens=80), sample("b", wall_s=6.0, n_tokens=140))
    summary = summarise(slower, baseline)
    assert summary.speedup is not None and summary.length_ratio is not None
    assert summary.speedup.value == pytest.approx(4 / 10)
    assert summary.length_ratio.value == pytest.approx(220 / 200)


def test_speedup_is_over_the_same_problems_and_seeds(loaded) -> None:
    baseline = loaded(sample("a", wall_s=2.0), sample("b", wall_s=90.0), sample("a", seed=1))
    method = loaded(sample("a", wall_s=1.0), sample("c", wall_s=0.1), sample("b", seed=1))
    summary = summarise(method, baseline)
    assert (summary.n, summary.n_paired) == (3, 1)
    assert summary.speedup is not None
    assert summary.speedup.value == pytest.approx(2.0)
    assert math.isnan(summary.speedup.low)  # one problem tells nothing of others
    assert summarise(method, None).speedup is None
    assert summarise(method, loaded(sample("z"))).length_ratio is None


def test_a_failed_sample_is_a_wrong_answer_and_has_no_time(loaded) -> None:
    failed = sample("b", correct=False, wall_s=0.0, n_tokens=0, error="RuntimeError: no luck")
    good = [sample("a", wall_s=1.0), sample("c", wall_s=3.0, truncated=True, correct=False)]
    summary = summarise(loaded(*good, failed), loaded(*good, sample("b", wall_s=50.0)))
    assert (summary.n, summary.n_failed, summary.n_paired) == (3, 1, 2)
    assert summary.pass_at_1.value == pytest.approx(1 / 3)
    assert summary.seconds_per_problem.value == pytest.approx(2.0)
    assert summary.truncation_rate == pytest.approx(1 / 2)
    assert summary.speedup is not None
    assert summary.speedup.value == pytest.approx(1.0)


def test_nothing_but_failures_is_no_crash(loaded) -> None:
    failed = loaded(sample("a", correct=False, wall_s=0.0, n_tokens=0, error="Error: x"))
    summary = summarise(failed, failed)
    assert (summary.n_failed, summary.pass_at_1.value) == (1, 0.0)
    assert summary.speedup is None
    assert math.isnan(summary.ms_per_token)
    assert step_theory(failed, failed) is None


def test_rates_are_of_sums_and_none_where_nothing_was_proposed(loaded) -> None:
    samples = loaded(
        sample("a", n_tokens=8, n_tokens_proposed=8, n_tokens_accepted=6, n_target_passes=2),
        sample("b", n_tokens=2, n_tokens_proposed=4, n_tokens_accepted=0, n_target_passes=2),
    )
    summary = summarise(samples, None)
    assert summary.token_acceptance_rate == pytest.approx(6 / 12)
    assert summary.block_efficiency == pytest.approx(10 / 4)
    assert summary.step_acceptance_rate is None
    assert summary.draft_share == 0.0


def test_pairs_timed_in_different_launches_are_counted(loaded) -> None:
    method = loaded(sample("a"), sample("b"))
    assert summarise(method, loaded(sample("a"), sample("b"))).n_apart == 0
    assert summarise(method, loaded(sample("a"), process="another")).n_apart == 1


def test_phases_add_up_to_the_time_of_a_token(loaded) -> None:
    samples = loaded(
        sample("a", wall_s=1.0, phase_s={"draft": 0.25}),
        sample("b", wall_s=2.0, phase_s={"verify": 1.0, "other": 0.5}),
    )
    phases = ms_by_phase(samples)
    assert phases["draft"] == pytest.approx(1.25)
    assert sum(phases.values()) == pytest.approx(summarise(samples, None).ms_per_token)


def test_what_limits_step_level_speculation_worked_by_hand(loaded) -> None:
    # The target takes 10 ms a token. Three steps of 10, 10 and 20 tokens are proposed, the last is
    # dropped and written again; the draft takes 2 ms a token, reading and judging 30 ms a step.
    steps = (
        Step("target", "first", 10),
        Step("draft", "kept", 10, True),
        Step("draft", "kept", 10, True),
        Step("target", "again", 20, False, n_rejected_tokens=20),
    )
    phases = {"draft": 0.08, "verify": 0.06, "probe": 0.03}
    method = loaded(
        sample(
            "a",
            wall_s=0.17 + 0.3,
            n_tokens=50,
            phase_s=phases,
            steps=steps,
            n_steps_proposed=3,
            n_steps_accepted=2,
            n_draft_tokens_kept=20,
        )
    )
    theory = step_theory(method, loaded(sample("a", wall_s=1.0, n_tokens=100)))
    assert theory is not None
    assert theory.c == pytest.approx(0.2)
    assert theory.v == pytest.approx(3.0)
    assert theory.step_length == pytest.approx(40 / 3)
    assert theory.a == pytest.approx(2 / 3)
    assert theory.speedup == pytest.approx(1 / (0.2 + 3 / (40 / 3) + 1 / 3))
    assert theory.measured == pytest.approx(10 / (470 / 50))
    assert step_theory(method, None) is None


def test_failed_samples_are_in_no_pair(loaded) -> None:
    failed = sample("a", error="Error: x")
    assert len(pair(loaded(failed, sample("b")), loaded(sample("a"), sample("b")))) == 1
    assert len(pair(loaded(sample("a"), sample("b")), loaded(failed, sample("b")))) == 1


def test_a_paired_interval_is_narrower_and_about_right() -> None:
    rng = np.random.default_rng(0)
    problems = np.arange(200)
    length = rng.gamma(2.0, 1.0, 200)  # what makes a problem long makes it long for both
    slow, fast = length * rng.normal(2.0, 0.1, 200), length * rng.normal(1.0, 0.05, 200)
    paired = ratio_of_sums(slow, fast, problems)
    # Each side drawn by itself:
    draws = rng.integers(0, 200, (2, 2_000, 200))
    ratios = slow[draws[0]].sum(1) / fast[draws[1]].sum(1)
    unpaired = np.quantile(ratios, [0.025, 0.975])
    assert paired.low < 2.0 < paired.high
    assert (unpaired[1] - unpaired[0]) > 5 * (paired.high - paired.low)
    # The delta method's standard error of a ratio.
    error = np.std(slow - paired.value * fast, ddof=1) / np.sqrt(200) / fast.mean()
    assert paired.high - paired.low == pytest.approx(2 * 1.96 * error, rel=0.1)


def test_samples_of_one_problem_do_not_count_as_independent() -> None:
    right = np.repeat(np.arange(40) % 2, 25).astype(float)
    problems = np.repeat(np.arange(40), 25)
    clustered, naive = share(right, problems), share(right, np.arange(1_000))
    assert clustered.value == naive.value == 0.5
    ratio = (clustered.high - clustered.low) / (naive.high - naive.low)
    assert ratio == pytest.approx(5, rel=0.15)  # sqrt(25)


def test_one_sample_a_problem_has_wilsons_interval() -> None:
    eight = share(np.array([1.0] * 8 + [0.0] * 2), np.arange(10))
    assert (eight.low, eight.high) == (
        pytest.approx(0.4902, abs=1e-4),
        pytest.approx(0.9433, abs=1e-4),
    )
    all_right = share(np.ones(10), np.arange(10))
    assert (all_right.low, all_right.high) == (pytest.approx(0.7225, abs=1e-4), pytest.approx(1.0))


def test_intervals_are_the_same_every_time() -> None:
    values, problems = np.arange(30.0), np.arange(30)
    assert mean(values, problems) == mean(values, problems)


def test_probes_scores_worked_by_hand() -> None:
    scores = np.array([0.9, 0.8, 0.8, 0.1])
    assert auroc(scores, np.array([True, True, False, False])) == pytest.approx(3.5 / 4)
    labels, n = np.array([0.5, 1.0]), np.array([5, 5])
    assert noise_floor(labels, n) == pytest.approx(0.25 / 4 / 2)
    even = np.array([0.2, 0.2, 0.8, 0.8])
    assert expected_calibration_error(
        even, np.array([0.1, 0.3, 0.7, 0.9]), n_bins=2
    ) == pytest.approx(0.0)
    assert expected_calibration_error(even, even + 0.1, n_bins=2) == pytest.approx(0.1)
