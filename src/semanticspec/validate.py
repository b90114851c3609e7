"""Bounds, and what must fit together: checked before anything heavy is loaded."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields, is_dataclass
from typing import Any

from .config import (
    METHODS,
    BenchmarkConfig,
    Config,
    GenerationConfig,
    MethodConfig,
    ModelConfig,
    ProbingConfig,
    RandomAcceptConfig,
    SemanticSpecConfig,
    SpecSamplingConfig,
)
from .errors import UserError


def validate(config: Config) -> None:
    """Check bounds and what must fit together. Raises ``UserError`` naming the first fault."""
    _no_strangers("", config)
    _check_model(config.model)
    _check_generation(config.generation)
    for key, method in {"method": config.method, **_prefixed("methods", config.methods)}.items():
        _check_method(key, method)
    named = {"benchmark": config.benchmark, **_prefixed("benchmarks", config.benchmarks)}
    for key, benchmark in named.items():
        _check_benchmark(key, benchmark)
    _one_of("tracker.name", config.tracker.name, ("none", "wandb"))
    _one_of("tracker.mode", config.tracker.mode, ("offline", "online"))
    if config.limit is not None:
        _at_least("limit", config.limit, 1)
    if config.threads is not None:
        _at_least("threads", config.threads, 1)


def validate_probing(config: ProbingConfig) -> None:
    """The same for the making of probes. Raises ``UserError``."""
    _no_strangers("", config)
    _check_model(config.model)
    _check_generation(config.generation)
    for key, benchmark in _prefixed("benchmarks", config.benchmarks).items():
        _check_benchmark(key, benchmark)
    if config.benchmark is not None:
        _check_benchmark("benchmark", config.benchmark)
    collect, train = config.collect, config.train
    _at_least("collect.n_problems", collect.n_problems, 1)
    _at_least("collect.n_samples", collect.n_samples, 2, "a label leaves one out")
    _at_least("collect.max_contexts", collect.max_contexts, 1)
    _share("collect.context_rate", collect.context_rate)
    _share("collect.draft_share", collect.draft_share)
    _one_of("train.pooling", train.pooling, ("mean", "last", "mean+last"))
    _at_least("train.batch_size", train.batch_size, 1)
    _at_least("train.max_epochs", train.max_epochs, 1)
    _one_of("judge", config.judge, ("exact", "numeric"))


def _no_strangers(key: str, node: Any) -> None:
    """Refuse what ``+KEY=VALUE`` added and nothing would read."""
    if isinstance(node, dict):
        parts = node
    elif is_dataclass(node):
        parts = vars(node)
        known = [field.name for field in fields(node)]
        for name in parts:
            if name not in known:
                raise UserError(f"{key}{name}: no such key; choose one of {', '.join(known)}")
    else:
        return
    for name, part in parts.items():
        _no_strangers(f"{key}{name}.", part)


def _check_model(model: ModelConfig) -> None:
    for role, spec in (("target", model.target), ("draft", model.draft)):
        key = f"model.{role}"
        _one_of(f"{key}.dtype", spec.dtype, ("auto", "float32", "bfloat16", "float16"))
        if not isinstance(spec.quantization, dict | None):
            raise UserError(f"{key}.quantization={spec.quantization}: must be a mapping")
        if spec.gguf_file and spec.quantization:
            raise UserError(
                f"{key}.quantization: a GGUF file is dequantised on loading; "
                f"unset {key}.gguf_file or {key}.quantization"
            )


def _check_generation(generation: GenerationConfig) -> None:
    _at_least("generation.max_new_tokens", generation.max_new_tokens, 1)
    _at_least("generation.max_step_tokens", generation.max_step_tokens, 1)
    _at_least("generation.temperature", generation.temperature, 0, "0 is greedy")
    _at_least("generation.top_k", generation.top_k, 0, "0 is off")
    if not 0 < generation.top_p <= 1:
        raise UserError(
            f"generation.top_p={generation.top_p}: must be above 0 and at most 1 (1 is off)"
        )


def _check_method(key: str, method: MethodConfig) -> None:
    _one_of(f"{key}.name", method.name, METHODS)
    schema = METHODS[method.name]
    if type(method) is not schema:
        raise UserError(f"{key}.name={method.name}: has other settings; choose it as a whole")
    if isinstance(method, SpecSamplingConfig):
        _at_least(f"{key}.gamma", method.gamma, 1)
    if isinstance(method, SemanticSpecConfig):
        _at_least(f"{key}.tau", method.tau, 0, "0 is the rule without it, inf keeps nothing")
    if isinstance(method, RandomAcceptConfig):
        _share(f"{key}.rate", method.rate)
    if isinstance(method, SemanticSpecConfig | RandomAcceptConfig):
        _one_of(f"{key}.answer_by", method.answer_by, ("target", "draft"))
        _at_least(f"{key}.target_first_steps", method.target_first_steps, 0)


def _check_benchmark(key: str, benchmark: BenchmarkConfig) -> None:
    _one_of(f"{key}.kind", benchmark.kind, ("math", "choice"))
    _one_of(f"{key}.source", benchmark.source, ("synthetic", "hub"))
    _at_least(f"{key}.skip", benchmark.skip, 0)
    if "{problem}" not in benchmark.prompt_template:
        raise UserError(f"{key}.prompt_template: must contain {{problem}}")
    if benchmark.source == "hub" and not (benchmark.path or benchmark.hub_name):
        raise UserError(f"{key}.hub_name: needed, or {key}.path for a local file")


def _prefixed(prefix: str, entries: dict[str, Any]) -> dict[str, Any]:
    return {f"{prefix}.{name}": entry for name, entry in entries.items()}


def _at_least(key: str, value: float, least: float, why: str = "") -> None:
    if not value >= least:  # so that a NaN fails too
        note = f" ({why})" if why else ""
        raise UserError(f"{key}={value}: must be {least} or more{note}")


def _share(key: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise UserError(f"{key}={value}: must be from 0 to 1")


def _one_of(key: str, value: str, choices: Collection[str]) -> None:
    if value not in choices:
        raise UserError(f"{key}={value}: unknown; choose one of {', '.join(choices)}")
