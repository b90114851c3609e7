"""The worker's program: whether two LaTeX answers are the same value, one question a line.

Started by ``worker.py`` as a script of its own. It knows nothing of the package, so that it starts
fast and what the launching program imports is not imported again.
"""

from __future__ import annotations

import contextlib
import json
import logging
import resource
import signal
import sys
from typing import Any, TextIO

from math_verify import parse, verify

_MEMORY_BYTES = 4 * 2**30
_ORPHAN_LIMIT_S = 60


def equal(answer: str, gold: str) -> bool:
    """math-verify on both sides; its own timeouts are off, as this process is bounded already."""
    ours, wanted = (parse(f"$\\boxed{{{side}}}$", parsing_timeout=0) for side in (answer, gold))
    return verify(wanted, ours, timeout_seconds=0) and not _tiny_and_apart(ours[0], wanted[0])


def _tiny_and_apart(ours: Any, wanted: Any) -> bool:
    """Whether these are two numbers that are equal only because both round to zero."""
    if not (getattr(ours, "is_number", False) and getattr(wanted, "is_number", False)):
        return False
    ours, wanted = ours.evalf(), wanted.evalf()
    size = max(abs(ours), abs(wanted))
    return bool(0 < size < 1e-4 and abs(ours - wanted) > 1e-3 * size)


def _bound() -> None:
    """Limit the memory, where the system can; leave Ctrl-C to the process that asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(ValueError, OSError):  # macOS refuses
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))


def serve(questions: TextIO, verdicts: TextIO) -> None:
    """Answer until the questions end."""
    print("ready", file=verdicts, flush=True)
    for question in questions:
        signal.alarm(_ORPHAN_LIMIT_S)  # ends this process even where nobody is left to kill it
        try:
            verdict = equal(*json.loads(question))
        except Exception:  # noqa: BLE001  (whatever sympy raises on odd input: not equal)
            verdict = False
        signal.alarm(0)
        print(json.dumps(verdict), file=verdicts, flush=True)


if __name__ == "__main__":
    logging.getLogger("math_verify").setLevel(logging.ERROR)  # it warns of its timeouts being off
    verdicts, sys.stdout = sys.stdout, sys.stderr  # whatever a library prints is no verdict
    _bound()
    serve(sys.stdin, verdicts)
