"""A target and a draft, and how text passes between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from ..config import ModelConfig
from .hf import HFModel
from .load import load_model


@dataclass(frozen=True)
class Pair:
    """Two loaded models. Either may be used alone."""

    name: str
    target: HFModel
    draft: HFModel

    @cached_property
    def same_vocabulary(self) -> bool:
        """Whether an id means the same text to both: by content, whatever the models are called."""
        return self.target.tokenizer.get_vocab() == self.draft.tokenizer.get_vocab()

    def to_target(self, ids: list[int]) -> list[int]:
        """The draft's ids as the target's: unchanged, or by way of their text."""
        return self._pass_on(ids, self.draft, self.target)

    def to_draft(self, ids: list[int]) -> list[int]:
        """The target's ids as the draft's."""
        return self._pass_on(ids, self.target, self.draft)

    def _pass_on(self, ids: list[int], source: HFModel, sink: HFModel) -> list[int]:
        if self.same_vocabulary:
            return ids
        ends = source.step_ends.end_of_text
        passed = sink.encode(source.decode([i for i in ids if i not in ends]))
        return [*passed, sink.tokenizer.eos_token_id] if ids and ids[-1] in ends else passed


def load_pair(config: ModelConfig) -> Pair:
    """Load both models. Raises ``UserError`` when one cannot be had."""
    return Pair(
        config.name,
        load_model(config.target, key="model.target"),
        load_model(config.draft, key="model.draft"),
    )
