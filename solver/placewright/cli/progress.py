"""One line on stderr while CP-SAT works, on terminals only: goal, best value, bound, time. It is gone when the work is done.

Modify this file when the line says something else.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from types import TracebackType


class Progress:
    """Context manager; pass ``update`` to ``plan(progress=...)``. Without a terminal it does nothing."""

    def __init__(self, quiet: bool = False) -> None:
        self.active = not quiet and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._text = "solving"
        self._started = time.perf_counter()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def update(self, goal: str, value: int | None, bound: int | None, seconds: float) -> None:
        """What the last goal came to."""
        best = "-" if value is None else f"{value:,}"
        low = "-" if bound is None else f"{bound:,}"
        self._text = f"{goal}: best {best}, bound {low}"

    def _tick(self) -> None:
        while not self._done.wait(0.1):
            text = f"{self._text}, {time.perf_counter() - self._started:.1f} s"
            self._write(f"\r\x1b[2K{text[: _columns() - 1]}")

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(text)
            sys.stderr.flush()

    def __enter__(self) -> Progress:
        if self.active:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.active:
            self._done.set()
            self._thread.join()
            self._write("\r\x1b[2K")


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
