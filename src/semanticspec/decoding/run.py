"""One problem being answered: its sequences, clock and random streams, and the text so far."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..backends import HFModel, HFSequence, Need, Pair, StopRule
from ..config import GenerationConfig
from ..sampling import Sampling, seeded
from ..types import Author, Counts, Generation, Problem, Step, StopReason
from .timing import Clock


@dataclass
class Tally:
    """Counts while they are being made; see ``Counts``."""

    n_draft_tokens_kept: int = 0
    n_steps_proposed: int = 0
    n_steps_accepted: int = 0
    n_tokens_proposed: int = 0
    n_tokens_accepted: int = 0


class Run:
    """Starts the clock, reads the prompt (``prefill``), and gathers what becomes a ``Generation``.

    ``authors`` says which models take part. The first of them owns the token ids of the result.
    """

    def __init__(
        self,
        pair: Pair,
        limits: GenerationConfig,
        problem: Problem,
        seed: int,
        authors: tuple[Author, ...],
    ) -> None:
        self.pair = pair
        self.limits = limits
        self.sampling = Sampling(limits.temperature, limits.top_p, limits.top_k)
        self.owner: HFModel = pair.target if authors[0] == "target" else pair.draft
        self.token_ids: list[int] = []
        self.steps: list[Step] = []
        self.tally = Tally()
        self.ended: str | None = None
        self._seed_key = (seed, problem.id, 0)
        self._random: dict[str, torch.Generator] = {}
        self.clock = Clock(self.owner.device)
        self._sequences: dict[Author, HFSequence] = {}
        with self.clock.phase("prefill"):
            for author in authors:
                model = pair.target if author == "target" else pair.draft
                self._sequences[author] = model.start(problem.prompt)
        self.n_prompt_tokens = len(self._sequences[authors[0]].token_ids)

    @property
    def target(self) -> HFSequence:
        return self._sequences["target"]

    @property
    def draft(self) -> HFSequence:
        return self._sequences["draft"]

    @property
    def n_left(self) -> int:
        """How many more tokens may be written."""
        return self.limits.max_new_tokens - len(self.token_ids)

    @property
    def writing(self) -> bool:
        """Whether the text is neither ended nor at its limit."""
        return self.ended != "end_of_text" and self.n_left > 0

    def random(self, role: str, device: torch.device | str | None = None) -> torch.Generator:
        """The random stream of a role, from hash(run seed, problem id, sample index, role)."""
        if role not in self._random:
            seed, *key = self._seed_key
            place = self.owner.device if device is None else device
            self._random[role] = seeded(int(seed), *key, role, device=place)
        return self._random[role]

    def finish(self) -> Generation:
        """Stop the clock and make the result; text without steps of its own is cut into steps."""
        wall_s, phase_s = self.clock.stop()
        passes = {a: s.n_passes - 1 for a, s in self._sequences.items()}
        reason: StopReason = "end_of_text" if self.ended == "end_of_text" else "max_new_tokens"
        return Generation(
            text=self.owner.decode(self.token_ids),
            token_ids=tuple(self.token_ids),
            steps=tuple(self.steps),
            counts=Counts(
                n_prompt_tokens=self.n_prompt_tokens,
                n_tokens=len(self.token_ids),
                n_target_passes=passes.get("target", 0),
                n_draft_passes=passes.get("draft", 0),
                **vars(self.tally),
            ),
            wall_s=wall_s,
            phase_s=phase_s,
            stop_reason=reason,
        )

    def cut_into_steps(self, author: Author) -> None:
        """Make steps of a text that was written in one go."""
        start, previous = 0, None
        for end, token in enumerate(self.token_ids, start=1):
            last = end == len(self.token_ids)
            if last or self.owner.step_ends.reason(token, previous, steps=True):
                ids = self.token_ids[start:end]
                self.steps.append(Step(author, self.owner.decode(ids), len(ids)))
                start, previous = end, None
            else:
                previous = token


@dataclass
class Proposal:
    """A step that the draft wrote: its ids in either vocabulary. Shapes: hidden [layers, T, H]."""

    draft_ids: list[int]
    target_ids: list[int]
    ended: str
    hidden: Tensor | None = None
    start: tuple[int, int] = field(default=(0, 0))
    """Lengths of the target's and the draft's text before the step."""


class StepRun(Run):
    """A run in which whole steps are proposed, read, kept or dropped.

    Both sequences hold exactly the accepted text after each step; ``check`` (debug mode) proves it.
    """

    def __init__(
        self, pair: Pair, limits: GenerationConfig, problem: Problem, seed: int, *, check: bool
    ) -> None:
        super().__init__(pair, limits, problem, seed, ("target", "draft"))
        self._check = check
        self._accepted: dict[Author, list[int]] = {
            "target": list(self.target.token_ids),
            "draft": list(self.draft.token_ids),
        }

    @property
    def thinking(self) -> bool:
        """Whether more steps are to be written before the answer."""
        return self.writing and self.ended != "think_end"

    def _step_rule(self) -> StopRule:
        return StopRule(min(self.limits.max_step_tokens, self.n_left))

    def propose(self, *, hidden: bool) -> Proposal:
        """The draft writes a step; its text is not accepted yet."""
        start = len(self.target.token_ids), len(self.draft.token_ids)
        with self.clock.phase("draft"):
            written = self.draft.write(
                self._step_rule(),
                sampling=self.sampling,
                generator=self.random("draft", self.pair.draft.device),
                hidden=hidden,
            )
            target_ids = self.pair.to_target(written.token_ids)[: self.n_left]
        self.tally.n_steps_proposed += 1
        return Proposal(written.token_ids, target_ids, written.ended, written.hidden, start)

    def read(self, proposal: Proposal, *, hidden: bool) -> Tensor | None:
        """The target reads a proposed step in one pass. Shapes: hidden [layers, T, H]."""
        with self.clock.phase("verify"):
            need = Need.HIDDEN if hidden else Need.LAST
            return self.target.forward(proposal.target_ids, need=need).hidden

    def keep(
        self, proposal: Proposal, p_target: float | None = None, p_draft: float | None = None
    ) -> None:
        """Accept a proposed step that the target has read."""
        self.tally.n_steps_accepted += 1
        self.tally.n_draft_tokens_kept += len(proposal.target_ids)
        step = self._step("draft", proposal.target_ids, True, p_target, p_draft)
        self._commit(step, proposal.target_ids, proposal.draft_ids, proposal.ended)

    def drop(
        self, proposal: Proposal, p_target: float | None = None, p_draft: float | None = None
    ) -> None:
        """Roll both models back to before the proposal and let the target write the step."""
        self.target.crop(proposal.start[0])
        self.draft.crop(proposal.start[1])
        self.target_step(proposal, p_target, p_draft)

    def target_step(
        self,
        rejected: Proposal | None = None,
        p_target: float | None = None,
        p_draft: float | None = None,
    ) -> None:
        """The target writes the next step; the draft will read it with its next pass."""
        with self.clock.phase("target"):
            written = self.target.write(
                self._step_rule(), sampling=self.sampling, generator=self.random("target")
            )
        draft_ids = self.pair.to_draft(written.token_ids)
        self.draft.append(draft_ids)
        step = self._step(
            "target", written.token_ids, False if rejected else None, p_target, p_draft, rejected
        )
        self._commit(step, written.token_ids, draft_ids, written.ended)

    def answer(self, by: Author) -> None:
        """What follows the thinking, written in one go by one of the two models."""
        if not self.writing:
            return
        sequence = self.target if by == "target" else self.draft
        with self.clock.phase(by):
            written = sequence.write(
                StopRule(self.n_left, steps=False),
                sampling=self.sampling,
                generator=self.random(by),
            )
        ids = written.token_ids
        if by == "draft":
            ids = self.pair.to_target(ids)[: self.n_left]
            self.tally.n_draft_tokens_kept += len(ids)
        self.token_ids += ids
        self.steps.append(self._step(by, ids, None))
        self.ended = written.ended

    def _step(
        self,
        author: Author,
        ids: list[int],
        accepted: bool | None,
        p_target: float | None = None,
        p_draft: float | None = None,
        rejected: Proposal | None = None,
    ) -> Step:
        text = self.pair.draft.decode(rejected.draft_ids) if rejected else None
        n_rejected = len(rejected.draft_ids) if rejected else 0
        return Step(
            author, self.owner.decode(ids), len(ids), accepted, p_target, p_draft, text, n_rejected
        )

    def _commit(self, step: Step, target_ids: list[int], draft_ids: list[int], ended: str) -> None:
        self.steps.append(step)
        self.token_ids += target_ids
        self.ended = ended
        self._accepted["target"] += target_ids
        self._accepted["draft"] += draft_ids
        if self._check:
            for author, sequence in self._sequences.items():
                assert sequence.token_ids == self._accepted[author], f"{author} holds other text"
                sequence.check(tolerance=1e-4 if sequence.is_float32 else 0.1)
