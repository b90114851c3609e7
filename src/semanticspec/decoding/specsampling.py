"""Speculative sampling: the draft proposes tokens, the target keeps those it might have written.

Source: arXiv 2211.17192, algorithm 1; arXiv 2302.01318, algorithm 2. Lossless: the text is
distributed as if the target had written it alone.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..backends import Need, Pair
from ..config import GenerationConfig, SpecSamplingConfig
from ..errors import UserError
from ..sampling import accept_tokens, draw
from ..types import Generation, Problem
from .base import Method
from .run import Run


class SpecSampling(Method):
    """``gamma`` tokens proposed at a time; both models share one vocabulary."""

    def __init__(
        self,
        config: SpecSamplingConfig,
        pair: Pair,
        limits: GenerationConfig,
        *,
        debug: bool = False,
    ) -> None:
        super().__init__(pair, limits, debug=debug)
        if not pair.same_vocabulary:
            raise UserError(
                "method=specsampling: the target's and the draft's vocabularies differ; choose a "
                "draft of the same family, or a step-level method such as semanticspec"
            )
        self.gamma = config.gamma

    def generate(self, problem: Problem, seed: int) -> Generation:
        run = Run(self.pair, self.limits, problem, seed, ("target", "draft"))
        ends = self.pair.target.step_ends.end_of_text
        while run.writing:
            before = len(run.target.token_ids), len(run.draft.token_ids)
            with run.clock.phase("draft"):
                proposed, q = self._propose(run, min(self.gamma, run.n_left - 1))
            with run.clock.phase("verify"):
                logits = run.target.forward(proposed, need=Need.ALL).logits
                p = run.sampling.probabilities(logits)
                n_kept, token = accept_tokens(p, q, proposed, run.random("accept"))
            # What comes out ends with the first end of text, wherever it was proposed.
            out = [*proposed[:n_kept], token]
            stop = next((i for i, t in enumerate(out, start=1) if t in ends), None)
            if stop is not None:
                out, run.ended = out[:stop], "end_of_text"
            for sequence, start in zip((run.target, run.draft), before, strict=True):
                sequence.crop(start + min(n_kept, len(out)))
                sequence.append(out[n_kept:])
            run.token_ids += out
            run.tally.n_tokens_proposed += len(proposed)
            run.tally.n_tokens_accepted += n_kept
            run.tally.n_draft_tokens_kept += min(n_kept, len(out))
            if self.debug:
                run.target.check(tolerance=1e-4 if run.target.is_float32 else 0.1)
                run.draft.check(tolerance=1e-4 if run.draft.is_float32 else 0.1)
        run.cut_into_steps("target")
        return run.finish()

    def _propose(self, run: Run, n: int) -> tuple[list[int], Tensor]:
        """Up to ``n`` tokens and the distributions they were drawn from. Shapes: q [n, V]."""
        proposed: list[int] = []
        distributions: list[Tensor] = []
        generator = run.random("draft", self.pair.draft.device)
        while len(proposed) < n:
            q = run.sampling.probabilities(run.draft.next_logits())
            token = draw(q, generator)
            proposed.append(token)
            distributions.append(q.to(self.pair.target.device))
            run.draft.append([token])
            if token in self.pair.target.step_ends.end_of_text:
                break
        return proposed, torch.stack(distributions) if distributions else torch.empty(0)
