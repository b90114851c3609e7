"""Is the answer right?

The answer is the last ``\\boxed{...}`` after the last ``</think>``. Text cut off inside its
thinking has no answer. Mathematics is compared by math-verify in a worker with a time limit.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..types import AnswerKind
from .choice import boxed_letter, said_letter
from .extract import answer_text, boxed
from .math import equal, gold_value

__all__ = ["Graded", "grade"]


@dataclass(frozen=True)
class Graded:
    """``answer`` as the model wrote it; ``reason`` says why there is none or what was compared."""

    correct: bool
    answer: str | None
    reason: str

    @property
    def truncated(self) -> bool:
        """Whether the text was cut off before its answer."""
        return self.reason == "truncated"


def grade(
    text: str, gold: str, kind: AnswerKind = "math", *, thinking_open: bool = False
) -> Graded:
    """Grade one answer. ``thinking_open``: the prompt had opened ``<think>`` already."""
    part = answer_text(text, thinking_open=thinking_open)
    if part is None:
        return Graded(False, None, "truncated")
    answer = boxed(part)
    if kind == "choice":
        chosen = said_letter(part) if answer is None else boxed_letter(answer)
        if chosen is None:
            return Graded(False, answer, "no letter")
        return Graded(chosen == boxed_letter(gold), chosen, "letter")
    if answer is None:
        return Graded(False, None, "no boxed answer")
    verdict = equal(answer, gold_value(gold))
    if verdict is None:
        return Graded(False, answer, "no verdict within the time limit")
    return Graded(verdict, answer, "compared")
