"""The garbage collector runs seldom while models are loaded, and as before afterwards."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier

import pytest

from tflite_ort import Interpreter, UnreadableModel
from tflite_ort.base.collecting import Promotion, seldom
from tflite_ort.command.demo import digits_model


@pytest.fixture(autouse=True)
def threshold() -> Iterator[tuple[int, ...]]:
    usual = gc.get_threshold()
    gc.set_threshold(600, *usual[1:])
    yield gc.get_threshold()
    gc.set_threshold(*usual)


@contextmanager
def collections() -> Iterator[list[int]]:
    """The generations that are collected in the block."""
    seen: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            seen.append(info["generation"])

    gc.callbacks.append(note)
    try:
        yield seen
    finally:
        gc.callbacks.remove(note)


def load() -> Interpreter:
    interpreter = Interpreter(digits_model("float32"), cache=False)
    interpreter.allocate_tensors()
    return interpreter


def test_a_load_has_its_new_objects_looked_at_twice(threshold: tuple[int, ...]) -> None:
    load()
    with collections() as seen:
        load()
    assert len(seen) <= 2  # after `Interpreter(...)` and after `allocate_tensors`
    assert gc.get_threshold() == threshold


@pytest.mark.parametrize("name", ["float32", "int8"])
def test_a_load_leaves_nothing_to_the_collector(name: str) -> None:
    content = digits_model(name).read_bytes()
    made = [Interpreter(model_content=content, cache=False) for _ in range(2)]
    made[0].allocate_tensors()  # what a process makes once
    gc.collect()
    gc.disable()
    try:
        made[1].allocate_tensors()
        assert gc.collect() == 0
        made.clear()
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_an_import_has_no_objects_looked_at() -> None:
    code = """
import gc, json
import tflite_ort
seen = []
gc.callbacks.append(lambda phase, info: seen.append(phase))
from tflite_ort import Interpreter
print(json.dumps([len(seen), gc.get_threshold(), gc.get_freeze_count(), gc.isenabled()]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seen, after, frozen, enabled = json.loads(done.stdout)
    usual = subprocess.run(
        [sys.executable, "-c", "import gc, json; print(json.dumps(gc.get_threshold()))"],
        capture_output=True,
        check=True,
    )
    assert (seen, frozen, enabled) == (0, 0, True)
    assert after == json.loads(usual.stdout)


def test_what_fails_leaves_the_collector_as_it_was(threshold: tuple[int, ...]) -> None:
    with pytest.raises(UnreadableModel):
        Interpreter("no such file")
    assert gc.get_threshold() == threshold


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    try:
        load()
        assert not gc.isenabled()
    finally:
        gc.enable()
    gc.set_threshold(0)
    with seldom:
        assert gc.get_threshold()[0] == 0
    assert gc.get_threshold()[0] == 0


def test_a_threshold_that_is_set_in_the_meantime_stays() -> None:
    with seldom:
        gc.set_threshold(1234, 5, 6)
    assert gc.get_threshold()[:2] == (1234, 5)


def test_a_higher_threshold_is_not_lowered() -> None:
    gc.set_threshold(10**6)
    with seldom:
        assert gc.get_threshold()[0] == 10**6


def test_the_last_of_several_threads_restores_it(threshold: tuple[int, ...]) -> None:
    inside = Barrier(4)

    def block(_: int) -> int:
        with seldom, seldom:
            inside.wait()
            return gc.get_threshold()[0]

    with ThreadPoolExecutor(4) as pool:
        within = set(pool.map(block, range(40)))
    assert len(within) == 1 and within.pop() > threshold[0]
    assert gc.get_threshold() == threshold


def test_objects_that_a_process_has_frozen_stay_frozen() -> None:
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        Promotion()()
        assert 0 < gc.get_freeze_count() <= frozen  # some may go in the meantime
    finally:
        gc.unfreeze()


def test_frozen_objects_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter((0, 3))  # the second finds some: a third is not asked for
    monkeypatch.setattr(gc, "get_freeze_count", lambda: next(counts))
    frozen = list[str]()
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append("freeze"))
    monkeypatch.setattr(gc, "unfreeze", lambda: frozen.append("unfreeze"))
    promote = Promotion()
    for _ in range(4):
        promote()
    assert frozen == ["freeze", "unfreeze"] and next(counts, None) is None


def test_what_is_promoted_is_garbage_when_it_is_dropped() -> None:
    class Loop:
        def __init__(self) -> None:
            self.itself = self

    gc.collect()
    kept = Loop()
    Promotion()()
    del kept
    assert gc.collect() >= 1


FORKED = """
import gc, os, sys, threading
from tflite_ort.base.collecting import seldom

usual, entered, leave = gc.get_threshold(), threading.Event(), threading.Event()

def load():
    with seldom:
        entered.set()
        leave.wait()

def child():
    if pid := os.fork():
        return os.waitpid(pid, 0)[1]
    within = gc.get_threshold()
    with seldom:
        inside = gc.get_threshold()
    print(within == usual, inside != usual, gc.get_threshold() == usual, flush=True)
    os._exit(0)

thread = threading.Thread(target=load)
thread.start()
entered.wait()
child()
with seldom:
    child()
leave.set()
thread.join()
print(gc.get_threshold() == usual)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no such processes on this system")
def test_a_fork_leaves_the_blocks_of_other_threads_behind() -> None:
    """And keeps those of its own thread."""
    command = [sys.executable, "-W", "ignore", "-c", FORKED]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["True True True", "False True False", "True"]
