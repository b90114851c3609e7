"""What every decoding method is: a configuration, a pair and one verb."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ..backends import Pair
from ..config import GenerationConfig
from ..types import Generation, Problem


class Method(ABC):
    """A way to answer a problem with a target, a draft, or both."""

    def __init__(self, pair: Pair, limits: GenerationConfig, *, debug: bool = False) -> None:
        self.pair = pair
        self.limits = limits
        self.debug = debug

    @abstractmethod
    def generate(self, problem: Problem, seed: int) -> Generation:
        """Answer one problem; the same seed gives the same text on the same machine."""
