"""Load a benchmark from the hub, a local file, or the generator of synthetic problems."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..config import BenchmarkConfig
from ..errors import UserError
from ..types import Problem
from .synthetic import load_synthetic

log = logging.getLogger(__name__)

_READERS = {".json": "json", ".jsonl": "json", ".csv": "csv", ".parquet": "parquet"}


def load(config: BenchmarkConfig, *, limit: int | None = None) -> list[Problem]:
    """The first ``limit`` problems of a benchmark (all when ``None``), after ``skip``.

    Raises ``UserError`` when the data cannot be had or does not have the expected fields.
    """
    if config.source == "synthetic" and config.path is None:
        return load_synthetic(config, limit)
    rows = list(_read_file(config) if config.path else _read_hub(config))
    if config.expected_rows is not None and len(rows) != config.expected_rows:
        log.warning(
            "%s has %d rows, not the known %d: results will not compare with published ones",
            config.name, len(rows), config.expected_rows,
        )  # fmt: skip
    problems = [_problem(config, row, index) for index, row in enumerate(rows)]
    twice = [name for name, n in Counter(p.id for p in problems).items() if n > 1]
    if twice:
        raise UserError(
            f"benchmark={config.name}: {len(twice)} ids occur more than once, such as {twice[0]!r}; "
            "set benchmark.id_field to a unique column, or null to make ids from the text"
        )
    chosen = problems[config.skip :]
    return chosen if limit is None else chosen[:limit]


def _read_file(config: BenchmarkConfig) -> Iterable[dict[str, Any]]:
    import datasets  # noqa: PLC0415  (slow to import, and most runs are synthetic)

    path = Path(str(config.path))
    if not path.is_file():
        raise UserError(f"benchmark.path={path}: no such file; give a json, jsonl, csv or parquet")
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        known = ", ".join(_READERS)
        raise UserError(f"benchmark.path={path}: unknown ending; use one of {known}")
    try:
        return datasets.load_dataset(reader, data_files=str(path), split="train")
    except (OSError, ValueError, datasets.exceptions.DatasetGenerationError) as error:
        reason = str(error.__cause__ or error).splitlines()[0]
        raise UserError(f"benchmark.path={path}: cannot be read as {reader} ({reason})") from error


def _read_hub(config: BenchmarkConfig) -> Iterable[dict[str, Any]]:
    import datasets  # noqa: PLC0415

    try:
        return datasets.load_dataset(
            config.hub_name, config.hub_config, split=config.split, revision=config.revision
        )
    except (OSError, ValueError, RuntimeError) as error:  # gated, offline, renamed, no such split
        reason = str(error).strip().splitlines()[0][:160]
        raise UserError(
            f"benchmark={config.name}: {config.hub_name} is out of reach on the hub; set "
            f"benchmark.path to a local copy, or go online (and log in if it is gated) ({reason})"
        ) from error


def _problem(config: BenchmarkConfig, row: dict[str, Any], index: int) -> Problem:
    for name in (config.problem_field, config.answer_field, config.id_field):
        if name is not None and name not in row:
            raise UserError(
                f"benchmark={config.name}: row {index} has no field {name!r}; set "
                f"benchmark.problem_field, answer_field or id_field to one of {', '.join(row)}"
            )
    text = str(row[config.problem_field])
    if config.id_field is None:
        # By content, so that dropped rows do not rename the others.
        name = hashlib.sha256(text.encode()).hexdigest()[:12]
    else:
        name = str(row[config.id_field])
    kept = (config.problem_field, config.answer_field, config.id_field, "solution")
    return Problem(
        id=name,
        prompt=config.prompt_template.replace("{problem}", text),
        gold=str(row[config.answer_field]),
        kind="choice" if config.kind == "choice" else "math",
        metadata={
            key: value
            for key, value in row.items()
            if key not in kept and isinstance(value, str | int | float | bool)
        },
    )
