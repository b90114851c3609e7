"""SemanticSpec: the draft writes a step, the target reads it once and judges its meaning.

Two probes read the hidden states of the step, one under each model, and estimate how likely that
model is to say something with that meaning next. The step is kept when the target is likely enough
to have meant it: r = p_target / p_draft must reach ``tau`` and win against a uniform number. What
is dropped, the target writes itself.

Source: arXiv 2602.03708, and its public code (``tau``, first step by the target, who writes the
answer). Lossy: at ``tau`` 0 and with true probabilities the step's meaning is distributed as
min(P_D, P_T) + Z P_T, with Z = TV(P_D, P_T).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ..backends import Pair
from ..config import GenerationConfig, SemanticSpecConfig
from ..probing import Probes
from ..types import Generation, Problem
from .base import Method
from .run import Proposal, StepRun


@dataclass(frozen=True)
class Verdict:
    """Whether a proposed step is kept, and the semantic probabilities behind it."""

    accepted: bool
    p_target: float | None = None
    p_draft: float | None = None


class SemanticSpec(Method):
    """Step-level speculation with semantic acceptance."""

    def __init__(
        self,
        config: SemanticSpecConfig,
        pair: Pair,
        probes: Probes,
        limits: GenerationConfig,
        *,
        debug: bool = False,
    ) -> None:
        super().__init__(pair, limits, debug=debug)
        self.config = config
        self.probes = probes

    def generate(self, problem: Problem, seed: int) -> Generation:
        run = StepRun(self.pair, self.limits, problem, seed, check=self.debug)
        while run.thinking and len(run.steps) < self.config.target_first_steps:
            run.target_step()
        while run.thinking:
            proposal = run.propose(hidden=True)
            verdict = self.judge(run, proposal)
            if verdict.accepted:
                run.keep(proposal, verdict.p_target, verdict.p_draft)
            else:
                run.drop(proposal, verdict.p_target, verdict.p_draft)
        run.answer(self.config.answer_by)
        return run.finish()

    def judge(self, run: StepRun, proposal: Proposal) -> Verdict:
        """Read the step with the target, then compare what the two probes say of it."""
        hidden = run.read(proposal, hidden=True)
        with run.clock.phase("probe"):
            assert hidden is not None and proposal.hidden is not None
            p_target = self.probes.target.predict(hidden)
            p_draft = self.probes.draft.predict(proposal.hidden)
            r = p_target / max(p_draft, torch.finfo(torch.float32).tiny)
            u = float(torch.rand((), generator=run.random("accept", "cpu"), dtype=torch.float64))
        return Verdict(r >= self.config.tau and u < r, p_target, p_draft)
