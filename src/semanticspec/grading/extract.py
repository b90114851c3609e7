"""Find the answer in a model's text."""

from __future__ import annotations

THINK, THINK_END = "<think>", "</think>"


def answer_text(text: str, *, thinking_open: bool = False) -> str | None:
    """What follows the last end of thinking; ``None`` when the text ends inside its thinking."""
    before, end, after = text.rpartition(THINK_END)
    if end:
        return after if THINK not in after else None
    return None if thinking_open or THINK in before + after else text


def boxed(text: str) -> str | None:
    """What the last complete ``\\boxed{...}`` holds, braces balanced; ``None`` without one.

    An unfinished last box is no answer, whatever came before it.
    """
    start = max(text.rfind("\\boxed"), text.rfind("\\fbox"))
    if start < 0:
        return None
    opening = text.find("{", start)
    if opening < 0 or text[start:opening].strip() not in ("\\boxed", "\\fbox"):
        return None
    depth = 0
    for index in range(opening, len(text)):
        escaped = text[index - 1] == "\\"
        if text[index] == "{" and not escaped:
            depth += 1
        elif text[index] == "}" and not escaped:
            depth -= 1
            if depth == 0:
                return text[opening + 1 : index].strip()
    return None
