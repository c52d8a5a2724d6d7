"""What a command is doing, on the last line of the terminal once it takes two seconds."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, RLock, Thread
from typing import TextIO

_WAIT, _EVERY = 2.0, 0.25
_TURNS = "|/-\\"


class Activity:
    """A line on a terminal's stderr, which goes away before anything else is printed."""

    def __init__(self) -> None:
        self._lock, self._ended = RLock(), Event()
        self._text, self._width = "", 0
        self._stream: TextIO = sys.stderr
        self._started = self._quiet_since = 0.0

    @contextmanager
    def during(self, text: str) -> Iterator[None]:
        """Show `text`, or what `tell` says later, while the block runs; on a terminal alone."""
        if not sys.stderr.isatty():
            yield
            return
        self._text, self._stream, self._ended = text, sys.stderr, Event()
        self._started = self._quiet_since = time.monotonic()
        thread = Thread(target=self._show, args=(self._ended,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self.end()
            thread.join()

    def tell(self, text: str, done: int = 0, count: int = 0) -> None:
        """Say what is being done from now on, and how much of how much of it is done."""
        self._text = f"{text}: {done} of {count}" if count else text

    def clear(self) -> None:
        """Take the line away, since something else is printed; it comes again after a while."""
        with self._lock:
            self._erase()
            self._quiet_since = time.monotonic()

    def end(self) -> None:
        """Take the line away for good."""
        self._ended.set()
        self.clear()

    def _erase(self) -> None:
        if self._width:
            self._stream.write(f"\r{' ' * self._width}\r")
            self._stream.flush()
            self._width = 0

    def _show(self, ended: Event) -> None:
        turn = 0
        while not ended.wait(_EVERY):
            with self._lock:
                now = time.monotonic()
                if ended.is_set() or now - self._quiet_since < _WAIT:
                    continue
                turn += 1
                mark = _TURNS[turn % len(_TURNS)]
                line = f"{mark} {self._text}, {now - self._started:.0f} s"
                line = line[: shutil.get_terminal_size().columns - 1]
                self._stream.write(f"\r{line.ljust(self._width)}")
                self._stream.flush()
                self._width = len(line)


activity = Activity()
