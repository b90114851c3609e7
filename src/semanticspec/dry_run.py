"""What a launch would do: resolved, checked, estimated; no weights are loaded."""

from __future__ import annotations

from dataclasses import asdict

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from . import benchmarks, decoding
from .backends.load import model_path
from .config import Config, ModelSpec
from .errors import UserError
from .probing import find_probes

_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


def describe(config: Config) -> str:
    """A text for a person: runs, models, memory, what is missing, and one prompt."""
    methods, sets = config.methods.values(), config.benchmarks.values()
    lines = [
        f"model {config.model.name}, seed {config.seed}: {len(methods) * len(sets)} runs",
        f"  methods: {', '.join(method.name for method in methods)}",
        f"  generation: {asdict(config.generation)}",
        f"  target: {_model(config.model.target)}",
        f"  draft: {_model(config.model.draft)}",
    ]
    missing = []
    if any(decoding.needs_probes(method) for method in methods):
        try:
            lines.append(f"  probes: {find_probes(config.probe, config.model.name)}")
        except UserError as error:
            missing.append(str(error))
    for benchmark in sets:
        try:
            problems = benchmarks.load(benchmark, limit=config.limit)
        except UserError as error:
            missing.append(str(error))
            continue
        lines.append(f"  {benchmark.name}: {len(problems)} problems; the first one:")
        lines += [f"    | {line}" for line in problems[0].prompt.splitlines()]
        lines.append(f"    gold: {problems[0].gold}")
    lines += [f"missing: {item}" for item in missing] or ["nothing is missing"]
    return "\n".join(lines)


def _model(spec: ModelSpec) -> str:
    """Size and memory of a model's weights, from its config alone."""
    try:
        config = AutoConfig.from_pretrained(
            model_path(spec), revision=spec.revision or "main", local_files_only=True
        )
    except (OSError, ValueError):
        return f"{spec.path} (not on this machine: size unknown)"
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    n = sum(parameter.numel() for parameter in model.parameters())
    dtype = spec.dtype if spec.dtype in _BYTES else str(config.dtype).removeprefix("torch.")
    gib = n * _BYTES.get(dtype, 4) / 2**30
    return f"{spec.path} ({n / 1e6:.1f} M parameters, {dtype}, {gib:.2f} GiB of weights)"
