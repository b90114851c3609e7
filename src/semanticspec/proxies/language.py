"""How a meaning becomes words, and how words become a meaning again.

Two styles share one grammar: ``target`` explains in whole sentences, ``draft`` is terse. Each is a
list of templates with slots (``{n}`` name, ``{b}`` base person, ``{x}`` base value, ``{e}``
expression, ``{r}`` relation, ``{v}`` value, ``{i}`` item) and synonyms (``[so|thus]``). The parser
is built from the same templates, so it reads whatever the grammar can write; what a model writes
outside it has no meaning (``None``).
"""

from __future__ import annotations

import functools
import random
import re
from typing import Literal

from .problems import LETTERS, NAMES, ChainProblem, Kind, Meaning, State

Style = Literal["target", "draft"]

THINK_END = "</think>"
STEP_END = "\n\n"

# A re-check follows a step with this chance; with STAY an author goes on along the chain it is on,
# though the other chain's next fact would be as right.
CHECK_RATE: dict[Style, float] = {"target": 0.12, "draft": 0.06}
STAY_ON_CHAIN: dict[Style, float] = {"target": 1.0, "draft": 1.0}
# How often a step of one author is worded the way the other one writes.
OWN_WORDS: dict[Style, float] = {"target": 0.92, "draft": 0.7}

_TARGET_FILLER = "[|||||Okay. |Hmm. |Let me see. |Alright. ]"
_DRAFT_FILLER = "[||||Ok. |Go on. ]"

TEMPLATES: dict[tuple[Style, str], tuple[str, ...]] = {
    ("target", "root"): (
        "[First|Now], {n} has {v} {i}, as [stated|given].",
        "The problem [says|states] that {n} has {v} {i}.",
        "We are told that {n} [has|owns] {v} {i}.",
    ),
    ("target", "value"): (
        "[Next|Now|Then], {n} has {r} {b}, and {b} has {x}, [so|which means] {n} has {e} = {v}.",
        "[We know|Recall] that {b} has {x}, and {n} has {r} {b}, so that makes {e} = {v} {i}.",
        "To [find|get] {n}, take what {b} has, which is {x}. [This|That] gives {e} = {v} {i}.",
        "For {n} we [start from|look at] {b}, who has {x}, and [get|obtain] {e} = {v}.",
        "[Since|Because] {b} has {x} {i}, {n} [must have|ends up with] {e} = {v} {i}.",
        "Here {n} has {r} {b}. With {x} for {b}, [this|that] is {e} = {v}.",
    ),
    ("target", "check"): (
        "Let me [double-check|verify] {n}: {e} is {v}, so that is right.",
        "[To be sure|Checking again], {n} has {e}, which is [indeed|really] {v}.",
    ),
    ("target", "fix"): (
        "Wait, that is [wrong|not right]. {n} has {e}, which is {v}.",
        "Wait, [I made a mistake|let me correct that]: {n} should have {e} = {v}.",
    ),
    ("target", "sum"): (
        "[Together|In total], {n} and {m} have {x} + {y} = {v} {i}.",
        "Adding [both|the two], {x} for {n} and {y} for {m}, [gives|makes] {x} + {y} = {v}.",
    ),
    ("target", "done"): (
        "That is [all we need|everything], so the answer is {v}.",
        "[So|Therefore] the [question|problem] is answered by {v} {i}.",
    ),
    ("target", "pick"): (
        "The result is {v}, and among the options {v} is {l}.",
        "[So|Therefore] {v} is {l}, which answers the [question|problem].",
    ),
    ("draft", "root"): (
        "[So|With] {n} = {v}.",
        "[Given|Known]: {n} has {v}.",
    ),
    ("draft", "value"): (
        "[So|Then] {n} = {e} = {v}.",
        "From {e} = {v}, {n} has {v}.",
        "[Take|Use] {b} = {x}: {n} is {e} = {v}.",
        "And {n} [gets|has] {e}, or {v} {i}.",
        "[As|With] {b} is {x}, {n} is {v}.",
        "[For|At] {n}: {x} [gives|becomes] {v}.",
    ),
    ("draft", "check"): (
        "[Check|Test] {n}: {e} = {v}, ok.",
        "Again {n}: {v}, [fine|good].",
    ),
    ("draft", "fix"): (
        "No, {n} [is|has] {e} = {v}.",
        "[Fix|Correction]: {n} = {v}.",
    ),
    ("draft", "sum"): (
        "Both {n} + {m} = {x} + {y} = {v}.",
        "[Total|Sum]: {x} + {y} = {v}.",
    ),
    ("draft", "done"): (
        "[Done|Finished]: {v}.",
        "Answer {v}.",
    ),
    ("draft", "pick"): (
        "So {v} is {l}.",
        "We have {v} is {l}.",
    ),
}
ANSWERS: dict[Style, tuple[str, ...]] = {
    "target": ("The [final answer|answer] is \\boxed{{{a}}}.",),
    "draft": ("[Answer|Result]: \\boxed{{{a}}}.",),
}

_SYNONYMS = re.compile(r"\[([^\]]*)\]")
_TOTAL = "the total"
_SLOTS = {
    "n": "|".join((*NAMES, _TOTAL)),
    "m": "|".join(NAMES),
    "b": "|".join(NAMES),
    "x": r"\d+",
    "y": r"\d+",
    "v": r"\d+",
    "e": r"\d+ [-+*] \d+|\d+",
    "r": r"\d+ more than|\d+ fewer than|twice as many as",
    "i": "[a-z]+",
    "l": f"[{LETTERS}?]",
}


