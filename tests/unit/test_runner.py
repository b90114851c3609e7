"""The runner with scripted methods: order, records, failures, interruptions, resuming."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from models import tiny_pair

from semanticspec import decoding, records, runner
from semanticspec.backends import Pair
from semanticspec.compose import compose
from semanticspec.config import Config, GenerationConfig, MethodConfig
from semanticspec.types import PHASES, Counts, Generation, Problem

NAMES = ("autoregressive", "draft_only", "specsampling")


def answer(problem: Problem, text: str | None = None) -> Generation:
    """A right answer in one second and ten tokens, unless told otherwise."""
    return Generation(
        text=f"\\boxed{{{problem.gold}}}" if text is None else text,
        token_ids=(1,) * 10,
        steps=(),
        counts=Counts(n_prompt_tokens=5, n_tokens=10, n_target_passes=10),
        wall_s=1.0,
        phase_s=dict.fromkeys(PHASES, 0.0) | {"target": 1.0},
        stop_reason="end_of_text",
    )


class Scripted(decoding.Method):
    """Notes each call and answers as ``script`` says."""

    def __init__(self, name: str, limits: GenerationConfig, stage: Stage) -> None:
        self.name, self.limits, self.stage = name, limits, stage

    def generate(self, problem: Problem, seed: int) -> Generation:
        if self.limits.max_new_tokens == runner.WARM_UP_TOKENS:
            self.stage.warm_ups.append(self.name)
        else:
            self.stage.calls.append((self.name, problem.id))
        return self.stage.script(self.name, problem)


class Stage:
    """What the scripted methods share."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.warm_ups: list[str] = []
        self.script: Callable[[str, Problem], Generation] = lambda name, problem: answer(problem)

    def build(
        self, config: MethodConfig, pair: Pair, probes: Any, limits: GenerationConfig, **_: bool
    ) -> Scripted:
        return Scripted(config.name, limits, self)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    stage = Stage()
    monkeypatch.setattr(runner, "load_pair", lambda config: tiny_pair())
    monkeypatch.setattr(runner.decoding, "build", stage.build)
    return stage


def settings(results: Path, *overrides: str) -> Config:
    config = compose(["benchmark=chain_short", "limit=3", f"results_dir={results}", *overrides])
    config.methods = {name: MethodConfig(name) for name in NAMES}
    return config


