"""LiteRT in a process of its own, which often dies: another takes its place.

``python -m tests.fuzz.litert_process DESCRIPTOR`` answers on a socket. It only forks; a child does
the work, and where that ends the parent says how and forks the next.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from tests.fuzz.feeds import TooLarge, feed, resized
from tests.fuzz.limits import TOO_SLOW, confine, deadline, held, peak, perturb
from tests.fuzz.litert import Answer, Array, Question
from tests.oracle import litert_interpreter

# Bytes of all outputs of a file; those that a process may hold when it starts with the next one.
_MOST_RESULTS, _MOST_HELD = 1 << 28, 1 << 30
# How a process ends in whose place comes another.
_ANOTHER = 3


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


def _work(connection: Connection) -> None:
    """Answers questions, until files have left too much memory behind."""
    confine(8 << 30)
    before = peak()
    while True:
        try:
            question = connection.recv()
        except EOFError:  # nobody asks any more
            os._exit(0)
        perturb(question.unset)
        deadline(question.seconds)
        answer = ran(question)
        deadline(0)
        grown = max(0, peak() - before)
        before = peak()
        connection.send(Answer(answer.stage, answer.error, answer.outputs, grown))
        del answer
        if held() > _MOST_HELD:
            os._exit(_ANOTHER)


def _serve(descriptor: int) -> None:
    connection = Connection(descriptor)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        child = os.fork()
        if child == 0:
            try:
                _work(connection)
            finally:
                os._exit(1)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
            return
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == _ANOTHER:
            continue
        name = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "exit"
        connection.send(Answer("hung" if name in TOO_SLOW else "died", name))


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
