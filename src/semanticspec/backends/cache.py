"""A key-value cache in place: room is taken ahead, growth is amortised, a crop is one number."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

ROOM = 512


class InPlaceLayer(CacheLayerMixin):
    """One layer's keys and values: a view of the first ``length`` positions of a larger buffer.

    transformers' growing cache concatenates (copies everything) on each token; its static cache
    attends over the unused room. This one does neither. Layers with a sliding window keep the whole
    text too (the mask hides what is out of the window), so that a crop is always exact.

    Shapes: keys and values [B, n_heads, length, head_dim].
    """

    is_sliding = False
    is_croppable = True

    def __init__(self) -> None:
        super().__init__()
        self.length = 0
        self._keys = self._values = torch.empty(0)

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        self._keys = self._grown(self._keys, key_states, ROOM)
        self._values = self._grown(self._values, value_states, ROOM)
        self.is_initialized = True

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        end = self.length + key_states.shape[-2]
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        if end > self._keys.shape[-2]:
            self._keys = self._grown(self._keys, key_states, 2 * end)
            self._values = self._grown(self._values, value_states, 2 * end)
        self._keys[:, :, self.length : end] = key_states
        self._values[:, :, self.length : end] = value_states
        self.length = end
        return self._keys[:, :, :end], self._values[:, :, :end]

    def _grown(self, old: Tensor, states: Tensor, room: int) -> Tensor:
        """A buffer with at least ``room`` positions that begins with what ``old`` held."""
        batch, heads, new, width = states.shape
        buffer = states.new_empty(batch, heads, max(room, new), width)
        if self.length:
            buffer[:, :, : self.length] = old[:, :, : self.length]
        return buffer

    def stored(self) -> tuple[Tensor, Tensor]:
        """What is held now."""
        return self._keys[:, :, : self.length], self._values[:, :, : self.length]

    def branch(self, n: int) -> InPlaceLayer:
        """A layer of batch ``n`` whose rows all begin with this one's text (one copy each)."""
        other = InPlaceLayer()
        if self.length:
            keys, values = self.stored()
            other.update(keys.expand(n, -1, -1, -1), values.expand(n, -1, -1, -1))
        return other

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.length + query_length, 0

    def get_seq_length(self) -> int:
        return self.length

    def get_max_length(self) -> int:
        return -1


class InPlaceCache(Cache):
    """One ``InPlaceLayer`` a decoder layer."""

    layers: list[InPlaceLayer]

    def __init__(self, layers: list[InPlaceLayer]) -> None:
        super().__init__(layers=layers)  # type: ignore[arg-type]

    def crop_to(self, length: int) -> None:
        """Forget everything from position ``length`` on: O(1), nothing is copied."""
        for layer in self.layers:
            layer.length = min(layer.length, length)

    def branch(self, n: int) -> InPlaceCache:
        return InPlaceCache([layer.branch(n) for layer in self.layers])
