"""The baseline: one model writes alone, token by token."""

from __future__ import annotations

from ..backends import StopRule
from ..types import Author, Generation, Problem
from .base import Method
from .run import Run


class Autoregressive(Method):
    """The target writes everything. Every speedup is measured against this."""

    author: Author = "target"

    def generate(self, problem: Problem, seed: int) -> Generation:
        run = Run(self.pair, self.limits, problem, seed, (self.author,))
        sequence = run.target if self.author == "target" else run.draft
        with run.clock.phase(self.author):
            written = sequence.write(
                StopRule(run.n_left, steps=False),
                sampling=run.sampling,
                generator=run.random(self.author),
            )
        run.token_ids, run.ended = written.token_ids, written.ended
        if self.author == "draft":
            run.tally.n_draft_tokens_kept = len(run.token_ids)
        run.cut_into_steps(self.author)
        return run.finish()
