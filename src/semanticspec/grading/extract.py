"""Find the answer in a model's text."""

from __future__ import annotations

import re

THINK, THINK_END = "<think>", "</think>"
_BOX = re.compile(r"\\(?:boxed|fbox)(?![a-zA-Z])\s*")
_BRACE = re.compile(r"\\.|[{}]", re.DOTALL)  # an escaped brace is part of the answer


def answer_text(text: str, *, thinking_open: bool = False) -> str | None:
    """What follows the last end of thinking; ``None`` when the text ends inside its thinking."""
    before, end, after = text.rpartition(THINK_END)
    if end:
        return after if THINK not in after else None
    return None if thinking_open or THINK in before + after else text


def boxed(text: str) -> str | None:
    """What the last ``\\boxed{...}`` holds, braces balanced; ``None`` without one.

    An unfinished last box is no answer, whatever came before it.
    """
    boxes = list(_BOX.finditer(text))
    if not boxes or not text.startswith("{", boxes[-1].end()):
        return None
    opening, depth = boxes[-1].end(), 0
    for brace in _BRACE.finditer(text, opening):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if depth == 0:
            return text[opening + 1 : brace.start()].strip()
    return None
