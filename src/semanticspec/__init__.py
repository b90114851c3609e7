"""SemanticSpec: a reproducible benchmark harness for semantic-aware speculative decoding."""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .backends import Pair
    from .config import ModelConfig


def load_pair(config: ModelConfig) -> Pair:
    """Load a target and a draft. Raises ``UserError`` when one cannot be had."""
    from .backends import load_pair as load  # noqa: PLC0415  (keeps `import semanticspec` light)

    return load(config)
