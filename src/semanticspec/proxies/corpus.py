"""Training text for the embedded pair, and the tokenizer made from it.

A training example is a problem with a solution in which both authors take turns, as they will in
use. An author learns from its own steps only. Some steps state a wrong value; nobody learns to
write those, and what follows them is a repair. So the target learns what a wrong step looks like,
as a real reasoning model does that says "wait".
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from .language import OWN_WORDS, Style, choose_next, render, render_answer
from .problems import BENCHMARKS, MAX_VALUE, ChainProblem, Meaning, Split, State, make_problem

LONGEST = max(most for _, most in BENCHMARKS.values())
WRONG_RATE: dict[Style, float] = {"target": 0.02, "draft": 0.12}
PAD, USER, ASSISTANT, END = "<|pad|>", "<|user|>", "<|assistant|>", "<|end|>"
CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>\n{{ message['content'] }}\n"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>\n<think>\n{% endif %}"
)
# Words with their leading space, numbers up to two digits, punctuation with the line ends that
# follow it: so that a sentence's end and the blank line after it are one token, as in Qwen's.
_SPLIT = r" ?\p{L}+| ?\p{N}{1,2}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


@dataclass(frozen=True)
class Piece:
    """A part of a training text and whether the author learns to write it."""

    text: str
    learn: bool


def prompt_text(problem: ChainProblem) -> str:
    """The problem as the chat template would put it."""
    return f"{USER}\n{problem.text}\n{ASSISTANT}\n<think>\n"


def _wrong(meaning: Meaning, rng: random.Random) -> Meaning:
    """The same statement with another value, mostly a near one."""
    value = meaning.value
    while value == meaning.value or value < 0:
        near = rng.random() < 0.6
        value = meaning.value + rng.randint(-3, 3) if near else rng.randint(0, MAX_VALUE)
    return Meaning(meaning.kind, meaning.subject, value)


def solution(
    problem: ChainProblem, author: Style, rng: random.Random, *, wrong: float = 1.0
) -> list[Piece]:
    """One solution: the author's own steps and, in some examples, the other one's between them.

    ``wrong`` scales how often a step states a wrong value.
    """
    other: Style = "draft" if author == "target" else "target"
    own_share = rng.choice((1.0, 1.0, 0.7, 0.4))
    state, pieces = State(problem), []
    while not state.finished:
        writer = author if rng.random() < own_share else other
        meaning = choose_next(state, writer, rng)
        spoilt = meaning.kind in ("value", "sum") and rng.random() < wrong * WRONG_RATE[writer]
        if spoilt:
            meaning = _wrong(meaning, rng)
        words: Style = writer if rng.random() < OWN_WORDS[writer] else _opposite(writer)
        text = render(meaning, state, words, rng)
        pieces.append(Piece(text, writer == author and not spoilt))
        state = state.after(meaning)
    words = author if rng.random() < OWN_WORDS[author] else other
    pieces.append(Piece(render_answer(problem.answer, words, rng) + END, True))
    return pieces


def _opposite(style: Style) -> Style:
    return "draft" if style == "target" else "target"


def draw_problem(rng: random.Random, split: Split, cap: int) -> ChainProblem:
    """A problem of any benchmark with at most ``cap`` facts a chain (the curriculum's knob)."""
    while True:
        benchmark = rng.choices(tuple(BENCHMARKS), weights=(1, 1, 2, 2))[0]
        high = BENCHMARKS[benchmark][1]
        n_facts = rng.randint(1, min(cap, high)) if cap < high or rng.random() < 0.2 else None
        problem = make_problem(benchmark, rng, n_facts=n_facts)
        if problem.split == split:
            return problem


def example(
    author: Style, rng: random.Random, *, cap: int, wrong: float = 1.0
) -> tuple[str, list[Piece]]:
    """One training example: a prompt and a solution's pieces. Only from the train split."""
    problem = draw_problem(rng, "train", cap)
    return prompt_text(problem), solution(problem, author, rng, wrong=wrong)


def build_tokenizer(seed: int, n_texts: int = 20_000) -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer in which every word of the grammar is one token."""
    rng = random.Random(f"tokenizer/{seed}")
    specials = "|".join(re.escape(mark) for mark in (USER, ASSISTANT, END, "<think>", "</think>"))
    texts: list[str] = []
    for index in range(n_texts):
        prompt, pieces = example("target" if index % 2 else "draft", rng, cap=LONGEST)
        text = prompt + "".join(piece.text for piece in pieces)
        texts += re.split(specials, text)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=4096,
        min_frequency=2,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[PAD, END, USER, ASSISTANT],
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens([AddedToken(mark, normalized=False) for mark in ("<think>", "</think>")])
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=PAD, eos_token=END, clean_up_tokenization_spaces=False
    )
    wrapped.chat_template = CHAT_TEMPLATE
    return wrapped
