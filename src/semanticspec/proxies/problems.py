"""Synthetic word problems whose every reasoning step has a known meaning.

A problem states a few facts about people and how many things they have, then asks for one number.
A solution is a sequence of *meanings* (``Meaning``): the value of one person, a re-check, a repair
of a wrong step, a sum, or the end. ``State`` holds what a solution has said so far and says which
meanings may come next, so that truth is always relative to the values already in the context.
How meanings become words is the business of ``language.py``.
"""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

Split = Literal["train", "probe", "test"]
Op = Literal["is", "more", "fewer", "twice"]
Kind = Literal["value", "check", "fix", "sum", "done"]

_NAMES = (
    "Ada Ben Cleo Dan Eve Finn Gina Hugo Ida Jack Kira Leo Mia Ned Olga Paul Quinn Rosa Sam Tina "
    "Uma Vic Wendy Xavi Yara Zoe Amy Boris Clara Dora Emil Fay Greta Hans Iris Jonas Karl Lena "
    "Marco Nora Otto Pia Ralf Sara Tom Ute Vera Will"
)
NAMES: tuple[str, ...] = tuple(_NAMES.split())
ITEMS = "apples books coins shells stamps marbles cards keys pens cups stones beads".split()
LETTERS = "ABCD"
MAX_VALUE = 20

# Facts of a problem, by benchmark: (fewest, most). A branch problem has two chains of that length.
BENCHMARKS: dict[str, tuple[int, int]] = {
    "chain_short": (3, 4),
    "chain_long": (7, 9),
    "chain_branch": (3, 4),
    "chain_choice": (4, 5),
}


@dataclass(frozen=True)
class Fact:
    """How many things one person has, outright (``is``) or relative to ``base``."""

    name: str
    op: Op
    amount: int = 0
    base: str = ""

    def value(self, base_value: int) -> int:
        """The person's value, given the base person's (ignored for ``is``)."""
        return {
            "is": self.amount,
            "more": base_value + self.amount,
            "fewer": base_value - self.amount,
            "twice": 2 * base_value,
        }[self.op]


@dataclass(frozen=True)
class ChainProblem:
    """One problem. ``asked`` has one name, or two whose values are added."""

    benchmark: str
    facts: tuple[Fact, ...]
    item: str
    asked: tuple[str, ...]
    options: tuple[int, ...] = ()

    def fact(self, name: str) -> Fact:
        return next(fact for fact in self.facts if fact.name == name)

    def values(self) -> dict[str, int]:
        """Every person's true value."""
        known: dict[str, int] = {}
        for fact in self.facts:
            known[fact.name] = fact.value(known.get(fact.base, 0))
        return known

    @property
    def result(self) -> int:
        values = self.values()
        return sum(values[name] for name in self.asked)

    @property
    def answer(self) -> str:
        """What belongs in the box: the number, or the option's letter."""
        return self.letter(self.result) if self.options else str(self.result)

    def letter(self, value: int) -> str:
        """The letter of an option, or ``?`` for a value that is not among them."""
        return LETTERS[self.options.index(value)] if value in self.options else "?"

    @property
    def text(self) -> str:
        parts = [_fact_text(fact, self.item) for fact in self.facts]
        parts[0] = "Suppose " + parts[0]
        if len(self.asked) == 2:
            parts.append(f"How many {self.item} do {self.asked[0]} and {self.asked[1]} have?")
        else:
            parts.append(f"How many {self.item} does {self.asked[0]} have?")
        if self.options:
            shown = (f"{v} is {x}" for x, v in zip(LETTERS, self.options, strict=True))
            parts.append("Options: " + ", ".join(shown) + ".")
        return " ".join(parts)

    @property
    def split(self) -> Split:
        """A problem belongs to one split for ever, by its content: splits cannot overlap."""
        digest = hashlib.sha256(self.text.encode()).digest()
        bucket = int.from_bytes(digest[:4], "big") % 10
        return "test" if bucket == 0 else "probe" if bucket == 1 else "train"


def _fact_text(fact: Fact, item: str) -> str:
    return {
        "is": f"{fact.name} has {fact.amount} {item}.",
        "more": f"{fact.name} has {fact.amount} more than {fact.base}.",
        "fewer": f"{fact.name} has {fact.amount} fewer than {fact.base}.",
        "twice": f"{fact.name} has twice as many as {fact.base}.",
    }[fact.op]


@dataclass(frozen=True, order=True)
class Meaning:
    """What a step says, whatever its words: two steps mean the same when these are equal.

    ``subject`` is a person, two names joined by a plus sign, or the letter chosen at the end.
    """

    kind: Kind
    subject: str
    value: int


