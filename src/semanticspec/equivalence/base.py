"""What a judge is asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from ..types import Problem


class Judge(ABC):
    """Sorts steps that could follow one context into classes of equal meaning."""

    @abstractmethod
    def classes(self, problem: Problem, history: Sequence[str], steps: Sequence[str]) -> list[int]:
        """The class of each step, numbered by first appearance. ``history``: the steps before."""


def number(keys: Sequence[object]) -> list[int]:
    """Equal keys get equal numbers, by first appearance."""
    seen: dict[object, int] = {}
    return [seen.setdefault(key, len(seen)) for key in keys]
