"""Equal text is equal meaning; for synthetic problems, the true meaning itself."""

from __future__ import annotations

from collections.abc import Sequence

from ..benchmarks import chain_problem
from ..proxies.language import parse, read_steps
from ..proxies.problems import State
from ..types import Problem
from .base import Judge, number


def state_after(problem: Problem, history: Sequence[str]) -> State | None:
    """What a synthetic problem's solution has said so far; ``None`` for any other problem."""
    chain = chain_problem(problem)
    if chain is None:
        return None
    state = State(chain)
    for before, meaning in read_steps(chain, list(history)):
        state = before.after(meaning)
    return state


class ExactJudge(Judge):
    """Compares normalised text, or meanings where the problem's truth is known."""

    def classes(self, problem: Problem, history: Sequence[str], steps: Sequence[str]) -> list[int]:
        state = state_after(problem, history)
        texts = [" ".join(step.split()).casefold() for step in steps]
        if state is None:
            return number(texts)
        # A step that says nothing readable means the same only as its own repetition.
        meanings = [parse(step, state) for step in steps]
        return number([m or text for m, text in zip(meanings, texts, strict=True)])


def wrong_steps(
    problem: Problem, history: Sequence[str], steps: Sequence[str]
) -> list[bool] | None:
    """Whether each step is wrong where it is said; ``None`` when the truth is not known."""
    state = state_after(problem, history)
    if state is None:
        return None
    return [not state.is_right(parse(step, state)) for step in steps]