def lines(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "samples.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_methods_alternate_in_rotating_order(stage: Stage, tmp_path: Path) -> None:
    runner.run(settings(tmp_path))
    assert [name for name, _ in stage.calls] == [
        *("autoregressive", "draft_only", "specsampling"),
        *("draft_only", "specsampling", "autoregressive"),
        *("specsampling", "autoregressive", "draft_only"),
    ]
    assert len({problem for _, problem in stage.calls}) == 3


def test_each_method_has_its_own_graded_and_dated_run(stage: Stage, tmp_path: Path) -> None:
    stage.script = lambda name, problem: answer(problem, "" if name == "draft_only" else None)
    folders = runner.run(settings(tmp_path, "seed=7"))
    assert [folder.name.rpartition("-")[0] for folder in folders] == [
        f"proxy-chain_short-{name}-s7" for name in NAMES
    ]
    assert [[r["correct"] for r in lines(folder)] for folder in folders] == [
        [True] * 3,
        [False] * 3,
        [True] * 3,
    ]
    manifest = json.loads((folders[0] / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["ended"] >= manifest["started"]
    assert manifest["config"]["generation"]["max_new_tokens"] == 512


def test_warm_ups_come_first_and_are_not_recorded(stage: Stage, tmp_path: Path) -> None:
    folders = runner.run(settings(tmp_path))
    assert stage.warm_ups == list(NAMES)
    assert [len(lines(folder)) for folder in folders] == [3, 3, 3]


def test_the_same_command_goes_on_and_a_higher_limit_extends(stage: Stage, tmp_path: Path) -> None:
    first = runner.run(settings(tmp_path))
    stage.calls.clear()
    stage.warm_ups.clear()
    assert runner.run(settings(tmp_path)) == first
    assert not stage.calls
    assert not stage.warm_ups
    assert runner.run(settings(tmp_path, "limit=5")) == first
    assert Counter(name for name, _ in stage.calls) == dict.fromkeys(NAMES, 2)
    assert [len(lines(folder)) for folder in first] == [5, 5, 5]


@pytest.mark.parametrize(
    "change", ["seed=1", "generation.temperature=0", "benchmark.seed=1", "model.name=other"]
)
def test_what_changes_results_changes_the_folder(stage: Stage, tmp_path: Path, change: str) -> None:
    first = runner.run(settings(tmp_path))
    assert not set(first) & set(runner.run(settings(tmp_path, change)))


@pytest.mark.parametrize("change", ["limit=1", "debug=true", "threads=1", "probe.path=elsewhere"])
def test_what_does_not_leaves_it(stage: Stage, tmp_path: Path, change: str) -> None:
    first = runner.run(settings(tmp_path))
    assert runner.run(settings(tmp_path, change)) == first


def test_a_failure_is_a_record_and_the_run_goes_on(stage: Stage, tmp_path: Path) -> None:
    def script(name: str, problem: Problem) -> Generation:
        if name == "draft_only" and problem.id.endswith("1"):
            raise RuntimeError("out of luck\nat line 3")
        return answer(problem)

    stage.script = script
    folders = runner.run(settings(tmp_path))
    failed = [record for record in lines(folders[1]) if record["error"]]
    assert [record["error"] for record in failed] == ["RuntimeError: out of luck"]
    assert failed[0]["stop_reason"] == "error"
    assert (failed[0]["wall_s"], failed[0]["correct"]) == (0.0, False)
    assert [len(lines(folder)) for folder in folders] == [3, 3, 3]


def test_text_cut_off_inside_its_thinking_is_not_graded(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = tiny_pair()
    pair.target.think_prefix = "<think>\n"
    monkeypatch.setattr(runner, "load_pair", lambda config: pair)
    records_ = lines(runner.run(settings(tmp_path))[0])
    assert [(r["correct"], r["truncated"]) for r in records_] == [(False, True)] * 3


def test_ctrl_c_loses_and_repeats_nothing(stage: Stage, tmp_path: Path) -> None:
    def script(name: str, problem: Problem) -> Generation:
        if len(stage.calls) == 5:
            raise KeyboardInterrupt
        return answer(problem)

    stage.script = script
    with pytest.raises(KeyboardInterrupt):
        runner.run(settings(tmp_path))
    assert len(records.load(tmp_path)) == 4
    stage.script = lambda name, problem: answer(problem)
    folders = runner.run(settings(tmp_path))
    assert [len({r["problem_id"] for r in lines(folder)}) for folder in folders] == [3, 3, 3]
    assert len(stage.calls) == 5 + 5


CHILD = """
import sys, time
from pathlib import Path
from pytest import MonkeyPatch
from models import tiny_pair
from test_runner import Stage, answer, settings
from semanticspec import runner

stage = Stage()
def script(name, problem):
    time.sleep(0.05)
    return answer(problem)
stage.script = script
runner.load_pair = lambda config: tiny_pair()
runner.decoding.build = stage.build
runner.run(settings(Path(sys.argv[1]), "limit=100"))
"""


def test_kill_minus_9_loses_and_repeats_nothing(stage: Stage, tmp_path: Path) -> None:
    here = Path(__file__).parent
    path = os.pathsep.join([str(here), str(here.parent), str(here.parents[1] / "src")])
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": path},
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 120
    while sum(f.read_bytes().count(b"\n") for f in tmp_path.glob("*/samples.jsonl")) < 4:
        assert time.monotonic() < deadline
        assert child.poll() is None
        time.sleep(0.05)
    child.send_signal(signal.SIGKILL)
    child.wait()
    before = {folder.name: lines(folder) for folder in records.run_folders([tmp_path])}
    with (tmp_path / next(iter(before)) / "samples.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"problem_id": "torn')
    n_before = sum(len(rows) for rows in before.values())
    n_rows = max(len(rows) for rows in before.values()) + 1
    folders = runner.run(settings(tmp_path, f"limit={n_rows}"))
    assert {folder.name for folder in folders} == set(before)
    assert len(stage.calls) == 3 * n_rows - n_before
    for folder in folders:
        rows = lines(folder)
        assert rows[: len(before[folder.name])] == before[folder.name]
        assert len({row["problem_id"] for row in rows}) == len(rows) == n_rows
