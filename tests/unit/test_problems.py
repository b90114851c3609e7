"""The synthetic problems and their language."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semanticspec.proxies.language import (
    TEMPLATES,
    THINK_END,
    Style,
    _pattern,
    choose_next,
    parse,
    read_steps,
    render,
    render_answer,
)
from semanticspec.proxies.problems import (
    BENCHMARKS,
    LETTERS,
    MAX_VALUE,
    ChainProblem,
    Fact,
    Meaning,
    Split,
    State,
    make_problem,
    problems,
)

STYLES: tuple[Style, ...] = ("target", "draft")
SPLITS: tuple[Split, ...] = ("train", "probe", "test")

benchmarks = st.sampled_from(sorted(BENCHMARKS))
styles = st.sampled_from(STYLES)
seeds = st.integers(0, 2**32)

EXAMPLE = ChainProblem(
    "chain_short",
    (Fact("Ada", "is", 5), Fact("Ben", "more", 3, "Ada"), Fact("Cleo", "twice", 0, "Ben")),
    "coins",
    ("Cleo",),
)


def write(
    problem: ChainProblem, style: Style, rng: random.Random, error_rate: float = 0.0
) -> Iterator[tuple[State, Meaning, str]]:
    """A whole solution, wrong values thrown in: yields (state, meaning, text)."""
    state = State(problem)
    for _ in range(200):
        if state.finished:
            return
        meaning = choose_next(state, style, rng)
        if meaning.kind != "done" and rng.random() < error_rate:
            meaning = replace(meaning, value=meaning.value + rng.randint(1, 5))
        yield state, meaning, render(meaning, state, style, rng)
        state = state.after(meaning)
    raise AssertionError("the solution does not end")


# --- problems


@pytest.mark.parametrize("benchmark", sorted(BENCHMARKS))
def test_splits_are_disjoint_and_repeatable(benchmark: str) -> None:
    texts: dict[Split, list[str]] = {
        split: [p.text for p in itertools.islice(problems(benchmark, split, 0), 150)]
        for split in SPLITS
    }
    for split in SPLITS:
        written = texts[split]
        again = itertools.islice(problems(benchmark, split, 0), 150)
        assert [p.text for p in again] == written
        assert len(set(written)) == 150
    for one, other in itertools.combinations(SPLITS, 2):
        assert not set(texts[one]) & set(texts[other])
    other_seed = [p.text for p in itertools.islice(problems(benchmark, "test", 1), 150)]
    assert other_seed != texts["test"]


@given(benchmarks, seeds)
@settings(deadline=None)
def test_problems_are_well_formed(benchmark: str, seed: int) -> None:
    problem = make_problem(benchmark, random.Random(seed))
    low, high = BENCHMARKS[benchmark]
    chains = 2 if benchmark == "chain_branch" else 1
    assert chains * low <= len(problem.facts) <= chains * high
    assert all(0 <= value <= MAX_VALUE for value in problem.values().values())
    assert len({fact.name for fact in problem.facts}) == len(problem.facts)
    assert set(problem.asked) <= set(problem.values())
    if benchmark == "chain_choice":
        assert len(set(problem.options)) == 4
        assert problem.answer in LETTERS
        assert problem.options[LETTERS.index(problem.answer)] == problem.result
    else:
        assert problem.answer == str(problem.result)


def test_the_truth_of_an_example() -> None:
    assert EXAMPLE.values() == {"Ada": 5, "Ben": 8, "Cleo": 16}
    assert EXAMPLE.answer == "16"
    assert EXAMPLE.text == (
        "Suppose Ada has 5 coins. Ben has 3 more than Ada. Cleo has twice as many as Ben. "
        "How many coins does Cleo have?"
    )


def test_the_right_letter_is_about_uniform() -> None:
    answers = [p.answer for p in itertools.islice(problems("chain_choice", "test", 0), 400)]
    for letter in LETTERS:  # 100 expected, standard deviation 8.7
        assert 65 <= answers.count(letter) <= 135


# --- truth relative to the context


def test_right_and_wrong_are_relative_to_what_was_said() -> None:
    said = State(EXAMPLE).after(Meaning("value", "Ada", 6))  # wrong: it is 5
    assert said.last_is_wrong()
    assert said.next_meanings() == [Meaning("fix", "Ada", 5)]
    mended = said.after(Meaning("fix", "Ada", 5))
    assert not mended.last_is_wrong()
    assert mended.is_right(Meaning("value", "Ben", 8))

    went_on = said.after(Meaning("value", "Ben", 9))  # 6 + 3: right after the wrong 6
    assert not went_on.last_is_wrong()
    assert went_on.is_right(Meaning("value", "Cleo", 18))
    assert not went_on.is_right(Meaning("value", "Cleo", 16))


def test_steps_out_of_turn_are_wrong_and_say_nothing() -> None:
    start = State(EXAMPLE)
    for meaning in (Meaning("value", "Ben", 8), Meaning("value", "Zoe", 3), None):
        assert not start.is_right(meaning)
        assert start.after(meaning) == start


def test_branches_may_come_in_any_order() -> None:
    facts = (Fact("Ada", "is", 2), Fact("Dan", "is", 7), Fact("Ben", "more", 1, "Ada"))
    problem = ChainProblem("chain_branch", facts, "keys", ("Ben", "Dan"))
    assert State(problem).next_meanings() == [
        Meaning("value", "Ada", 2),
        Meaning("value", "Dan", 7),
    ]
    state = State(problem).after(Meaning("value", "Dan", 7)).after(Meaning("value", "Ada", 2))
    assert state.is_right(Meaning("value", "Ben", 3))
    assert state.is_right(Meaning("check", "Ada", 2))
    state = state.after(Meaning("value", "Ben", 3))
    assert state.is_right(Meaning("sum", "Ben+Dan", 10))
    state = state.after(Meaning("sum", "Ben+Dan", 10))
    assert state.is_right(Meaning("done", "", 10))
    assert not state.is_right(Meaning("done", "", 11))
    assert state.after(Meaning("done", "", 10)).next_meanings() == []


@given(benchmarks, styles, seeds)
@settings(deadline=None)
def test_what_an_author_chooses_is_right_and_leads_to_the_answer(
    benchmark: str, style: Style, seed: int
) -> None:
    rng = random.Random(seed)
    problem = make_problem(benchmark, rng)
    last = None
    for state, meaning, _ in write(problem, style, rng):
        assert state.is_right(meaning)
        last = meaning
    letter = problem.answer if problem.options else ""
    assert last == Meaning("done", letter, problem.result)


# --- language


@given(benchmarks, styles, seeds, st.sampled_from([0.0, 0.3]))
@settings(max_examples=200, deadline=None)
def test_parse_reads_what_render_writes(
    benchmark: str, style: Style, seed: int, error_rate: float
) -> None:
    rng = random.Random(seed)
    problem = make_problem(benchmark, rng)
    for state, meaning, text in write(problem, style, rng, error_rate):
        assert parse(text, state) == meaning, text
        assert text.endswith(THINK_END if meaning.kind == "done" else "\n\n")
        assert "\n\n" not in text[:-2]


@pytest.mark.parametrize("style", STYLES)
def test_every_template_is_used_and_read(style: Style) -> None:
    templates = [t for (author, _), forms in TEMPLATES.items() if author == style for t in forms]
    assert len(templates) >= 12
    unused = {template: re.compile(_pattern(template) + r"\s") for template in templates}
    rng = random.Random(0)
    for benchmark in BENCHMARKS:
        for problem in itertools.islice(problems(benchmark, "train", 3), 150):
            for state, meaning, text in write(problem, style, rng, 0.2):
                assert parse(text, state) == meaning
                for template in [t for t, pattern in unused.items() if pattern.search(text)]:
                    del unused[template]
    assert not unused


def test_values_have_many_surface_forms() -> None:
    state = State(EXAMPLE).after(Meaning("value", "Ada", 5))
    rng = random.Random(0)
    for style in STYLES:
        written = {render(Meaning("value", "Ben", 8), state, style, rng) for _ in range(500)}
        assert len(written) >= 12
        assert {parse(text, state) for text in written} == {Meaning("value", "Ben", 8)}
    assert sum(len(TEMPLATES[style, "value"]) for style in STYLES) >= 12


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "Ben has eight coins.\n\n",
        "So Ben = 5 + 3 =\n\n",
        "So Ben = 5 + 3 = 8. And more.\n\n",
        "So Nobody = 5 + 3 = 8.\n\n",
        "Done: 16.\n\n",  # the end must close the thinking
        f"So Ben = 5 + 3 = 8.\n{THINK_END}",  # and only the end may
    ],
)
def test_what_the_grammar_does_not_know_has_no_meaning(text: str) -> None:
    assert parse(text, State(EXAMPLE).after(Meaning("value", "Ada", 5))) is None


def test_the_last_value_that_a_step_states_counts() -> None:
    state = State(EXAMPLE).after(Meaning("value", "Ada", 5))
    assert parse("From 5 + 3 = 9, Ben has 8.\n\n", state) == Meaning("value", "Ben", 8)


def test_a_known_value_said_again_is_a_check() -> None:
    state = State(EXAMPLE).after(Meaning("value", "Ada", 5))
    assert parse("Given: Ada has 5.\n\n", state) == Meaning("check", "Ada", 5)


@given(st.text(max_size=200))
@settings(deadline=None)
def test_parse_never_fails(text: str) -> None:
    parse(text, State(EXAMPLE))


def test_read_steps_goes_on_after_an_unreadable_step() -> None:
    steps = ["Given: Ada has 5.\n\n", "Hmm, what now?\n\n", "So Ben = 5 + 3 = 8.\n\n"]
    read = read_steps(EXAMPLE, steps)
    assert [meaning for _, meaning in read] == [
        Meaning("value", "Ada", 5),
        None,
        Meaning("value", "Ben", 8),
    ]
    assert [state.is_right(meaning) for state, meaning in read] == [True, False, True]


@pytest.mark.parametrize("style", STYLES)
def test_the_answer_is_boxed(style: Style) -> None:
    assert r"\boxed{16}" in render_answer("16", style, random.Random(0))
