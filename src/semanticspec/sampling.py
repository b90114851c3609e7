"""From logits to tokens: pure tensor functions, explicit generators, no state."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Sampling:
    """Temperature, then top-k, then top-p, in transformers' order. ``top_k`` 0 is off."""

    temperature: float = 0.6
    top_p: float = 1.0
    top_k: int = 0

    def probabilities(self, logits: Tensor) -> Tensor:
        """The distribution that tokens are drawn from; at temperature 0 all on the argmax.

        Shapes: logits [..., V] -> float32 [..., V].
        """
        logits = logits.float()
        if self.temperature == 0:
            chosen = logits.argmax(-1, keepdim=True)
            return torch.zeros_like(logits).scatter_(-1, chosen, 1.0)
        logits = logits / self.temperature
        if 0 < self.top_k < logits.shape[-1]:
            lowest = logits.topk(self.top_k).values[..., -1:]
            logits = logits.masked_fill(logits < lowest, float("-inf"))
        p = logits.softmax(-1)
        if self.top_p < 1:
            ordered, order = p.sort(-1, descending=True)
            # A token stays when those before it hold less than top_p together: the first always.
            beyond = ordered.cumsum(-1) - ordered >= self.top_p
            p = p.masked_fill(beyond.scatter(-1, order, beyond), 0.0)
            p = p / p.sum(-1, keepdim=True)
        return p

    def pick(self, logits: Tensor, generator: torch.Generator) -> int:
        """One token. Shapes: logits [V]."""
        if self.temperature == 0:
            return int(logits.argmax())
        return draw(self.probabilities(logits), generator)


def draw(p: Tensor, generator: torch.Generator) -> int:
    """One index from weights [V] (any positive sum), by inversion of one uniform number.

    Inversion in float64 costs a single random number a token whatever the vocabulary, and can
    never return an index of weight zero.
    """
    cumulative = p.cumsum(-1, dtype=torch.float64)
    u = torch.rand(1, generator=generator, dtype=torch.float64, device=p.device)
    return int(torch.searchsorted(cumulative, u * cumulative[-1], right=True))


def draw_rows(p: Tensor, generators: Sequence[torch.Generator]) -> list[int]:
    """One index a row of weights [B, V], each row from its own generator (as ``draw`` would)."""
    return [draw(row, generator) for row, generator in zip(p, generators, strict=True)]


def residual(p: Tensor, q: Tensor) -> Tensor:
    """What is left of ``p`` where ``q`` proposed less: max(0, p - q), unnormalised.

    Where p and q are equal nothing is left; rounding may still reject then, and p is right.

    Shapes: p, q [V] -> [V]. Source: arXiv 2211.17192, section 2.3.
    """
    left = (p - q).clamp_min(0)
    return left if float(left.sum()) > 0 else p


def accept_tokens(
    p: Tensor, q: Tensor, proposed: list[int], generator: torch.Generator
) -> tuple[int, int]:
    """Speculative sampling's rule: how many proposals are kept, and the token after them.

    Token i is kept with probability min(1, p/q). After the first that is not, one is drawn from
    the residual; if all are kept, one more is drawn from the target's own next distribution. The
    tokens that come out are distributed as if drawn from ``p`` one by one.

    Shapes: p [n + 1, V], q [n, V], n = len(proposed). Source: arXiv 2211.17192, algorithm 1.
    """
    for index, token in enumerate(proposed):
        u = torch.rand((), generator=generator, dtype=torch.float64, device=p.device)
        if float(u) * float(q[index, token]) >= float(p[index, token]):
            return index, draw(residual(p[index], q[index]), generator)
    return len(proposed), draw(p[len(proposed)], generator)


def seeded(seed: int, *key: object, device: torch.device | str = "cpu") -> torch.Generator:
    """A generator whose stream depends on run seed and key (problem id, role, ...) alone."""
    text = "/".join(str(part) for part in (seed, *key))
    digest = hashlib.sha256(text.encode()).digest()
    generator = torch.Generator(device=device)
    generator.manual_seed(int.from_bytes(digest[:8], "big") >> 1)
    return generator
