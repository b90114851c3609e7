"""What the decoders exchange with a backend, and where a step ends."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import Any

from torch import Tensor

THINK_END = "</think>"
_BLANK_LINE = re.compile(r"\n[^\S\n]*\n")
_ENDS_LINE = re.compile(r"\n[^\S\n]*\Z")
_STARTS_LINE = re.compile(r"\A[^\S\n]*\n")


class Need(enum.Enum):
    """What a forward pass has to bring back besides the filled cache."""

    LAST = "the logits after the last token"
    ALL = "the logits before each new token and after the last one"
    HIDDEN = "the logits after the last token, and hidden states of the new tokens"


@dataclass(frozen=True)
class Forward:
    """One pass over new tokens.

    Shapes: logits [1, V] or, with ``Need.ALL``, [T + 1, V]; hidden [n_layers, T, H].
    """

    logits: Tensor
    hidden: Tensor | None = None


@dataclass(frozen=True)
class Written:
    """What one call of ``write`` added. Shapes: hidden [n_layers, T, H]."""

    token_ids: list[int]
    ended: str
    """``end_of_text``, ``think_end``, ``step_end`` or ``limit``."""
    hidden: Tensor | None = None


class StepEnds:
    """Which tokens end a step or the text: a blank line, ``</think>``, end of text.

    A step ends after the first token whose text holds a blank line. Some tokenizers write a blank
    line as two tokens; then the second one ends the step.
    Source: arXiv 2602.03708 (its code lists eight ids of Qwen's vocabulary; this finds them all).
    """

    def __init__(self, tokenizer: Any, end_of_text: set[int]) -> None:
        n_tokens = len(tokenizer)
        texts = tokenizer.batch_decode([[index] for index in range(n_tokens)])
        self.end_of_text = frozenset(end_of_text)
        think_end = tokenizer.convert_tokens_to_ids(THINK_END)
        known = isinstance(think_end, int) and 0 <= think_end < n_tokens
        self.think_end = think_end if known and texts[think_end] == THINK_END else None
        self._blank = {i for i, text in enumerate(texts) if _BLANK_LINE.search(text)}
        self._ends_line = {i for i, text in enumerate(texts) if _ENDS_LINE.search(text)}
        self._starts_line = {i for i, text in enumerate(texts) if _STARTS_LINE.search(text)}

    def reason(self, token: int, previous: int | None, *, steps: bool) -> str | None:
        """Why writing stops after ``token``, or ``None``. ``previous`` is of the same step."""
        if token in self.end_of_text:
            return "end_of_text"
        if not steps:
            return None
        if token == self.think_end:
            return "think_end"
        if token in self._blank or (token in self._starts_line and previous in self._ends_line):
            return "step_end"
        return None


@dataclass(frozen=True)
class StopRule:
    """When ``write`` stops: after a step (or only at end of text), or at ``max_tokens``."""

    max_tokens: int
    steps: bool = True
