"""The four synthetic benchmarks; their problems carry what is needed to know every step's truth."""

from __future__ import annotations

import itertools
from dataclasses import asdict
from typing import Any

from ..config import BenchmarkConfig
from ..errors import UserError
from ..proxies.problems import BENCHMARKS, ChainProblem, Fact, problems
from ..types import Problem

DEFAULT_ROWS = 500


def load_synthetic(config: BenchmarkConfig, n: int | None) -> list[Problem]:
    """The first ``n`` problems of one split (500 when ``None``); equal seeds, equal problems."""
    if config.name not in BENCHMARKS:
        raise UserError(
            f"benchmark.name={config.name}: no such synthetic benchmark; "
            f"choose one of {', '.join(BENCHMARKS)}"
        )
    if config.split not in ("train", "probe", "test"):
        raise UserError(f"benchmark.split={config.split}: must be train, probe or test")
    source = problems(config.name, config.split, config.seed)
    last = config.skip + (DEFAULT_ROWS if n is None else n)
    chosen = itertools.islice(source, config.skip, last)
    return [
        _problem(config, chain, f"{config.name}-{config.split}-{config.seed}-{index:05d}")
        for index, chain in enumerate(chosen, start=config.skip)
    ]


def _problem(config: BenchmarkConfig, chain: ChainProblem, name: str) -> Problem:
    return Problem(
        id=name,
        prompt=config.prompt_template.replace("{problem}", chain.text),
        gold=chain.answer,
        kind="choice" if chain.options else "math",
        metadata={"chain": asdict(chain)},
    )


def chain_problem(problem: Problem) -> ChainProblem | None:
    """The synthetic problem behind a ``Problem``; ``None`` when it is not one."""
    chain: dict[str, Any] | None = problem.metadata.get("chain")
    if chain is None:
        return None
    return ChainProblem(
        chain["benchmark"],
        tuple(Fact(**fact) for fact in chain["facts"]),
        chain["item"],
        tuple(chain["asked"]),
        tuple(chain["options"]),
    )
