"""Do two steps mean the same? One judge, one file."""

from __future__ import annotations

from ..errors import UserError
from .base import Judge
from .exact import ExactJudge
from .numeric import NumericJudge

__all__ = ["ExactJudge", "Judge", "NumericJudge", "build_judge"]

_JUDGES: dict[str, type[Judge]] = {"exact": ExactJudge, "numeric": NumericJudge}


def build_judge(name: str) -> Judge:
    """The judge of that name. Raises ``UserError`` when there is none."""
    if name not in _JUDGES:
        raise UserError(f"judge={name}: unknown; choose one of {', '.join(sorted(_JUDGES))}")
    return _JUDGES[name]()
