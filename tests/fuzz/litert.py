"""LiteRT as it is asked: a process answers, so that a file may end it."""

from __future__ import annotations

import socket
import subprocess
import sys
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy.typing as npt

from tests.fuzz.feeds import Shapes

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Question:
    """A file to run.

    Args:
        kernels: as `tests.oracle.litert` has them.
        unset: what memory holds that is not set.
        seconds: how long it may take.
        tensors: those that are wanted in the place of the outputs.
        shapes: of inputs, see `resized`.
        tame: see `feed`.
    """

    content: bytes
    seed: int
    kernels: str = "default"
    unset: int = 0
    seconds: float = 20.0
    tensors: tuple[int, ...] = ()
    shapes: Shapes = ()
    tame: int = 0


@dataclass(frozen=True)
class Answer:
    """How far LiteRT came: "read", "allocate", "invoke", "done", "died", "hung",
    or "too large".

    Args:
        error: what it said, or the signal that ended it.
        grown: bytes of memory that the file took.
    """

    stage: str
    error: str = ""
    outputs: tuple[Array, ...] = ()
    grown: int = 0


class LiteRT:
    """The process, started with the object; `close` ends it."""

    def __init__(self) -> None:
        mine, theirs = socket.socketpair()
        command = [sys.executable, "-m", "tests.fuzz.litert_process", str(theirs.fileno())]
        self._process = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        theirs.close()
        self._connection = Connection(mine.detach())

    def ask(self, question: Question) -> Answer:
        """What LiteRT makes of a file; it may die of it."""
        self.post(question)
        return self.answer()

    def post(self, question: Question) -> None:
        """Ask without waiting; `answer` has to follow before the next question."""
        self._connection.send(question)

    def answer(self) -> Answer:
        """The answer to what was posted."""
        answer = self._connection.recv()
        assert isinstance(answer, Answer)
        return answer

    def close(self) -> None:
        self._connection.close()
        try:
            self._process.wait(1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
