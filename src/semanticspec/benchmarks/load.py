"""Load a benchmark from the hub, a local file, or the generator of synthetic problems."""

from __future__ import annotations

import hashlib
import logging
from collections import Counter
from pathlib import Path

from ..config import BenchmarkConfig
from ..errors import UserError
from ..types import Problem
from .files import Row, first_line, read_rows
from .synthetic import load_synthetic

log = logging.getLogger(__name__)


def load(config: BenchmarkConfig, *, limit: int | None = None) -> list[Problem]:
    """The first ``limit`` problems of a benchmark (all when ``None``), after ``skip``.

    Raises ``UserError`` when the data cannot be had or does not have the expected fields.
    """
    if config.source == "synthetic" and config.path is None:
        return load_synthetic(config, limit)
    rows = read_rows(Path(config.path)) if config.path else _read_hub(config)
    if config.expected_rows is not None and len(rows) != config.expected_rows:
        log.warning(
            "%s has %d rows, not the known %d: results will not compare with published ones",
            config.name, len(rows), config.expected_rows,
        )  # fmt: skip
    problems = [_problem(config, row, index) for index, row in enumerate(rows)]
    twice = [name for name, n in Counter(p.id for p in problems).items() if n > 1]
    if twice:
        raise UserError(
            f"benchmark={config.name}: {len(twice)} ids occur more than once, such as "
            f"{twice[0]!r}; set benchmark.id_field to a unique column, or null for ids by content"
        )
    chosen = problems[config.skip :][:limit]
    if not chosen:
        where = config.path or config.hub_name
        raise UserError(
            f"benchmark={config.name}: no rows are left of {len(rows)} in {where}; "
            "lower benchmark.skip or set benchmark.path to another file"
        )
    return chosen


def _read_hub(config: BenchmarkConfig) -> list[Row]:
    import datasets  # noqa: PLC0415  (slow to import, and most runs are synthetic)

    try:
        return datasets.load_dataset(
            str(config.hub_name), config.hub_config, split=config.split, revision=config.revision
        ).to_list()
    except Exception as error:  # gated, offline, renamed, cut off: each is of its own kind
        raise UserError(
            f"benchmark={config.name}: {config.hub_name} cannot be had from the hub "
            f"({first_line(error)}); set benchmark.path=FILE to a local copy, or go online "
            "(and log in if it is gated)"
        ) from error


def _problem(config: BenchmarkConfig, row: Row, index: int) -> Problem:
    for name in (config.problem_field, config.answer_field, config.id_field):
        if name is not None and name not in row:
            raise UserError(
                f"benchmark={config.name}: row {index} has no field {name!r}; set benchmark."
                f"problem_field, answer_field or id_field to one of {', '.join(map(str, row))}"
            )
        if name is not None and row[name] in (None, ""):
            raise UserError(
                f"benchmark={config.name}: row {index} has an empty {name!r}; "
                "mend the row or set benchmark.path to another file"
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
        gold=str(row[config.answer_field]).rpartition("####")[2].strip(),  # GSM8K's "#### 18"
        kind="choice" if config.kind == "choice" else "math",
        metadata={
            key: value
            for key, value in row.items()
            if key not in kept and isinstance(value, str | int | float | bool)
        },
    )
