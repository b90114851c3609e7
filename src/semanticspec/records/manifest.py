"""What a run was: configuration, code, packages, machine, times."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

SCHEMA = 1
_PACKAGES = ("semanticspec", "torch", "transformers", "tokenizers", "math-verify", "numpy")


@dataclass(frozen=True)
class RunManifest:
    """``manifest.json`` of one run folder."""

    model: str
    method: str
    benchmark: str
    seed: int
    config: dict[str, Any]
    """Everything that the results depend on, resolved."""
    config_hash: str
    process: str
    """Names one launch: times are compared honestly only inside one."""
    git: dict[str, Any]
    packages: dict[str, str]
    hardware: dict[str, Any]
    started: str
    ended: str | None = None
    schema: int = SCHEMA

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def process_name() -> str:
    """A name for this launch, on this machine, at this time."""
    return f"{now()}-{os.getpid()}"


def git_state() -> dict[str, Any]:
    """Commit and dirty flag of the code; empty values outside a checkout. Never raises."""
    here = Path(__file__).parent
    try:
        sha, status = (
            subprocess.run(  # noqa: S603
                ["git", *arguments],
                cwd=here,
                capture_output=True,
                text=True,
                check=True,
                timeout=10,
            ).stdout.strip()
            for arguments in (["rev-parse", "HEAD"], ["status", "--porcelain", "-uno"])
        )
    except (OSError, subprocess.SubprocessError):
        return {"sha": None, "dirty": None}
    return {"sha": sha, "dirty": bool(status)}


def package_versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def hardware(accelerators: list[str], n_threads: int) -> dict[str, Any]:
    """The machine, in the words of its system."""
    return {
        "cpu": _cpu_name(),
        "n_cpus": os.cpu_count(),
        "n_threads": n_threads,
        "memory_gib": _memory_gib(),
        "accelerators": accelerators,
        "system": platform.platform(),
    }


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _memory_gib() -> float | None:
    if sys.platform == "win32":
        return None
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
