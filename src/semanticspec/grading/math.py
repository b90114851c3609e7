"""Mathematical equality by math-verify, in a worker process that may be killed.

Symbolic comparison of a model's text can take for ever (a tower of powers) or blow up the memory.
So it runs elsewhere, with a time limit; a worker that misses it is killed and replaced.
"""

from __future__ import annotations

import atexit
import logging
import multiprocessing
import re
import threading
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

TIME_LIMIT_S = 4.0
_START_LIMIT_S = 60.0
_LONGEST = 2_000
_GSM8K = re.compile(r"####\s*(.+?)\s*$")
_FACTORIAL = re.compile(r"(\d+)\s*!")


def gold_value(gold: str) -> str:
    """The value of a reference answer: GSM8K's worked solutions end in ``#### 18``."""
    found = _GSM8K.search(gold.strip())
    return found[1] if found else gold.strip()


def equal(answer: str, gold: str, *, time_limit_s: float = TIME_LIMIT_S) -> bool | None:
    """Whether two LaTeX answers are the same value; ``None`` when it could not be told in time."""
    if _plain(answer) == _plain(gold):
        return True
    if len(answer) > _LONGEST or any(len(n) > 3 for n in _FACTORIAL.findall(answer)):
        return False  # nothing that a reference answer equals, and costly to find out
    return _WORKER.ask(answer, gold, time_limit_s)


def _plain(text: str) -> str:
    return re.sub(r"\s+", "", text.replace("\\left", "").replace("\\right", ""))


class _Worker:
    """One process that compares, started when first needed and replaced when it hangs."""

    def __init__(self) -> None:
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None
        self._lock = threading.Lock()

    def ask(self, answer: str, gold: str, time_limit_s: float) -> bool | None:
        with self._lock:
            pipe = self._pipe if self._alive() else self._start()
            assert pipe is not None
            try:
                pipe.send((answer, gold))
                if pipe.poll(time_limit_s):
                    return pipe.recv()
            except (EOFError, OSError):  # it died, of memory for instance
                pass
            self.stop()
            return None

    def _alive(self) -> bool:
        return self._process is not None and self._process.is_alive()

    def _start(self) -> Connection:
        self.stop()
        context = multiprocessing.get_context("spawn")
        self._pipe, far_end = context.Pipe()
        self._process = context.Process(target=_serve, args=(far_end,), daemon=True)
        self._process.start()
        far_end.close()
        if not self._pipe.poll(_START_LIMIT_S):
            raise RuntimeError("the grading worker did not start")
        self._pipe.recv()
        return self._pipe

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
        if self._pipe is not None:
            self._pipe.close()
        self._process = self._pipe = None


_WORKER = _Worker()
atexit.register(_WORKER.stop)


def _serve(pipe: Connection) -> None:
    """The worker's loop."""
    import resource  # noqa: PLC0415

    limit = 4 * 2**30
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    from math_verify import parse, verify  # noqa: PLC0415  (imports sympy, slowly)

    logging.getLogger("math_verify").setLevel(logging.ERROR)  # it warns of its timeouts being off
    pipe.send("ready")
    while True:
        try:
            answer, gold = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(_compare(parse, verify, answer, gold))
        except Exception:  # noqa: BLE001  (whatever sympy raises on odd input: not equal)
            pipe.send(False)


def _compare(parse, verify, answer: str, gold: str) -> bool:  # type: ignore[no-untyped-def]
    """math-verify on both sides; its own timeouts are off, as this process is bounded already."""
    ours, wanted = (
        parse(f"$\\boxed{{{side}}}$", parsing_timeout=None) for side in (answer, gold)
    )
    return bool(verify(wanted, ours, timeout_seconds=None))
