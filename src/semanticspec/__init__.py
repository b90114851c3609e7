"""SemanticSpec: a reproducible benchmark harness for semantic-aware speculative decoding."""

__version__ = "0.1.0"
