"""LiteRT in a process of its own, which often dies: another takes its place.

``python -m tests.fuzz.litert_process DESCRIPTOR`` answers on a socket. It hands the questions to a
child, which answers them. If a file ends the child, the parent says how, and forks another. A child
that ends between two questions has answered the first one: a file can damage memory that is needed
later.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from tests.fuzz.feeds import TooLarge, feed, resized
from tests.fuzz.limits import TOO_SLOW, confine, deadline, held, peak, perturb
from tests.fuzz.litert import Answer, Array, Question
from tests.oracle import litert_interpreter

# Bytes of all outputs of a file; those that a process may hold when it starts with the next one.
_MOST_RESULTS, _MOST_HELD = 1 << 28, 1 << 30


def ran(question: Question) -> Answer:
    """LiteRT's answer, in this process."""
    stage = "read"
    try:
        keep = bool(question.tensors)
        interpreter = litert_interpreter(question.content, question.kernels, keep)
        details = interpreter.get_input_details()
        drawn = (question.seed, question.shapes, question.tame)
        for index, shape in resized(details, *drawn).items():
            interpreter.resize_tensor_input(index, shape)
        stage = "allocate"
        interpreter.allocate_tensors()
        stage = "invoke"
        for detail in interpreter.get_input_details():
            interpreter.set_tensor(detail["index"], feed(detail, question.seed, question.tame))
        interpreter.invoke()
        details = interpreter.get_output_details()
        wanted = question.tensors or [each["index"] for each in details]
        outputs = tuple(_gathered(interpreter, wanted))
    except TooLarge:
        return Answer("too large")
    # Whatever it says is its answer.
    except Exception as error:
        return Answer(stage, f"{type(error).__name__}: {error}"[:1000])
    return Answer("done", outputs=outputs)


def _gathered(interpreter: Any, wanted: Sequence[int]) -> Iterator[Array]:
    """The values of tensors.

    Raises:
        TooLarge: whoever asks has less memory than a process here.
    """
    size = 0
    for each in wanted:
        array = np.array(interpreter.get_tensor(each))
        size += array.nbytes
        if size > _MOST_RESULTS:
            raise TooLarge
        yield array


def _work(questions: Connection, answers: Connection) -> None:
    """Answers questions, until files have left too much memory behind.

    It tells its parent when it has read a question, and when it has answered it.
    """
    confine(8 << 30)
    before = peak()
    while True:
        try:
            question = questions.recv()
        except EOFError:  # nobody asks any more
            break
        questions.send_bytes(b"read")
        perturb(question.unset)
        deadline(question.seconds)
        answer = ran(question)
        deadline(0)
        grown = max(0, peak() - before)
        before = peak()
        answers.send(Answer(answer.stage, answer.error, answer.outputs, grown))
        questions.send_bytes(b"answered")
        del answer
        if held() > _MOST_HELD:
            break
    os._exit(0)


class _Child:
    """A process that answers questions."""

    def __init__(self, answers: Connection) -> None:
        self._questions, theirs = Pipe()
        self.fresh = True
        self._process = os.fork()
        if self._process == 0:
            try:
                self._questions.close()
                _work(theirs, answers)
            finally:
                os._exit(1)
        theirs.close()

    def reads(self, question: bytes) -> bool:
        """Whether it lives and has read a question."""
        try:
            self._questions.send_bytes(question)
            self._questions.recv_bytes()
        except (EOFError, ConnectionError):
            return False
        self.fresh = False
        return True

    def answers(self) -> bool:
        """Whether it has answered the question."""
        try:
            self._questions.recv_bytes()
        except (EOFError, ConnectionError):
            return False
        return True

    def ended(self) -> str:
        """How it ended: the name of a signal, or "exit"."""
        self._questions.close()
        _, status = os.waitpid(self._process, 0)
        return signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "exit"


def _serve(descriptor: int) -> None:
    connection = Connection(descriptor)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    child = _Child(connection)
    while True:
        try:
            question = connection.recv_bytes()
        except EOFError:  # nobody asks any more
            break
        read = child.reads(question)
        if not read and not child.fresh:
            child.ended()
            child = _Child(connection)
            read = child.reads(question)
        if not (read and child.answers()):
            name = child.ended()
            connection.send(Answer("hung" if name in TOO_SLOW else "died", name))
            child = _Child(connection)
    child.ended()


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
