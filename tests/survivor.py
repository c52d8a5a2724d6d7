"""A process beside the test that may die: what killed it is known, and another takes over."""

from __future__ import annotations

import os
import pickle
import select
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any

# One answer is waited for that long.
SECONDS = 60.0


class Survivor:
    """Calls ``module.name(job)`` in another process, which is started anew when it dies."""

    def __init__(self, function: Callable[[Any], str]) -> None:
        self._place = f"{function.__module__}:{function.__qualname__}"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Survivor:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end()

    def call(self, job: Any) -> str:
        """What the function returns; ``"died: SIGNAL"`` or ``"hangs"`` if it does not."""
        process = self._process = self._process or self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        pickle.dump(job, process.stdin)
        process.stdin.flush()
        if not select.select([process.stdout], [], [], SECONDS)[0]:
            self._end()
            return "hangs"
        try:
            return str(pickle.load(process.stdout))
        except EOFError:
            status = process.wait()
            self._end()
            return f"died: {status}"

    def _started(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.survivor", self._place],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def outcomes(function: Callable[[Any], str], jobs: Iterable[Any]) -> Iterator[tuple[Any, str]]:
    """Every job with what the function says of it."""
    with Survivor(function) as survivor:
        for job in jobs:
            yield job, survivor.call(job)


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what native code prints is no answer
    module, _, name = sys.argv[1].partition(":")
    function = getattr(__import__(module, fromlist=[name]), name)
    while True:
        try:
            job = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(function(job), answers)
        answers.flush()


if __name__ == "__main__":
    main()
