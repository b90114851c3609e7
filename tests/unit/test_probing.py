"""Labels, probes and their files: known values in a hand-made world, refusals in one line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from models import tiny_model, tiny_pair
from safetensors.torch import load_file, save_file

from semanticspec.config import CollectConfig, GenerationConfig, ProbeConfig, ProbeTrainConfig
from semanticspec.equivalence import ExactJudge, NumericJudge, build_judge
from semanticspec.errors import UserError
from semanticspec.metrics.calibration import (
    auroc,
    expected_calibration_error,
    noise_floor,
    spearman_within,
)
from semanticspec.probing import Probe, load_probes
from semanticspec.probing.collect import Shard, collect
from semanticspec.probing.label import Labelled, label, leave_one_out
from semanticspec.probing.probe import fingerprint, pool, save_probe
from semanticspec.probing.train import inputs, split_by_problem, train_probe
from semanticspec.types import Problem

PLAIN = Problem("p", "a", "0")


def brute_force_auroc(scores: np.ndarray, positive: np.ndarray) -> float:
    """Every pair of a positive and a negative, ties counted half."""
    pairs = [(a, b) for a in scores[positive] for b in scores[~positive]]
    return sum(1.0 if a > b else 0.5 if a == b else 0.0 for a, b in pairs) / len(pairs)


def test_leave_one_out_in_a_world_of_three_classes() -> None:
    classes = [0, 0, 1, 0, 2]
    authors = ["target", "target", "target", "draft", "draft"]
    under_target = leave_one_out(classes, authors, "target")
    under_draft = leave_one_out(classes, authors, "draft")
    assert under_target == pytest.approx([1 / 2, 1 / 2, 0, 2 / 3, 0])
    assert under_draft == pytest.approx([1 / 2, 1 / 2, 0, 0, 0])


def test_judges() -> None:
    steps = ["So 3 + 4 = 7.", "so 3 + 4  = 7.", "7 = 4 + 3", "Hmm.", "hmm. "]
    assert ExactJudge().classes(PLAIN, [], steps) == [0, 0, 1, 2, 2]
    assert NumericJudge().classes(PLAIN, [], steps) == [0, 0, 0, 1, 1]
    with pytest.raises(UserError, match="choose one of exact, numeric"):
        build_judge("guess")


def test_noise_floor_is_what_a_perfect_probe_still_shows() -> None:
    generator = np.random.default_rng(0)
    p = generator.uniform(size=40_000)
    n = np.full(p.shape, 12)
    labels = generator.binomial(n, p) / n
    assert noise_floor(labels, n) == pytest.approx(np.mean((labels - p) ** 2), rel=0.03)


def test_calibration_numbers() -> None:
    generator = np.random.default_rng(1)
    p = generator.uniform(size=20_000)
    assert expected_calibration_error(p, p) == pytest.approx(0, abs=1e-9)
    assert expected_calibration_error(p, np.clip(p - 0.1, 0, 1)) == pytest.approx(0.095, abs=0.01)
    scores, positive = np.array([0.1, 0.4, 0.4, 0.8]), np.array([False, True, False, True])
    assert auroc(scores, positive) == brute_force_auroc(scores, positive) == 0.875
    # Perfect order inside each of two contexts whose levels are reversed.
    context = np.array([0, 0, 0, 1, 1, 1])
    labels, guesses = np.array([1, 2, 3, 7, 8, 9]) / 10, np.array([7, 8, 9, 1, 2, 3]) / 10
    assert spearman_within(guesses, labels, context) == pytest.approx(1)


def test_problems_never_straddle_a_split() -> None:
    problem = np.repeat(np.arange(50), 7)
    masks = split_by_problem(problem, seed=3)
    members = [set(problem[mask]) for mask in masks.values()]
    assert set.union(*members) == set(range(50))
    assert sum(map(len, members)) == 50


@pytest.mark.parametrize("pooling", ["mean", "last", "mean+last"])
def test_stored_features_are_what_decoding_pools(pooling: str) -> None:
    hidden = torch.randn(2, 5, 3)
    stored = torch.stack([hidden.mean(1), hidden[:, -1]])[None]
    torch.testing.assert_close(inputs(stored, pooling)[0], pool(hidden, pooling))  # type: ignore[arg-type]


def test_a_probe_learns_a_probability_that_features_tell() -> None:
    generator = np.random.default_rng(2)
    features = torch.randn(3_000, 2, 1, 4)
    p = torch.sigmoid(3 * features[:, 0, 0, 0]).numpy()
    n = np.full(3_000, 16)
    labels = generator.binomial(n, p) / n
    data = Labelled(
        features={"target": features, "draft": features},
        labels={"target": labels, "draft": labels},
        n={"target": n, "draft": n},
        by_draft=np.ones(3_000, bool),
        problem=np.arange(3_000) // 10,
        context=np.arange(3_000) // 5,
        n_tokens=n,
        wrong=np.full(3_000, -1),
    )
    config = ProbeTrainConfig(widths=[32], max_epochs=15, learning_rate=1e-2)
    masks = split_by_problem(data.problem, seed=0)
    probe = train_probe(data, "target", config, masks)
    with torch.no_grad():
        guess = probe(inputs(features, "mean")).sigmoid().numpy()[masks["test"]]
    truth = p[masks["test"]]
    assert np.mean((guess - truth) ** 2) < 0.1 * np.var(truth)


def saved(folder: Path) -> None:
    """Probes for the tiny pair."""
    pair = tiny_pair()
    for name, model in (("target", pair.target), ("draft", pair.draft)):
        card = {"model": name, "fingerprint": fingerprint(model), "layers": [0]}
        save_probe(Probe(16, (8,), "mean"), card, folder, name)


def test_probes_come_back_as_they_were_saved(tmp_path: Path) -> None:
    saved(tmp_path)
    pair = tiny_pair()
    probes = load_probes(ProbeConfig(str(tmp_path)), pair)
    assert pair.target.feature_layers == (0,)
    weights = load_file(tmp_path / "target.safetensors")
    for key, value in probes.target.state_dict().items():
        torch.testing.assert_close(value, weights[key])
    assert 0 <= probes.target.predict(torch.randn(1, 3, 16)) <= 1


def test_bad_probes_are_refused_in_one_line(tmp_path: Path) -> None:
    saved(tmp_path)
    config = ProbeConfig(str(tmp_path))
    other = tiny_pair()
    other.target.model.model.norm.weight.data.add_(1)
    with pytest.raises(UserError, match="not the target model in use"):
        load_probes(config, other)

    card = tmp_path / "target.json"
    edited = json.loads(card.read_text())
    card.write_text(json.dumps({**edited, "widths": [9]}))
    with pytest.raises(UserError, match="damaged") as caught:
        load_probes(config, tiny_pair())
    assert "\n" not in str(caught.value)

    card.write_text(json.dumps(edited))
    save_file({"mean": torch.zeros(16)}, tmp_path / "target.safetensors")
    with pytest.raises(UserError, match="not the weights"):
        load_probes(config, tiny_pair())

    (tmp_path / "target.safetensors").unlink()
    with pytest.raises(UserError, match=r"target.safetensors is missing"):
        load_probes(config, tiny_pair())


def test_collection_resumes_and_repeats_itself(tmp_path: Path) -> None:
    limits = GenerationConfig(max_new_tokens=30, temperature=1.0, max_step_tokens=6)
    config = CollectConfig(n_samples=3, context_rate=1.0)
    chosen = [Problem(f"p{i}", text, "0") for i, text in enumerate(["a b", "c d", "e f"])]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    collect(tiny_pair(), chosen, limits, config, whole, seed=0)
    collect(tiny_pair(), chosen[:1], limits, config, broken, seed=0)
    first = (broken / "00000.safetensors").stat().st_mtime_ns
    (broken / "00001.tmp").write_bytes(b"torn")
    collect(tiny_pair(), chosen, limits, config, broken, seed=0)
    assert (broken / "00000.safetensors").stat().st_mtime_ns == first
    for file in sorted(whole.glob("*.safetensors")):
        one, other = Shard.load(file), Shard.load(broken / file.name)
        assert one.items == other.items and one.histories == other.histories
        for name in ("target", "draft"):
            torch.testing.assert_close(one.features[name], other.features[name])
    data = label(whole, ExactJudge())
    assert len(data.labels["target"]) == data.features["target"].shape[0] > 0
    assert data.by_draft.mean() == 0.5


def test_features_of_a_step_do_not_depend_on_who_reads_it(tmp_path: Path) -> None:
    # The same model on both sides: writing a step and reading it give the same features.
    model = tiny_model(seed=4)
    pair = type(tiny_pair())("same", model, model)
    limits = GenerationConfig(max_new_tokens=20, temperature=1.0, max_step_tokens=5)
    collect(pair, [PLAIN], limits, CollectConfig(n_samples=2, context_rate=1.0), tmp_path, seed=0)
    shard = Shard.load(tmp_path / "00000.safetensors")
    torch.testing.assert_close(
        shard.features["target"], shard.features["draft"], atol=2e-3, rtol=2e-3
    )
