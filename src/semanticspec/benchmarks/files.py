"""Read the rows of a local file, values as written."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import UserError

Row = dict[str, Any]


def _jsonl(path: Path) -> list[Row]:
    lines = path.read_text(encoding="utf-8").split("\n")  # splitlines() splits inside strings too
    return [json.loads(line) for line in lines if line.strip()]


def _json(path: Path) -> list[Row]:
    rows = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(rows, list):
        raise ValueError("not a list of rows")
    return rows


def _csv(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _parquet(path: Path) -> list[Row]:
    import pandas  # noqa: PLC0415  (slow to import)

    return [
        {str(name): value for name, value in row.items()}
        for row in pandas.read_parquet(path).to_dict("records")
    ]


_READERS: dict[str, Callable[[Path], list[Row]]] = {
    ".jsonl": _jsonl,
    ".json": _json,
    ".csv": _csv,
    ".parquet": _parquet,
}


def read_rows(path: Path) -> list[Row]:
    """All rows of a jsonl, json, csv or parquet file. Raises ``UserError`` naming the mend."""
    known = ", ".join(_READERS)
    if not path.is_file():
        raise UserError(f"benchmark.path={path}: no such file; give a {known} file")
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise UserError(f"benchmark.path={path}: unknown ending; use one of {known}")
    try:
        rows = read(path)
        if not all(isinstance(row, dict) for row in rows):
            raise ValueError("a row is not an object")
    except (OSError, ValueError, csv.Error) as error:
        raise UserError(
            f"benchmark.path={path}: not readable as {path.suffix} ({first_line(error)}); "
            f"mend the file or give another ({known})"
        ) from error
    return rows


def first_line(error: BaseException) -> str:
    """An error's message, short enough for a line."""
    return (str(error).strip() or type(error).__name__).splitlines()[0][:160]
