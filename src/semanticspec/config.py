"""What can be set, with its type and its bounds.

The classes are the schema of ``conf/``: Hydra refuses a key or a type that is not here. ``resolve``
turns what Hydra composed into these plain objects and checks them, so that no part of the library
ever sees an OmegaConf node.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig, OmegaConf

from .errors import UserError


if TYPE_CHECKING:
    from .types import AnswerKind, Author

    Source = Literal["synthetic", "hub"]
    Pooling = Literal["mean", "last", "mean+last"]
    Tracker = Literal["none", "wandb"]
    TrackerMode = Literal["offline", "online", "disabled"]
else:  # OmegaConf knows no Literal; ``validate`` checks the values.
    AnswerKind = Author = Source = Pooling = Tracker = TrackerMode = str


@dataclass
class ModelSpec:
    """One causal language model and how to load and prompt it."""

    path: str
    """Hub name, local folder, or ``embedded:target`` / ``embedded:draft``."""
    revision: str | None = None
    gguf_file: str | None = None
    dtype: str = "auto"
    """auto (as stored), float32, bfloat16 or float16."""
    device: str = "auto"
    """auto (a GPU if there is one), cpu, cuda, cuda:1, or balanced over all GPUs."""
    attn_implementation: str | None = None
    quantization: dict[str, Any] | None = None
    """Passed to transformers' quantisation config: {quant_method: bitsandbytes, ...}."""
    trust_remote_code: bool = False
    system_prompt: str | None = None
    think_prefix: str = ""
    """Added to the prompt where the chat template does not end with it already."""


@dataclass
class ModelConfig:
    """A pair: the target whose answers are wanted, and the draft that is to speed it up."""

    name: str
    target: ModelSpec
    draft: ModelSpec


@dataclass
class GenerationConfig:
    """Sampling and limits, the same for every method."""

    max_new_tokens: int
    temperature: float
    """0 is greedy."""
    top_p: float = 1.0
    top_k: int = 0
    """0 is off."""
    max_step_tokens: int = 500


@dataclass
class MethodConfig:
    """A decoding method; those with settings have a class of their own."""

    name: str


@dataclass
class SpecSamplingConfig(MethodConfig):
    name: str = "specsampling"
    gamma: int = 4
    """Tokens drafted between two target passes."""


@dataclass
class SemanticSpecConfig(MethodConfig):
    name: str = "semanticspec"
    tau: float = 0.5
    """Lowest ratio of semantic probabilities that can be accepted; 0 is the rule without it."""
    answer_by: Author = "target"
    """Who writes what comes after the thinking."""
    target_first_steps: int = 1


@dataclass
class RandomAcceptConfig(MethodConfig):
    name: str = "random_accept"
    rate: float = 0.5
    """Share of steps that are accepted."""
    answer_by: Author = "target"
    target_first_steps: int = 1


METHODS: dict[str, type[MethodConfig]] = {
    "autoregressive": MethodConfig,
    "draft_only": MethodConfig,
    "specsampling": SpecSamplingConfig,
    "semanticspec": SemanticSpecConfig,
    "random_accept": RandomAcceptConfig,
}


@dataclass
class BenchmarkConfig:
    """A set of problems and how they are asked."""

    name: str
    kind: AnswerKind
    source: Source
    path: str | None = None
    """A local .jsonl or .parquet file, read in place of the hub."""
    hub_name: str | None = None
    hub_config: str | None = None
    split: str = "test"
    revision: str | None = None
    problem_field: str = "problem"
    answer_field: str = "answer"
    id_field: str | None = None
    """null: rows are numbered."""
    prompt_template: str = "{problem}"
    expected_rows: int | None = None
    seed: int = 0
    """Of the generator; synthetic benchmarks only."""


@dataclass
class CollectConfig:
    """Sampling of next steps, from which probes learn."""

    n_samples: int = 20
    """Next steps a model writes at one context."""
    context_rate: float = 0.5
    """Share of step boundaries that become contexts."""
    max_contexts: int = 8
    """Contexts a problem gives at most."""
    draft_share: float = 0.5
    """Share of steps of the trace that the draft wrote."""
    target_layers: list[int] = field(default_factory=lambda: [-1])
    """Blocks whose outputs are kept; negative numbers count from the end."""
    draft_layers: list[int] = field(default_factory=lambda: [-1])


@dataclass
class ProbeTrainConfig:
    """The fit of one probe."""

    pooling: Pooling = "mean"
    """mean, last or mean+last: of the step's own tokens."""
    widths: list[int] = field(default_factory=lambda: [256, 64])
    learning_rate: float = 1e-3
    batch_size: int = 128
    max_epochs: int = 100
    patience: int = 10
    seed: int = 0


@dataclass
class ProbeConfig:
    """Where a pair's probes are, and how they come to be."""

    path: str | None = None
    """Folder of target.safetensors, draft.safetensors and their cards; null: probes/<model name>."""
    n_problems: int = 1000
    """Problems to collect from."""
    collect: CollectConfig = field(default_factory=CollectConfig)
    train: ProbeTrainConfig = field(default_factory=ProbeTrainConfig)


