"""Decoding methods: one method, one file."""

from __future__ import annotations

from ..backends import Pair
from ..config import (
    GenerationConfig,
    MethodConfig,
    RandomAcceptConfig,
    SemanticSpecConfig,
    SpecSamplingConfig,
)
from ..probing import Probes
from .autoregressive import Autoregressive
from .base import Method
from .draft_only import DraftOnly
from .random_accept import RandomAccept
from .semanticspec import SemanticSpec
from .specsampling import SpecSampling

__all__ = ["Method", "build", "needs_probes"]


def needs_probes(config: MethodConfig) -> bool:
    """Whether a method reads semantic probabilities."""
    return isinstance(config, SemanticSpecConfig)


def build(
    config: MethodConfig,
    pair: Pair,
    probes: Probes | None,
    limits: GenerationConfig,
    *,
    debug: bool = False,
) -> Method:
    """The method that a configuration names. ``debug`` checks the caches after every step.

    Raises ``UserError`` when pair and method do not go together.
    """
    if isinstance(config, SemanticSpecConfig):
        assert probes is not None, "semanticspec needs probes"
        return SemanticSpec(config, pair, probes, limits, debug=debug)
    if isinstance(config, RandomAcceptConfig):
        return RandomAccept(config, pair, limits, debug=debug)
    if isinstance(config, SpecSamplingConfig):
        return SpecSampling(config, pair, limits, debug=debug)
    plain = {"autoregressive": Autoregressive, "draft_only": DraftOnly}
    return plain[config.name](pair, limits, debug=debug)
