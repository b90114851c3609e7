"""Semantic probabilities: sample next steps, label them by meaning, train and judge probes."""

from .probe import Probe, Probes, find_probes, load_probes

__all__ = ["Probe", "Probes", "find_probes", "load_probes"]
