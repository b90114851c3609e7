"""Append, resume, read. Nothing is repeated, nothing is lost, nothing is mixed.

A folder belongs to one configuration and, while open, to one process (a lock that the system
drops when the process dies, however it dies). Each sample is one line, flushed to the disk before
the next begins; a line that a crash tore is cut off when the folder is opened again.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import pandas as pd

from ..errors import UserError
from ..types import SampleRecord
from .manifest import SCHEMA, RunManifest, now

log = logging.getLogger(__name__)
MANIFEST, SAMPLES, LOCK = "manifest.json", "samples.jsonl", ".lock"


class RunStore:
    """One open run folder; made by ``open_run``. Use as a context manager."""

    def __init__(self, folder: Path, manifest: RunManifest, lock: IO[str]) -> None:
        self.folder = folder
        self.manifest = manifest
        self._lock = lock
        self._records = _repaired(folder / SAMPLES)
        self._file = (folder / SAMPLES).open("a", encoding="utf-8")

    def done(self) -> set[tuple[str, int]]:
        """(problem id, seed) of every sample on record, failed ones included."""
        return {(record["problem_id"], record["seed"]) for record in self._records}

    @property
    def records(self) -> list[dict[str, Any]]:
        """Every sample on record, as read or appended."""
        return self._records

    def append(self, record: SampleRecord) -> None:
        """Write one sample; it is on the disk when this returns."""
        # The launch is kept with each sample: a run may be made in several.
        values = asdict(record) | {"process": self.manifest.process}
        if (record.problem_id, record.seed) in self.done():
            raise ValueError(f"{record.problem_id} under seed {record.seed} is on record already")
        self._file.write(json.dumps(values, ensure_ascii=False, allow_nan=False) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())
        self._records.append(values)

    def close(self) -> None:
        """Note the end in the manifest and let the folder go."""
        _write_manifest(self.folder, replace(self.manifest, ended=now()))
        self._file.close()
        self._lock.close()

    def __enter__(self) -> RunStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open_run(results_dir: Path, manifest: RunManifest) -> RunStore:
    """Open the folder of a configuration, new or begun before.

    The folder's name follows from the configuration, so that the same command goes on where it
    stopped. While another process has it open, ``-2`` (``-3``, ...) is taken instead.

    Raises ``UserError`` when the folder holds another configuration, or cannot be written.
    """
    stem = (
        f"{manifest.model}-{manifest.benchmark}-{manifest.method}"
        f"-s{manifest.seed}-{manifest.config_hash}"
    )
    for number in range(1, 1_000):
        folder = results_dir / (stem if number == 1 else f"{stem}-{number}")
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = (folder / LOCK).open("w")
        except OSError as error:
            raise UserError(f"results_dir={results_dir}: cannot be written ({error})") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            continue
        return _open_locked(folder, manifest, lock)
    raise UserError(f"results_dir={results_dir}: a thousand processes already run {stem}")


def _open_locked(folder: Path, manifest: RunManifest, lock: IO[str]) -> RunStore:
    if (folder / MANIFEST).exists():
        before = load_manifest(folder)
        if before["config_hash"] != manifest.config_hash:
            lock.close()
            raise UserError(
                f"{folder}: holds another configuration ({before['config_hash']}); move it away or "
                "choose another results_dir"
            )
        # The first start and the code that began the run stay on record.
        manifest = replace(manifest, started=before["started"], git=before["git"])
    _write_manifest(folder, manifest)
    return RunStore(folder, manifest, lock)


def _write_manifest(folder: Path, manifest: RunManifest) -> None:
    """Whole or not at all: a temporary file, flushed, then renamed."""
    scratch = folder / (MANIFEST + ".tmp")
    with scratch.open("w", encoding="utf-8") as file:
        json.dump(manifest.as_dict(), file, indent=2, ensure_ascii=False, allow_nan=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(folder / MANIFEST)


def _repaired(file: Path) -> list[dict[str, Any]]:
    """The samples of a file; a torn last line is cut off."""
    if not file.exists():
        return []
    size, whole = file.stat().st_size, _whole_lines(file)
    if len(whole) < size:
        log.warning("%s: cut off a torn last line of %d bytes", file, size - len(whole))
        with file.open("r+b") as opened:
            opened.truncate(len(whole))
    return _parsed(file, whole)


def _whole_lines(file: Path) -> bytes:
    """The file up to its last line end; what follows is torn, maybe inside a character."""
    raw = file.read_bytes()
    return raw[: raw.rfind(b"\n") + 1]


def _parsed(file: Path, whole: bytes) -> list[dict[str, Any]]:
    records = []
    # Not str.splitlines: a sample's text may hold line ends of Unicode's own.
    for number, line in enumerate(whole.split(b"\n")[:-1], start=1):
        try:
            records.append(json.loads(line))
        except ValueError as error:
            raise UserError(
                f"{file}: line {number} is not JSON ({error}); remove that line"
            ) from error
    return records


def load_manifest(folder: Path) -> dict[str, Any]:
    """A run's manifest. Raises ``UserError`` when it is damaged or of another schema."""
    file = folder / MANIFEST
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{file}: cannot be read ({error})") from error
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        raise UserError(f"{file}: not a manifest of schema {SCHEMA}; move its folder away")
    return manifest


def run_folders(paths: Iterable[Path]) -> list[Path]:
    """Every run folder at or below the given paths, in order of name."""
    found: set[Path] = set()
    for path in paths:
        if not path.exists():
            raise UserError(f"{path}: no such folder; results of run.py are under results/")
        found |= {manifest.parent for manifest in path.rglob(MANIFEST)}
    return sorted(found)


def load(path: Path | str | Iterable[Path | str]) -> pd.DataFrame:
    """One row a sample, with its run's names; counts and phases become columns.

    ``prefill_s`` ... ``other_s`` are seconds; ``run`` is the folder's name, ``process`` the launch
    that made the sample; ``steps`` stays a list.

    Raises ``UserError`` for a missing folder, and a damaged or foreign file.
    """
    paths = [path] if isinstance(path, str | Path) else list(path)
    rows: list[dict[str, Any]] = []
    for folder in run_folders(Path(p) for p in paths):
        manifest = load_manifest(folder)
        file = folder / SAMPLES
        named = {key: manifest[key] for key in ("model", "method", "benchmark", "config_hash")}
        named |= {"run": folder.name, "process": manifest["process"]}
        for record in _parsed(file, _whole_lines(file)) if file.exists() else []:
            counts, phases = record.pop("counts"), record.pop("phase_s")
            phases = {f"{phase}_s": seconds for phase, seconds in phases.items()}
            rows.append({**named, **record, **counts, **phases})
    return pd.DataFrame(rows)
