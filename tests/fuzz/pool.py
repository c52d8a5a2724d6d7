"""Child processes that judge files in batches: one that dies is recorded and replaced."""

from __future__ import annotations

import gc
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from itertools import islice
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait

from tests.fuzz.describe import operators, plain, steps
from tests.fuzz.feeds import Tame
from tests.fuzz.judge import Finding, Record, judged
from tests.fuzz.limits import TOO_SLOW, confine, deadline
from tests.fuzz.litert import LiteRT, Question
from tests.fuzz.mutate import Mutant
from tests.fuzz.steps import run

BATCH = 400
# A file that takes longer than the first is tried again, alone, with the second.
PATIENCE = (4.0, 20.0)
# Seconds that a step of a recurrent layer may take: the numpy kernel of an integer LSTM takes most.
A_STEP = 5e-4
# An iteration of a loop takes LiteRT at least so much of the time that it takes here.
_ITERATION = 0.05
# How a child ends that fails by a fault of the fuzzer.
_FAULT = 113


Make = Callable[[int], Mutant]
Judge = Callable[[Mutant, LiteRT | None, float], Record]


class Slot:
    """One child at a time, with LiteRT beside it."""

    def __init__(
        self, make: Make, oracle: bool, patience: tuple[float, float], judge: Judge = judged
    ) -> None:
        self.make, self.oracle, self.patience, self._judge = make, oracle, patience, judge
        self.litert = LiteRT() if oracle else None
        self.numbers: list[int] = []
        self.alone = False
        self.connection: Connection | None = None
        self._child = 0

    def start(self, numbers: list[int], alone: bool = False) -> None:
        """A child that judges these files; `alone`: one that was too slow the first time."""
        self.numbers, self.alone = numbers, alone
        mine, theirs = Pipe(duplex=False)
        self._child = os.fork()
        if self._child == 0:
            mine.close()
            self._run(theirs)
        theirs.close()
        self.connection = mine

    def _run(self, connection: Connection) -> None:
        """In the child: never returns."""
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            confine()
            gc.disable()
            warnings.simplefilter("ignore")
            for number in self.numbers if not self.alone else self.numbers[:1]:
                connection.send(self._record(number))
                if number % 50 == 0:
                    gc.collect()
            os._exit(0)
        # A fault of the fuzzer: the parent must not go on in this process.
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(_FAULT)

    def _record(self, number: int) -> Record:
        made = self.make(number)
        if self.alone and self.litert is not None:
            answer = self.litert.ask(Question(made.content, made.inputs, seconds=self.patience[0]))
            if answer.stage == "hung":
                return Record(number, "loop", litert="hung")
        return self._judge(made, self.litert, self.patience[self.alone])

    def ended(self) -> Record | None:
        """The record of the file that the child died of; None when it is done or tried again."""
        assert self.connection is not None
        self.connection.close()
        self.connection = None
        _, status = os.waitpid(self._child, 0)
        if not os.WIFSIGNALED(status) and os.WEXITSTATUS(status) == 0:
            return None
        if self.oracle and self.litert is not None:
            self.litert.close()
            self.litert = LiteRT()
        name = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "exit"
        if name in TOO_SLOW and not self.alone:
            self.alone = True
            return None
        self.alone = False
        number = self.numbers.pop(0)
        bucket = "hang" if name in TOO_SLOW else "death"
        if not os.WIFSIGNALED(status) and os.WEXITSTATUS(status) == _FAULT:
            bucket = "fault of the fuzzer"
        if bucket == "hang" and self._is_loop(number):
            return Record(number, "loop", litert="invoke", seconds=self.patience[1])
        return Record(number, bucket, findings=(Finding(bucket, name),), seconds=self.patience[1])

    def _is_loop(self, number: int) -> bool:
        """Whether a file asks for its time: it has so many steps of a recurrent layer; or a loop
        that LiteRT leaves sooner, where an operator in it refuses a value whose result nobody
        reads; or one that takes LiteRT long, too; or one that LiteRT does not leave either once no
        constant is compressed, or is what a called subgraph is given; or one that ends at once when
        it is fed small integers: its inputs say how often it runs."""
        made = self.make(number)
        if steps(made.content) * A_STEP >= self.patience[1]:
            return True
        if self.litert is None or "WHILE" not in operators(made.content):
            return False
        seconds = self.patience[1] * _ITERATION
        answer = self.litert.ask(Question(made.content, made.inputs, seconds=seconds))
        repaired = plain(made.content)
        if answer.stage == "done" and repaired is not None:
            answer = self.litert.ask(Question(repaired, made.inputs, seconds=self.patience[0]))
            return answer.stage == "hung"
        return answer.stage in ("hung", "invoke") or _ends_with_small_numbers(
            made, self.patience[0]
        )

    def close(self) -> None:
        if self.connection is not None:
            os.kill(self._child, signal.SIGKILL)
            self.connection.close()
            os.waitpid(self._child, 0)
        if self.litert is not None:
            self.litert.close()


def _ends_with_small_numbers(made: Mutant, seconds: float) -> bool:
    """Whether the library, in a process of its own, runs a file in time that is fed 1 and 3."""
    child = os.fork()
    if child == 0:
        try:
            confine()
            deadline(seconds)
            ended = run(made.content, made.inputs, tame=Tame.SMALL).stage == "done"
            os._exit(0 if ended else 1)
        finally:
            os._exit(_FAULT)
    return os.waitpid(child, 0)[1] == 0


def judge_all(
    make: Make,
    numbers: Iterator[int],
    report: Callable[[Record], None],
    jobs: int = 1,
    seconds: float | None = None,
    oracle: bool = True,
    patience: tuple[float, float] = PATIENCE,
    judge: Judge = judged,
) -> None:
    """Judges the files of these numbers.

    Args:
        make: the file of a number.
        report: gets the record of each.
        jobs: how many children work at a time.
        seconds: when to stop.
        oracle: whether LiteRT is asked.
        patience: seconds for a file, and for one that took longer when it is tried alone.
        judge: what is said of a file.
    """
    deadline(0)
    gc.collect()
    gc.freeze()
    until = time.monotonic() + seconds if seconds is not None else float("inf")
    slots = [Slot(make, oracle, patience, judge) for _ in range(jobs)]
    try:
        for slot in slots:
            _next(slot, numbers)
        while time.monotonic() < until:
            open_ = {slot.connection: slot for slot in slots if slot.connection is not None}
            if not open_:
                return
            for connection in wait(list(open_), timeout=1):
                assert isinstance(connection, Connection)
                _take(open_[connection], numbers, report)
    finally:
        for slot in slots:
            slot.close()


def _take(slot: Slot, numbers: Iterator[int], report: Callable[[Record], None]) -> None:
    """One record of a child, or what follows its end."""
    assert slot.connection is not None
    try:
        record = slot.connection.recv()
    except EOFError:
        alone = slot.alone
        died = slot.ended()
        if died is not None:
            report(died)
        if slot.alone and not alone:
            slot.start(slot.numbers, alone=True)
        elif slot.numbers:
            slot.start(slot.numbers)
        else:
            _next(slot, numbers)
        return
    slot.numbers.pop(0)
    report(record)


def _next(slot: Slot, numbers: Iterator[int]) -> None:
    batch = list(islice(numbers, BATCH))
    if batch:
        slot.start(batch)
