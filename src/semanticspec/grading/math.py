"""Mathematical equality: cheap checks here, the rest by math-verify in a bounded worker."""

from __future__ import annotations

import re

from .worker import Worker

TIME_LIMIT_S = 4.0
_LONGEST = 2_000
# Four exponents in one another: no reference answer, and no end of computing.
_TOWER = re.compile(r"(?:\^\s*\{[^{}]*){4}")
# "18 dollars" is 18 and "10\%" is 10, as in reference answers; "5 million" is not 5.
_UNIT = re.compile(
    r"(?<=\d)(?:\s*\\?%|(?!\s+(?:dozen|hundred|thousand|million|billion))(?:\s+[A-Za-z]{3,})+)$"
)
_THIN_SPACE = re.compile(r"(?<=\d)\\[,;: ](?=\d{3}(?!\d))")  # 10\,080

_WORKER = Worker()


def gold_value(gold: str) -> str:
    """The value of a reference answer: GSM8K's worked solutions end in ``#### 18``."""
    return gold.rpartition("####")[2].strip()


def equal(answer: str, gold: str, *, time_limit_s: float = TIME_LIMIT_S) -> bool | None:
    """Whether two LaTeX answers are the same value; ``None`` when it could not be told in time."""
    answer, gold = _bare(answer), _bare(gold)
    if _plain(answer) == _plain(gold):
        return True
    if len(answer) > _LONGEST or _TOWER.search(answer):
        return False
    return _WORKER.ask(answer, gold, time_limit_s=time_limit_s)


def _bare(text: str) -> str:
    return _THIN_SPACE.sub("", _UNIT.sub("", text.strip()))


def _plain(text: str) -> str:
    return re.sub(r"\s+", "", text.replace("\\left", "").replace("\\right", ""))
