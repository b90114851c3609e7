"""The other end of the scale: the draft writes alone, as fast and as wrong as it is."""

from __future__ import annotations

from ..types import Author
from .autoregressive import Autoregressive


class DraftOnly(Autoregressive):
    """The draft writes everything."""

    author: Author = "draft"
