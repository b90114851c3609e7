"""A language model as the decoders see it."""

from .base import Forward, Need, StopRule, Written
from .hf import HFModel, HFSequence
from .pair import Pair, load_pair

__all__ = [
    "Forward",
    "HFModel",
    "HFSequence",
    "Need",
    "Pair",
    "StopRule",
    "Written",
    "load_pair",
]
