"""Problems x methods, side by side: generate, grade, record; go on where an earlier launch stopped.

Methods alternate problem by problem inside one process, in rotating order, so that whatever slows
the machine down for a while slows all of them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from . import __version__, benchmarks, decoding, records
from .backends import Pair, load_pair
from .config import BenchmarkConfig, Config, MethodConfig, as_json, config_hash
from .grading import grade
from .probing import Probes, find_probes, load_probes
from .probing.probe import fingerprint
from .records import RunManifest, RunStore
from .records.manifest import git_state, hardware, now, package_versions, process_name
from .tracking import Tracker, start_tracker
from .types import PHASES, Counts, Generation, Problem, SampleRecord

log = logging.getLogger(__name__)
WARM_UP_TOKENS = 32


@dataclass
class Lane:
    """One method on one benchmark: what is run, and where it is recorded."""

    method: decoding.Method
    store: RunStore
    tracker: Tracker


def run(config: Config) -> list[Path]:
    """Run everything that a configuration asks for and return the run folders.

    Raises ``UserError`` for whatever a person can mend, before models are loaded if possible.
    """
    if config.threads is not None:
        torch.set_num_threads(config.threads)
    problems = [benchmarks.load(b, limit=config.limit) for b in config.benchmarks.values()]
    with_probes = any(decoding.needs_probes(method) for method in config.methods.values())
    if with_probes:
        find_probes(config.probe, config.model.name)
    pair = load_pair(config.model)
    probes = load_probes(config.probe, pair) if with_probes else None
    launch = _Launch(config, pair, probes)
    folders = []
    for benchmark, chosen in zip(config.benchmarks.values(), problems, strict=True):
        with ExitStack() as opened:
            lanes = [launch.open(opened, benchmark, method) for method in config.methods.values()]
            _run_lanes(lanes, chosen, config, launch)
            folders += [lane.store.folder for lane in lanes]
    return folders


class _Launch:
    """What all runs of one launch share."""

    def __init__(self, config: Config, pair: Pair, probes: Probes | None) -> None:
        self.config, self.pair, self.probes = config, pair, probes
        self._process = process_name()
        self._models = {"target": fingerprint(pair.target), "draft": fingerprint(pair.draft)}
        gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        self._facts: dict[str, Any] = {
            "git": git_state(),
            "packages": package_versions(),
            "hardware": hardware(gpus, torch.get_num_threads()),
        }

    def build(self, method: MethodConfig, **limits: int) -> decoding.Method:
        generation = replace(self.config.generation, **limits)
        return decoding.build(method, self.pair, self.probes, generation, debug=self.config.debug)

    def open(self, opened: ExitStack, benchmark: BenchmarkConfig, method: MethodConfig) -> Lane:
        """Open the run folder of one method on one benchmark."""
        config = self.config
        settings = {
            "version": __version__,
            "model": as_json(config.model),
            "fingerprints": self._models,
            "generation": as_json(config.generation),
            "method": as_json(method),
            "benchmark": as_json(benchmark),
            "seed": config.seed,
        }
        if decoding.needs_probes(method) and self.probes is not None:
            settings["probes"] = {
                name: card["weights_sha256"] for name, card in self.probes.cards.items()
            }
        manifest = RunManifest(
            model=config.model.name,
            method=method.name,
            benchmark=benchmark.name,
            seed=config.seed,
            config=settings,
            config_hash=config_hash(settings),
            process=self._process,
            started=now(),
            **self._facts,
        )
        store = opened.enter_context(records.open_run(Path(config.results_dir), manifest))
        tracker = opened.enter_context(start_tracker(config.tracker, store))
        return Lane(self.build(method), store, tracker)


def _run_lanes(
    lanes: Sequence[Lane], problems: Sequence[Problem], config: Config, launch: _Launch
) -> None:
    """All methods on one benchmark."""
    todo = [
        (lane, problem)
        for index, problem in enumerate(problems)
        for lane in _rotated(lanes, index)
        if (problem.id, config.seed) not in lane.store.done()
    ]
    if not todo:
        return
    for method in config.methods.values():
        _warm_up(launch, method, problems[0])
    n_right = n_tokens = 0
    seconds = 0.0
    bar = tqdm(todo, desc=lanes[0].store.manifest.benchmark, unit="sample")
    for done, (lane, problem) in enumerate(bar, start=1):
        record = sample(lane.method, problem, config.seed, launch.pair)
        lane.store.append(record)
        lane.tracker.log(record)
        n_right += record.correct
        n_tokens += record.counts.n_tokens
        seconds += record.wall_s
        bar.set_postfix(
            right=f"{n_right / done:.0%}", tok_s=f"{n_tokens / seconds if seconds else 0:.0f}"
        )


def _rotated(lanes: Sequence[Lane], by: int) -> list[Lane]:
    by %= len(lanes)
    return [*lanes[by:], *lanes[:by]]


def _warm_up(launch: _Launch, method: MethodConfig, problem: Problem) -> None:
    """The first pass pays for memory and kernels; a few tokens that nobody records pay for it.

    What fails here fails again, and is recorded, with the first problem.
    """
    few = min(WARM_UP_TOKENS, launch.config.generation.max_new_tokens)
    try:
        launch.build(method, max_new_tokens=few).generate(problem, launch.config.seed)
    except Exception as error:  # noqa: BLE001
        log.warning("warm-up of %s failed: %s", method.name, error)


def sample(method: decoding.Method, problem: Problem, seed: int, pair: Pair) -> SampleRecord:
    """Answer and grade one problem. A failure becomes a record with its reason."""
    about = {k: v for k, v in problem.metadata.items() if k != "chain"}
    about["prompt"] = problem.prompt
    try:
        generation = method.generate(problem, seed)
        thinking = pair.target.prompt_text(problem.prompt).rstrip().endswith("<think>")
        return _graded(generation, problem, seed, thinking, about)
    except Exception as error:  # noqa: BLE001  (one bad problem must not end a night's run)
        log.warning("%s failed: %s: %s", problem.id, type(error).__name__, error)
        reason = str(error).strip().splitlines()[0] if str(error).strip() else "no message"
        return SampleRecord(
            problem_id=problem.id,
            seed=seed,
            gold=problem.gold,
            text="",
            answer=None,
            correct=False,
            truncated=False,
            stop_reason="error",
            wall_s=0.0,
            phase_s=dict.fromkeys(PHASES, 0.0),
            counts=Counts(),
            steps=(),
            error=f"{type(error).__name__}: {reason}",
            metadata=about,
        )


def _graded(
    generation: Generation, problem: Problem, seed: int, thinking: bool, about: dict[str, Any]
) -> SampleRecord:
    graded = grade(generation.text, problem.gold, problem.kind, thinking_open=thinking)
    cut_off = generation.stop_reason == "max_new_tokens" and graded.answer is None
    return SampleRecord(
        problem_id=problem.id,
        seed=seed,
        gold=problem.gold,
        text=generation.text,
        answer=graded.answer,
        correct=graded.correct,
        truncated=graded.truncated or cut_off,
        stop_reason=generation.stop_reason,
        wall_s=generation.wall_s,
        phase_s=generation.phase_s,
        counts=generation.counts,
        steps=generation.steps,
        metadata=about,
    )
