"""A control: steps are kept by the toss of a coin, at a given rate.

What semanticspec gains in accuracy over this at the same rate, its probes have earned.
"""

from __future__ import annotations

import torch

from ..backends import Pair
from ..config import GenerationConfig, RandomAcceptConfig
from ..types import Generation, Problem
from .base import Method
from .run import StepRun


class RandomAccept(Method):
    """SemanticSpec's loop, with a coin in the place of the probes."""

    def __init__(
        self,
        config: RandomAcceptConfig,
        pair: Pair,
        limits: GenerationConfig,
        *,
        debug: bool = False,
    ) -> None:
        super().__init__(pair, limits, debug=debug)
        self.config = config

    def generate(self, problem: Problem, seed: int) -> Generation:
        run = StepRun(self.pair, self.limits, problem, seed, check=self.debug)
        while run.thinking and len(run.steps) < self.config.target_first_steps:
            run.target_step()
        while run.thinking:
            proposal = run.propose(hidden=False)
            run.read(proposal, hidden=False)
            u = float(torch.rand((), generator=run.random("accept", "cpu"), dtype=torch.float64))
            if u < self.config.rate:
                run.keep(proposal)
            else:
                run.drop(proposal)
        run.answer(self.config.answer_by)
        return run.finish()
