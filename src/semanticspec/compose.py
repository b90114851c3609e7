"""From ``conf/`` and command-line overrides to plain configuration objects, or one clear line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from hydra.errors import HydraException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from .config import Config, ProbingConfig, register
from .errors import UserError
from .validate import validate, validate_probing

ROOT = Path(__file__).parents[2]
"""The checkout, with ``conf/`` and ``probes/``."""

COMPOSE_ERRORS = (HydraException, OmegaConfBaseException)


def compose(overrides: Sequence[str] = ()) -> Config:
    """What ``python run.py OVERRIDES`` would run. Raises ``UserError``."""
    return read_config(_composed("config", overrides))


def compose_probing(overrides: Sequence[str] = ()) -> ProbingConfig:
    """The same for ``python -m semanticspec.probing``. Raises ``UserError``."""
    config = _plain(_composed("probing", overrides))
    validate_probing(config)
    return config


def read_config(composed: DictConfig) -> Config:
    """Hydra's result as plain objects, complete and checked. Raises ``UserError``."""
    config: Config = _plain(composed)
    validate(config)
    config.methods = config.methods or {config.method.name: config.method}
    config.benchmarks = config.benchmarks or {config.benchmark.name: config.benchmark}
    if config.probe.path is None:
        here, there = (root / "probes" / config.model.name for root in (Path(), ROOT))
        config.probe.path = str(there if there.is_dir() and not here.is_dir() else here)
    return config


def _composed(name: str, overrides: Sequence[str]) -> DictConfig:
    register()
    try:
        with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
            return hydra_compose(name, overrides=list(overrides))
    except COMPOSE_ERRORS as error:
        raise UserError(one_line(error)) from error


def _plain(composed: DictConfig) -> Any:
    """Interpolations resolved; no OmegaConf node is left."""
    try:
        return OmegaConf.to_object(composed)
    except COMPOSE_ERRORS as error:
        raise UserError(one_line(error)) from error


def one_line(error: Exception) -> str:
    """What Hydra or OmegaConf complain about, in one line with the choices that there are."""
    if isinstance(error, OverrideParseException):
        return f"{error.override}: not understood; write KEY=VALUE, quoted where it has spaces"
    cause = error.__cause__ or error
    if isinstance(cause, OmegaConfBaseException) and cause.full_key:
        parent = cause.parent_node
        keys = (
            sorted({str(key) for key in parent} - {"hydra"})
            if isinstance(parent, DictConfig)
            else []
        )
        if keys and cause.key not in keys:
            return f"{cause.full_key}: no such key; choose one of {', '.join(keys)}"
        return f"{cause.full_key}: {str(cause).splitlines()[0]}"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if "Could not find" not in lines[0]:
        return " ".join(lines)
    # In 'config': Could not find 'method/x' | Available options in 'method': | a | b | Config ...
    group, _, choice = lines[0].split("'")[-2].rpartition("/")
    end = next((i for i, line in enumerate(lines) if line.startswith("Config search")), None)
    return f"{group}={choice}: no such choice; choose one of {', '.join(lines[2:end])}"
