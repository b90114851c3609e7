"""The letter of a multiple-choice answer."""

from __future__ import annotations

import re

_WRAPPED = re.compile(r"\\(?:text|mathrm|mathbf|textbf|mathit)\s*\{([^{}]*)\}")
_LEADING = re.compile(r"\s*[(\[]?\s*([A-Z])\s*(?:[)\].:,]|\s|$)")
_SAID = re.compile(r"(?:answer|option|choice)\s*(?:is)?\s*:?\s*[(\[]?([A-Z])\b[)\]]?", re.IGNORECASE)


def letter(answer: str) -> str | None:
    """The chosen letter: ``B``, ``(B)``, ``\\text{B}``, ``B) 3.2 eV``, "the answer is B"."""
    plain = answer
    while _WRAPPED.search(plain):
        plain = _WRAPPED.sub(r" \1 ", plain)
    plain = plain.replace("$", " ").replace("\\", " ").replace("*", " ")
    leading = _LEADING.match(plain)
    if leading:
        return leading[1]
    said = _SAID.findall(plain)
    return said[-1].upper() if said else None
