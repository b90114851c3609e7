"""The letter of a multiple-choice answer."""

from __future__ import annotations

import re

_WRAPPED = re.compile(r"\\(?:text|mathrm|mathbf|textbf|mathit)\s*\{([^{}]*)\}")
_ALONE = re.compile(r"\W*([A-Ja-j])\W*")
# One letter, not the first of several ("A or B" picks nothing), nor the start of a word ("I'd").
_ONE = r"([A-J])\b(?!['\u2019-])(?!\W*(?:[,/&]|\band\b|\bor\b)\W*[A-J]\b)"
_LEADING = re.compile(r"\W*" + _ONE)
_SAID = re.compile(r"(?i:answer\s*(?:is\b|:)+\s*:?|option|choice)[\s(\[$]*" + _ONE)


def boxed_letter(answer: str) -> str | None:
    """What a box or a reference picks: ``B``, ``(B)``, ``\\text{B}``, ``B) 3.2 eV``, option B."""
    leading = _LEADING.match(_unwrapped(answer))
    return leading[1] if leading else said_letter(answer)


def said_letter(text: str) -> str | None:
    """What a text without a box picks: a lone letter, or the last "the answer is B"."""
    plain = _unwrapped(text)
    alone = _ALONE.fullmatch(plain)
    if alone:
        return alone[1].upper()
    said = _SAID.findall(plain)
    return said[-1] if said else None


def _unwrapped(text: str) -> str:
    while _WRAPPED.search(text):
        text = _WRAPPED.sub(r" \1 ", text)
    return re.sub(r"[$\\*]", " ", text)
