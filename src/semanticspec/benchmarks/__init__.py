"""Problems, loaded and put into words for a model."""

from .load import load
from .synthetic import chain_problem

__all__ = ["chain_problem", "load"]
