"""Steps with the same numbers mean the same: crude, free, and fair for worked arithmetic."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..types import Problem
from .base import Judge, number

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


class NumericJudge(Judge):
    """Compares the sets of numbers; steps without any compare by their words."""

    def classes(self, problem: Problem, history: Sequence[str], steps: Sequence[str]) -> list[int]:
        return number([_key(step) for step in steps])


def _key(step: str) -> object:
    numbers = frozenset(found.replace(",", "") for found in _NUMBER.findall(step))
    return numbers or " ".join(step.split()).casefold()