@dataclass
class TrackerConfig:
    """Where a run is reported to, besides its own folder."""

    name: Tracker = "none"
    """none or wandb."""
    project: str = "semanticspec"
    mode: TrackerMode = "offline"
    """offline, online or disabled."""
    dir: str | None = None
    """Where offline runs are kept; null: the results folder."""


@dataclass
class Config:
    """Everything."""

    model: ModelConfig
    method: MethodConfig
    benchmark: BenchmarkConfig
    generation: GenerationConfig
    probe: ProbeConfig = field(default_factory=ProbeConfig)
    tracker: TrackerConfig = field(default_factory=TrackerConfig)
    methods: dict[str, MethodConfig] = field(default_factory=dict)
    """When not empty, these take the place of ``method``, alternating problem by problem."""
    benchmarks: dict[str, BenchmarkConfig] = field(default_factory=dict)
    """When not empty, these take the place of ``benchmark``."""
    seed: int = 0
    limit: int | None = None
    """Only the first so many problems of each benchmark."""
    dry_run: bool = False
    debug: bool = False
    """Check the caches after every step; slow."""
    results_dir: str = "results"
    threads: int | None = None
    """CPU threads of torch; null: torch's own choice."""

    def all_methods(self) -> list[MethodConfig]:
        return list(self.methods.values()) or [self.method]

    def all_benchmarks(self) -> list[BenchmarkConfig]:
        return list(self.benchmarks.values()) or [self.benchmark]


def register() -> None:
    """Make the schema known to Hydra; ``conf/`` builds on it."""
    store = ConfigStore.instance()
    store.store(name="schema", node=Config)
    for name, schema in METHODS.items():
        store.store(group="schema/method", name=name, node=schema)


def resolve(composed: DictConfig) -> Config:
    """Hydra's result as plain objects, checked. Raises ``UserError``."""
    config = OmegaConf.to_object(composed)
    assert isinstance(config, Config)
    validate(config)
    return config


def validate(config: Config) -> None:
    """Check bounds and what must fit together. Raises ``UserError`` naming the first fault."""
    _check_model(config.model)
    _check_generation(config.generation)
    for key, method in {"method": config.method, **_prefixed("methods", config.methods)}.items():
        _check_method(key, method)
    named = {"benchmark": config.benchmark, **_prefixed("benchmarks", config.benchmarks)}
    for key, benchmark in named.items():
        _check_benchmark(key, benchmark)
    _check_probe(config.probe)
    tracker = config.tracker
    _one_of("tracker.name", tracker.name, ("none", "wandb"))
    _one_of("tracker.mode", tracker.mode, ("offline", "online", "disabled"))
    if config.limit is not None:
        _at_least("limit", config.limit, 1)
    if config.threads is not None:
        _at_least("threads", config.threads, 1)


def _check_model(model: ModelConfig) -> None:
    for role, spec in (("target", model.target), ("draft", model.draft)):
        key = f"model.{role}"
        _one_of(f"{key}.dtype", spec.dtype, ("auto", "float32", "bfloat16", "float16"))
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
        _at_least(f"{key}.tau", method.tau, 0, "0 is the rule without it")
        if method.tau > 1:
            raise UserError(f"{key}.tau={method.tau}: must be at most 1, or nearly nothing is kept")
    if isinstance(method, RandomAcceptConfig) and not 0 <= method.rate <= 1:
        raise UserError(f"{key}.rate={method.rate}: must be from 0 to 1")
    if isinstance(method, SemanticSpecConfig | RandomAcceptConfig):
        _one_of(f"{key}.answer_by", method.answer_by, ("target", "draft"))
        _at_least(f"{key}.target_first_steps", method.target_first_steps, 0)


def _check_benchmark(key: str, benchmark: BenchmarkConfig) -> None:
    _one_of(f"{key}.kind", benchmark.kind, ("math", "choice"))
    _one_of(f"{key}.source", benchmark.source, ("synthetic", "hub"))
    if "{problem}" not in benchmark.prompt_template:
        raise UserError(f"{key}.prompt_template: must contain {{problem}}")
    if benchmark.source == "hub" and not (benchmark.path or benchmark.hub_name):
        raise UserError(f"{key}.hub_name: needed, or {key}.path for a local file")


def _check_probe(probe: ProbeConfig) -> None:
    _at_least("probe.n_problems", probe.n_problems, 1)
    _at_least("probe.collect.n_samples", probe.collect.n_samples, 2, "a label leaves one out")
    for key in ("context_rate", "draft_share"):
        share = getattr(probe.collect, key)
        if not 0 <= share <= 1:
            raise UserError(f"probe.collect.{key}={share}: must be from 0 to 1")
    _one_of("probe.train.pooling", probe.train.pooling, ("mean", "last", "mean+last"))


def _prefixed(prefix: str, entries: dict[str, Any]) -> dict[str, Any]:
    return {f"{prefix}.{name}": entry for name, entry in entries.items()}


def _at_least(key: str, value: float, least: float, why: str = "") -> None:
    if not value >= least:  # so that a NaN fails too
        note = f" ({why})" if why else ""
        raise UserError(f"{key}={value}: must be {least} or more{note}")


def _one_of(key: str, value: str, choices: Collection[str]) -> None:
    if value not in choices:
        raise UserError(f"{key}={value}: unknown; choose one of {', '.join(choices)}")
