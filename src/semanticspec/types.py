"""The few records that every part of the project shares. Frozen: made once, never changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Author = Literal["target", "draft"]
AnswerKind = Literal["math", "choice"]
StopReason = Literal["end_of_text", "max_new_tokens", "error"]
PHASES = ("prefill", "draft", "verify", "probe", "target", "other")


@dataclass(frozen=True)
class Problem:
    """One benchmark row, ready to be prompted and graded."""

    id: str
    """Unique within its benchmark and stable between runs."""
    prompt: str
    """The user's message, instruction included; the chat template is the model's business."""
    gold: str
    """The reference answer: mathematics, or a letter when ``kind`` is ``choice``."""
    kind: AnswerKind = "math"
    metadata: dict[str, Any] = field(default_factory=dict)
    """What else the benchmark knows (subject, level, ...); JSON values only."""


@dataclass(frozen=True)
class Step:
    """One step of a generation and how it came about."""

    author: Author
    """Who wrote the text that was kept."""
    text: str
    n_tokens: int
    accepted: bool | None = None
    """Whether the draft's proposal was kept; ``None`` when nothing was proposed."""
    p_target: float | None = None
    """Semantic probability of the *proposed* step under the target, in 0..1."""
    p_draft: float | None = None
    """Semantic probability of the *proposed* step under the draft, in 0..1."""
    rejected_text: str | None = None
    """The draft's proposal, when it was dropped."""
    n_rejected_tokens: int = 0


@dataclass(frozen=True)
class Counts:
    """Raw counts of one generation; ratios are made in ``metrics`` alone."""

    n_prompt_tokens: int = 0
    n_tokens: int = 0
    """Tokens of the answer, end of text included."""
    n_draft_tokens_kept: int = 0
    """Tokens of the answer that the draft wrote."""
    n_target_passes: int = 0
    """Forward passes of the target, prefill excluded."""
    n_draft_passes: int = 0
    n_steps_proposed: int = 0
    n_steps_accepted: int = 0
    n_tokens_proposed: int = 0
    """By token-level speculation."""
    n_tokens_accepted: int = 0


@dataclass(frozen=True)
class Generation:
    """What a decoding method made of one problem."""

    text: str
    token_ids: tuple[int, ...]
    """The target's ids (the draft's under ``draft_only``)."""
    steps: tuple[Step, ...]
    counts: Counts
    wall_s: float
    phase_s: dict[str, float]
    """Seconds by phase (``PHASES``); they add up to ``wall_s``."""
    stop_reason: StopReason


@dataclass(frozen=True)
class SampleRecord:
    """One line of ``samples.jsonl``: a problem under one seed, generated and graded."""

    problem_id: str
    seed: int
    gold: str
    text: str
    answer: str | None
    correct: bool
    truncated: bool
    """No answer because the text was cut off (or never left its thinking)."""
    stop_reason: StopReason
    wall_s: float
    phase_s: dict[str, float]
    counts: Counts
    steps: tuple[Step, ...]
    error: str | None = None
    """One line, when the problem failed; then the other fields are empty."""
    metadata: dict[str, Any] = field(default_factory=dict)