@dataclass(frozen=True)
class State:
    """What a solution has said so far: the values in the context, right or wrong."""

    problem: ChainProblem
    known: dict[str, int] = field(default_factory=dict)
    last: Meaning | None = None
    finished: bool = False

    def expected(self, subject: str) -> int:
        """The right value of a person or sum, relative to the values already in the context.

        Raises ``KeyError`` when something that it builds on has not been said yet.
        """
        if "+" in subject:
            return sum(self.known[name] for name in subject.split("+"))
        fact = self.problem.fact(subject)
        return fact.value(0 if fact.op == "is" else self.known[fact.base])

    def last_is_wrong(self) -> bool:
        """Whether the last step stated a wrong value that is still to be repaired."""
        if self.last is None or self.last.kind == "done":
            return False
        return self.last.value != self.expected(self.last.subject)

    def next_meanings(self) -> list[Meaning]:
        """Every meaning that is right as the next step."""
        if self.finished:
            return []
        last = self.last
        if last is not None and self.last_is_wrong():
            return [Meaning("fix", last.subject, self.expected(last.subject))]
        options = [
            Meaning("value", fact.name, self.expected(fact.name))
            for fact in self.problem.facts
            if fact.name not in self.known and (fact.op == "is" or fact.base in self.known)
        ]
        if not options:
            subject = "+".join(self.problem.asked)
            if "+" in subject and subject not in self.known:
                options = [Meaning("sum", subject, self.expected(subject))]
            else:
                result = self.known[subject]
                letter = self.problem.letter(result) if self.problem.options else ""
                options = [Meaning("done", letter, result)]
        if last is not None and last.kind in ("value", "sum"):
            options.append(Meaning("check", last.subject, last.value))
        return options

    def is_right(self, meaning: Meaning | None) -> bool:
        return meaning in self.next_meanings()

    def after(self, meaning: Meaning | None) -> State:
        """The state once a step has been said; an unreadable step (``None``) changes nothing."""
        if meaning is None:
            return self
        if meaning.kind == "done":
            return replace(self, last=meaning, finished=True)
        try:
            self.expected(meaning.subject)
        except (KeyError, StopIteration):  # about nobody, or about somebody out of turn
            return self
        return replace(self, known={**self.known, meaning.subject: meaning.value}, last=meaning)


def _chain(rng: random.Random, names: list[str]) -> list[Fact]:
    """A chain of facts, each about the one before, with all values in 0..MAX_VALUE."""
    value = rng.randint(2, 12)
    facts = [Fact(names[0], "is", value)]
    for base, name in itertools.pairwise(names):
        while True:
            op: Op = rng.choices(("more", "fewer", "twice"), weights=(5, 5, 1))[0]
            fact = Fact(name, op, 0 if op == "twice" else rng.randint(1, 9), base)
            if 0 <= fact.value(value) <= MAX_VALUE:
                break
        value = fact.value(value)
        facts.append(fact)
    return facts


def _interleave(rng: random.Random, first: list[Fact], second: list[Fact]) -> list[Fact]:
    """Merge two lists at random, keeping each one's own order."""
    places = [0] * len(first) + [1] * len(second)
    rng.shuffle(places)
    sources = iter(first), iter(second)
    return [next(sources[place]) for place in places]


def make_problem(benchmark: str, rng: random.Random, *, n_facts: int | None = None) -> ChainProblem:
    """Draw one problem. ``n_facts`` overrides the chain length (the training curriculum does)."""
    low, high = BENCHMARKS[benchmark]
    n = n_facts if n_facts is not None else rng.randint(low, high)
    item = rng.choice(ITEMS)
    if benchmark == "chain_branch":
        m = n_facts if n_facts is not None else rng.randint(low, high)
        names = rng.sample(NAMES, n + m)
        first, second = _chain(rng, names[:n]), _chain(rng, names[n:])
        asked = (first[-1].name, second[-1].name)
        return ChainProblem(benchmark, tuple(_interleave(rng, first, second)), item, asked)
    facts = _chain(rng, rng.sample(NAMES, n))
    problem = ChainProblem(benchmark, tuple(facts), item, (facts[-1].name,))
    if benchmark == "chain_choice":
        near = [v for v in range(MAX_VALUE + 1) if v != problem.result]
        options = [problem.result, *rng.sample(near, 3)]
        rng.shuffle(options)
        problem = replace(problem, options=tuple(options))
    return problem


def problems(benchmark: str, split: Split, seed: int) -> Iterator[ChainProblem]:
    """Endless distinct problems of one split; the same seed gives the same ones."""
    rng = random.Random(f"{benchmark}/{split}/{seed}")
    seen: set[str] = set()
    while True:
        problem = make_problem(benchmark, rng)
        if problem.split == split and problem.text not in seen:
            seen.add(problem.text)
            yield problem
