"""The embedded pair itself: its card, its probes, and the main job, for real."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from scipy import stats

from semanticspec import decoding, records
from semanticspec.backends import Pair
from semanticspec.benchmarks import load
from semanticspec.compose import ROOT, compose
from semanticspec.config import GenerationConfig, MethodConfig, SpecSamplingConfig
from semanticspec.grading import grade
from semanticspec.proxies.accuracy import free_running
from semanticspec.proxies.card import CARD, embedded_pair, file_hashes, token_acceptance
from semanticspec.proxies.problems import BENCHMARKS

N = 16
GREEDY = GenerationConfig(max_new_tokens=400, temperature=0.0)


@pytest.fixture(scope="module")
def pair() -> Pair:
    torch.set_num_threads(2)
    return embedded_pair()


@pytest.fixture(scope="module")
def card() -> dict:
    return json.loads(CARD.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["target", "draft"])
def test_the_card_is_about_these_files(card: dict, name: str) -> None:
    assert card[name]["sha256"] == file_hashes(CARD.parent / name)


def test_the_pair_is_small_enough_to_commit() -> None:
    weights = CARD.parent.glob("*/model.safetensors")
    assert sum(file.stat().st_size for file in weights) <= 25_000_000


def test_a_sample_reproduces_the_cards_accuracy(pair: Pair, card: dict) -> None:
    # Another sample than the card's: the counts must be likely under the shares that it states.
    for name, model in (("target", pair.target), ("draft", pair.draft)):
        scores = free_running(model.model, model.tokenizer, n=N, split="test", seed=99)
        n_right = round(N * sum(scores.right.values()))
        test = stats.binomtest(n_right, N * len(BENCHMARKS), card[name]["accuracy"])
        assert test.pvalue > 1e-3, f"{name}: {n_right} of {N * len(BENCHMARKS)} right"
        if name == "target":
            overlap = token_acceptance(pair, scores.texts)
            assert overlap == pytest.approx(card["token_acceptance_on_target_text"], abs=0.05)


def test_greedy_methods_equal_generate_token_by_token(pair: Pair) -> None:
    plain = decoding.build(MethodConfig("autoregressive"), pair, None, GREEDY)
    speculative = decoding.build(SpecSamplingConfig(gamma=4), pair, None, GREEDY)
    for benchmark in BENCHMARKS:
        for problem in load(compose([f"benchmark={benchmark}"]).benchmark, limit=2):
            ids = pair.target.tokenizer(
                pair.target.prompt_text(problem.prompt), return_tensors="pt"
            ).input_ids
            wanted = pair.target.model.generate(ids, do_sample=False, max_new_tokens=400)
            for method in (plain, speculative):
                out = method.generate(problem, 0)
                assert list(out.token_ids) == wanted[0, ids.shape[1] :].tolist()


def test_gold_grades_gold_on_every_synthetic_benchmark() -> None:
    for benchmark in BENCHMARKS:
        for problem in load(compose([f"benchmark={benchmark}"]).benchmark, limit=40):
            text = f"</think>\\boxed{{{problem.gold}}}"
            assert grade(text, problem.gold, problem.kind).correct


def test_the_probes_tell_wrong_steps_from_right_ones() -> None:
    card = json.loads((ROOT / "probes" / "proxy" / "target.json").read_text(encoding="utf-8"))
    held_out = card["held_out"]["draft_written"]
    assert held_out["n_items"] > 1_000
    # Sampled shares themselves reach no more than auroc_wrong_of_labels: a target that is often
    # wrong finds wrong steps likely.
    assert held_out["auroc_wrong"] >= 0.9 * held_out["auroc_wrong_of_labels"] > 0.75


def launch(folder: Path, limit: int) -> list[str]:
    return [
        sys.executable, str(ROOT / "run.py"), "method=semanticspec", "benchmark=chain_short",
        f"limit={limit}", f"results_dir={folder}", "threads=1", "debug=true",
    ]  # fmt: skip


def test_killed_in_the_middle_it_goes_on(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    process = subprocess.Popen(
        launch(tmp_path, 6), env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        files = list(tmp_path.glob("*/samples.jsonl"))
        if files and files[0].read_text(encoding="utf-8").count("\n") >= 2:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    (file,) = tmp_path.glob("*/samples.jsonl")
    before = file.read_text(encoding="utf-8").splitlines(keepends=True)
    whole = [line for line in before if line.endswith("\n")]
    assert len(whole) >= 2
    file.write_text("".join(whole) + '{"problem_id": "torn', encoding="utf-8")
    done = subprocess.run(
        launch(tmp_path, 6),
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    after = file.read_text(encoding="utf-8").splitlines(keepends=True)
    assert after[: len(whole)] == whole
    frame = records.load(tmp_path)
    assert len(frame) == frame["problem_id"].nunique() == 6
    assert list(frame["error"].isna()) == [True] * 6
