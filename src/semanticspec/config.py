"""What can be set, and its type.

The classes are the schema of ``conf/``: Hydra refuses a key or a type that is not here. Bounds are
in ``validate.py``. ``compose.py`` turns what Hydra composed into these plain objects, so that no
part of the library ever sees an OmegaConf node.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from hydra.core.config_store import ConfigStore

if TYPE_CHECKING:
    from .types import AnswerKind, Author

    Source = Literal["synthetic", "hub"]
    Pooling = Literal["mean", "last", "mean+last"]
    Judge = Literal["exact", "numeric"]
    Tracker = Literal["none", "wandb"]
    TrackerMode = Literal["offline", "online"]
else:  # OmegaConf knows no Literal; ``validate`` checks the values.
    AnswerKind = Author = Source = Pooling = Judge = Tracker = TrackerMode = str


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
    quantization: Any = None
    """A mapping for transformers, such as {quant_method: bitsandbytes, load_in_4bit: true}."""
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
    """Another number of rows is worth a warning."""
    skip: int = 0
    """Rows left out at the start."""
    seed: int = 0
    """Of the generator; synthetic benchmarks only."""


@dataclass
class ProbeConfig:
    """Where a pair's probes are."""

    path: str | None = None
    """Folder with target.safetensors, draft.safetensors and cards; null: probes/<model name>."""


@dataclass
class TrackerConfig:
    """Where a run is reported to, besides its own folder."""

    name: Tracker = "none"
    project: str = "semanticspec"
    entity: str | None = None
    mode: TrackerMode = "offline"
    group: str | None = None
    """A name that the runs of one comparison share."""


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
    """What runs, alternating problem by problem; ``method`` alone where nothing is given here."""
    benchmarks: dict[str, BenchmarkConfig] = field(default_factory=dict)
    """What is asked; ``benchmark`` alone where nothing is given here."""
    seed: int = 0
    limit: int | None = None
    """Only the first so many problems of each benchmark."""
    dry_run: bool = False
    debug: bool = False
    """Check both caches against a fresh pass after every step; slow."""
    results_dir: str = "results"
    threads: int | None = None
    """CPU threads of torch; null: torch's own choice."""


@dataclass
class CollectConfig:
    """Sampling of next steps, from which probes learn."""

    n_problems: int = 240
    """Over all benchmarks."""
    n_samples: int = 16
    """Next steps that each model writes at one context."""
    max_contexts: int = 100
    """Of one problem."""
    context_rate: float = 0.6
    """Share of step boundaries that become contexts."""
    draft_share: float = 0.7
    """How often the trace goes on with the draft's step."""
    target_layers: list[int] = field(default_factory=lambda: [-1])
    """Blocks whose outputs are kept; negative numbers count from the end."""
    draft_layers: list[int] = field(default_factory=lambda: [-1])


@dataclass
class ProbeTrainConfig:
    """The fit of one probe."""

    pooling: Pooling = "mean"
    """Over the step's own tokens."""
    widths: list[int] = field(default_factory=lambda: [256, 128])
    learning_rate: float = 1e-3
    batch_size: int = 256
    max_epochs: int = 100
    patience: int = 10
    seed: int = 0


@dataclass
class ProbingConfig:
    """Everything that ``python -m semanticspec.probing`` can be told."""

    model: ModelConfig
    generation: GenerationConfig
    benchmark: BenchmarkConfig | None = None
    """When set, it takes the place of ``benchmarks``."""
    benchmarks: dict[str, BenchmarkConfig] = field(default_factory=dict)
    collect: CollectConfig = field(default_factory=CollectConfig)
    train: ProbeTrainConfig = field(default_factory=ProbeTrainConfig)
    judge: Judge = "exact"
    data_dir: str = "results/probing"
    out: str | None = None
    """Folder of the trained probes; null: probes/<model name>."""
    seed: int = 0
    threads: int | None = None

    def all_benchmarks(self) -> list[BenchmarkConfig]:
        return [self.benchmark] if self.benchmark else list(self.benchmarks.values())


def register() -> None:
    """Make the schema known to Hydra; ``conf/`` builds on it."""
    store = ConfigStore.instance()
    store.store(name="schema", node=Config)
    store.store(name="probing_schema", node=ProbingConfig)
    for name, schema in METHODS.items():
        store.store(group="hydra/schema/method", name=name, node=schema)


def as_json(config: Any) -> dict[str, Any]:
    """One of these objects as JSON values, which know no infinity."""
    return json.loads(json.dumps(asdict(config)), parse_constant=str)


def config_hash(settings: dict[str, Any]) -> str:
    """Eight hexadecimal digits that tell settings (JSON values) apart."""
    text = json.dumps(settings, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
