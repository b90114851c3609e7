"""A process that compares answers and may be killed.

Symbolic comparison of a model's text can take for ever (a tower of powers) or blow up the memory.
So it runs elsewhere, with a time limit; a worker that misses it is killed and replaced.
"""

from __future__ import annotations

import atexit
import json
import select
import subprocess
import sys
import threading
from pathlib import Path

_JUDGE = Path(__file__).with_name("judge.py")
_START_LIMIT_S = 60.0


class Worker:
    """One process, started when first needed and replaced when it hangs or dies."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        atexit.register(self.stop)

    @property
    def pid(self) -> int | None:
        """Of the process that would be asked next; ``None`` before the first question."""
        return None if self._process is None else self._process.pid

    def ask(self, answer: str, gold: str, *, time_limit_s: float) -> bool | None:
        """The verdict; ``None`` when it did not come in time. Raises ``RuntimeError``: no start."""
        with self._lock:
            process = self._running() or self._start()
            verdict = ""
            try:
                verdict = _exchange(process, json.dumps([answer, gold]), time_limit_s)
            except OSError:  # it died
                pass
            finally:  # also on Ctrl-C: a late verdict must not answer the next question
                if not verdict:
                    self.stop()
            return json.loads(verdict) if verdict else None

    def stop(self) -> None:
        """Kill the process, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()  # closes the pipes

    def _running(self) -> subprocess.Popen[str] | None:
        return self._process if self._process and self._process.poll() is None else None

    def _start(self) -> subprocess.Popen[str]:
        self.stop()
        # -P: the folder of the script, with its math.py, must not come first among the modules.
        self._process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-P", str(_JUDGE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        if not _exchange(self._process, None, _START_LIMIT_S):
            self.stop()
            raise RuntimeError("the grading worker did not start: is math-verify installed?")
        return self._process


def _exchange(process: subprocess.Popen[str], question: str | None, time_limit_s: float) -> str:
    """Send a line, if any, and read one; empty when none came in time."""
    assert process.stdin is not None and process.stdout is not None
    if question is not None:
        process.stdin.write(question + "\n")
        process.stdin.flush()
    ready, _, _ = select.select([process.stdout], [], [], time_limit_s)
    return process.stdout.readline() if ready else ""