def _fill(template: str, slots: dict[str, object], rng: random.Random) -> str:
    """Choose the synonyms and fill the slots."""
    chosen = _SYNONYMS.sub(lambda match: rng.choice(match[1].split("|")), template)
    return chosen.format(**slots)


def render(meaning: Meaning, state: State, style: Style, rng: random.Random) -> str:
    """One step's text in one style, its ending included. The value may be wrong: it is kept."""
    problem = state.problem
    slots: dict[str, object] = {"v": meaning.value, "i": problem.item, "n": meaning.subject}
    form: str = meaning.kind
    if meaning.kind == "done":
        form = "pick" if problem.options else "done"
        slots["l"] = meaning.subject
    elif "+" in meaning.subject:
        first, second = meaning.subject.split("+")
        slots["n"], slots["m"] = (first, second) if meaning.kind == "sum" else (_TOTAL, "")
        slots["x"], slots["y"] = state.known[first], state.known[second]
        slots["e"] = f"{slots['x']} + {slots['y']}"
    else:
        fact = problem.fact(meaning.subject)
        slots["b"], base = fact.base, state.known.get(fact.base, 0)
        slots["x"] = base
        slots["e"], slots["r"] = {
            "is": (str(fact.amount), ""),
            "more": (f"{base} + {fact.amount}", f"{fact.amount} more than"),
            "fewer": (f"{base} - {fact.amount}", f"{fact.amount} fewer than"),
            "twice": (f"2 * {base}", "twice as many as"),
        }[fact.op]
        if fact.op == "is" and meaning.kind == "value":
            form = "root"
    filler = _TARGET_FILLER if style == "target" else _DRAFT_FILLER
    body = _fill(filler + rng.choice(TEMPLATES[style, form]), slots, rng)
    return body + ("\n" + THINK_END if meaning.kind == "done" else STEP_END)


def render_answer(answer: str, style: Style, rng: random.Random) -> str:
    """What is said after thinking."""
    return "\n\n" + _fill(rng.choice(ANSWERS[style]), {"a": answer}, rng)


def _pattern(template: str) -> str:
    """A template as a regular expression with named groups; a slot used twice gets two groups."""
    pattern, used = "", {}
    for piece in re.split(r"(\[[^\]]*\]|\{\w\})", template):
        if piece.startswith("["):
            pattern += "(?:" + "|".join(re.escape(word) for word in piece[1:-1].split("|")) + ")"
        elif piece.startswith("{"):
            slot = piece[1]
            used[slot] = used.get(slot, 0) + 1
            pattern += f"(?P<{slot}{used[slot]}>{_SLOTS[slot]})"
        else:
            pattern += re.escape(piece)
    return pattern


_FORM_KIND: dict[str, Kind] = {"root": "value", "pick": "done"}


@functools.cache
def _patterns() -> tuple[tuple[Kind, re.Pattern[str]], ...]:
    """Every template, compiled. Forms that begin with a cue word come before plain values."""
    order = ("fix", "check", "sum", "done", "pick", "root", "value")
    filler = f"(?:{_pattern(_TARGET_FILLER)}|{_pattern(_DRAFT_FILLER)})"
    compiled: list[tuple[Kind, re.Pattern[str]]] = []
    for form in order:
        for style in ("target", "draft"):
            for template in TEMPLATES[style, form]:
                kind: Kind = _FORM_KIND.get(form, form)  # type: ignore[assignment]
                compiled.append((kind, re.compile(filler + _pattern(template))))
    return tuple(compiled)


def parse(text: str, state: State) -> Meaning | None:
    """The meaning of one step's text, read where ``state`` has been said; ``None`` if unreadable.

    The last value that the step states is the one that counts. A re-statement of a known value is
    a check, whatever its words; who a bare total is about follows from the problem.
    """
    body = text.strip()
    ended = body.endswith(THINK_END)
    body = body.removesuffix(THINK_END).strip()
    for kind, pattern in _patterns():
        match = pattern.fullmatch(body)
        if match is None or (kind == "done") != ended:
            continue
        groups = match.groupdict()
        value = int(groups.get("v2") or groups["v1"])
        if kind == "done":
            return Meaning(kind, groups.get("l1") or "", value)
        if kind == "sum":
            subject = "+".join(state.problem.asked)
            named = {groups.get("n1"), groups.get("m1")} - {None}
            if named and named != set(state.problem.asked):
                return None
            return Meaning(kind, subject, value)
        subject = groups["n1"]
        if subject == _TOTAL:
            subject = "+".join(state.problem.asked)
        if kind == "value" and subject in state.known:
            kind = "check"
        return Meaning(kind, subject, value)
    return None


def choose_next(state: State, style: Style, rng: random.Random) -> Meaning:
    """What an author says next: seldom a re-check, else one of the open facts."""
    options = state.next_meanings()
    checks = [m for m in options if m.kind == "check"]
    others = [m for m in options if m.kind != "check"]
    if checks and rng.random() < CHECK_RATE[style]:
        return checks[0]
    last = state.last.subject if state.last else None
    near = [m for m in others if m.kind == "value" and state.problem.fact(m.subject).base == last]
    if near and len(others) > 1 and rng.random() < STAY_ON_CHAIN[style]:
        return near[0]
    return rng.choice(others)


def read_steps(problem: ChainProblem, steps: list[str]) -> list[tuple[State, Meaning | None]]:
    """Each step's meaning with the state that it was said in."""
    state, read = State(problem), []
    for step in steps:
        meaning = parse(step, state)
        read.append((state, meaning))
        state = state.after(meaning)
    return read
