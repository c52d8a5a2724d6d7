"""The signatures of a model as files: their state goes from file to file as in one interpreter."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest

from tests.one_op import Node, T, assert_close
from tests.ops.test_state import X, add, assign, floats, handle, mul, once, read
from tests.oracle import litert_interpreter
from tests.subgraph_models import HANDLE, Sub, model_of
from tflite_ort import (
    ExportError,
    ExportWarning,
    Interpreter,
    export_onnx,
    export_signatures,
    first_state,
)
from tflite_ort.prediction.triton import write_repository
from tflite_ort.schema import (
    IfOptions,
    LessOptions,
    Op,
    RandomOptions,
    TensorType,
    VarHandleOptions,
    WhileOptions,
)

Array = npt.NDArray[Any]
Call = tuple[str, dict[str, Array]]

FLAG, COUNT = T((), TensorType.BOOL), T((), TensorType.INT32)
OWN = {"h": HANDLE, "x": X, "r": X, "s": X}


def signature(
    key: str, nodes: Sequence[Node], inputs: Sequence[str], outputs: Sequence[str], **more: T
) -> Sub:
    return Sub({**OWN, **more}, [handle(), *nodes], inputs, outputs, key)


def start(*values: float) -> Sub:
    tensors = {"h": HANDLE, "k": T.constant(floats(*values))}
    return Sub(tensors, [handle(), assign("h", "k")])


INFER = signature("infer", [once(2), read("h", "r"), mul("r", "x", "s")], ["x"], ["s"])
SUM = [once(2), read("h", "r"), add("r", "x", "s"), assign("h", "s")]
TRAIN = signature("train", SUM, ["x"], ["s"])
PUT = signature("put", [assign("h", "x"), add("x", "x", "s")], ["x"], ["s"])
START = start(1, 2)
ADDING = Sub(
    {"g": HANDLE, "a": X, "r": X, "s": X},
    [read("g", "r"), add("a", "r", "s"), assign("g", "s")],
    ["g", "a"],
    ["s"],
)
SQUARING = Sub({"g": HANDLE, "a": X, "r": X}, [mul("a", "a", "r")], ["g", "a"], ["r"])
LESS = Sub(
    {"g": HANDLE, "i": COUNT, "n": T.constant(np.int32(3)), "less": FLAG},
    [Node(Op.LESS, ["i", "n"], ["less"], LessOptions())],
    ["g", "i"],
    ["less"],
)
STEP = Sub(
    {"g": HANDLE, "i": COUNT, "j": COUNT, "one": T.constant(np.int32(1)), "r": X, "s": X},
    [read("g", "r"), add("r", "r", "s"), assign("g", "s"), add("i", "one", "j")],
    ["g", "i"],
    ["g", "j"],
)
ONES, TWOS = {"x": floats(1, 1)}, {"x": floats(2, -2)}


def choosing() -> Sub:
    nodes = [once(2), Node(Op.IF, ["c", "h", "x"], ["s"], IfOptions(3, 4))]
    return signature("choose", nodes, ["c", "x"], ["s"], c=FLAG)


def looping() -> Sub:
    loop = Node(Op.WHILE, ["h", "i"], ["g", "j"], WhileOptions(3, 4))
    nodes = [once(2), loop, read("h", "r"), mul("r", "x", "s")]
    zero = T.constant(np.int32(0))
    return signature("loop", nodes, ["x"], ["s"], g=HANDLE, i=zero, j=COUNT)


def drawing(key: str, seed: int) -> Sub:
    """Random numbers, whose position in the stream is a state of the same name in both."""
    tensors = {"size": T.constant(np.int32([2, 2])), "y": T((2, 2))}
    node = Node(Op.RANDOM_UNIFORM, ["size"], ["y"], RandomOptions(seed=seed, seed2=1))
    return Sub(tensors, [node], [], ["y"], key)


def flagged(flag: bool) -> Call:
    return "choose", {"c": np.array(flag), **TWOS}


CASES: dict[str, tuple[bytes, list[Call]]] = {
    "trained": (
        model_of(INFER, TRAIN, START),
        [("infer", TWOS), ("train", ONES), ("infer", TWOS), ("train", TWOS), ("infer", ONES)],
    ),
    "set without a start": (
        model_of(INFER, PUT, START),
        [("infer", TWOS), ("put", ONES), ("infer", TWOS)],
    ),
    "set in a branch": (
        model_of(INFER, choosing(), START, ADDING, SQUARING),
        [("infer", ONES), flagged(False), ("infer", ONES), flagged(True), ("infer", ONES)],
    ),
    "set in a loop": (
        model_of(INFER, looping(), START, LESS, STEP),
        [("infer", ONES), ("loop", TWOS), ("infer", ONES)],
    ),
    "streams of random numbers": (
        model_of(drawing("one", 3), drawing("two", 4)),
        [("one", {}), ("one", {}), ("two", {}), ("one", {}), ("two", {})],
    ),
}


class Files:
    """The exported signatures, run by ONNX Runtime alone."""

    def __init__(self, content: bytes, folder: Path, **options: Any) -> None:
        files = export_signatures(content, folder, **options)
        self.sessions = {key: onnxruntime.InferenceSession(path) for key, path in files.items()}
        self.pairs = {key: pairs_of(onnx.load(path)) for key, path in files.items()}
        self.state: dict[str, Array] = {}
        for path in files.values():
            self.state = {**first_state(path), **self.state}

    def __call__(self, key: str, feeds: dict[str, Array]) -> dict[str, Array]:
        session, pairs = self.sessions[key], self.pairs[key]
        state = {given: self.state[given] for given, _ in pairs if given is not None}
        names = [each.name for each in session.get_outputs()]
        found = dict(zip(names, session.run(None, {**feeds, **state}), strict=True))
        self.state |= {made.removesuffix("_next"): found.pop(made) for _, made in pairs if made}
        return found


def pairs_of(model: onnx.ModelProto) -> list[list[str | None]]:
    stored = {entry.key: entry.value for entry in model.metadata_props}
    pairs: list[list[str | None]] = json.loads(stored.get("tflite.state", "[]"))
    return pairs


@pytest.mark.parametrize("name", CASES)
def test_state_goes_from_file_to_file(name: str, tmp_path: Path) -> None:
    content, calls = CASES[name]
    files, mine = Files(content, tmp_path, check=True), Interpreter(model_content=content)
    theirs = litert_interpreter(content, "reference")
    for number, (key, feeds) in enumerate(calls):
        wanted = theirs.get_signature_runner(key)(**feeds)
        for found in (files(key, feeds), mine.get_signature_runner(key)(**feeds)):
            assert found.keys() == wanted.keys()
            for output, want in wanted.items():
                assert_close(found[output], want, 0, 1e-6, f"call {number} of {key}")


def test_one_signature_alone_takes_what_another_sets() -> None:
    content = model_of(INFER, TRAIN, START)
    for exported in (export_onnx(content, signature="infer"), export_onnx(content)):
        assert pairs_of(exported) == [["v", None]]
        assert "v" in {each.name for each in exported.graph.input}
        np.testing.assert_array_equal(first_state(exported)["v"], floats(1, 2))
    stateless = export_onnx(content, signature="infer", stateful=False)
    assert [each.name for each in stateless.graph.input] == ["x"]
    started = export_onnx(content, signature="infer", state_defaults=True)
    session = onnxruntime.InferenceSession(started.SerializeToString())
    np.testing.assert_array_equal(session.run(None, TWOS)[0], floats(2, -4))
    np.testing.assert_array_equal(session.run(None, {**TWOS, "v": floats(3, 3)})[0], floats(6, -6))


def test_what_no_signature_sets_after_the_start_is_a_constant(tmp_path: Path) -> None:
    other = signature("twice", [once(2), read("h", "r"), add("r", "r", "s")], [], ["s"])
    content = model_of(INFER, other, START)
    for path in export_signatures(content, tmp_path).values():
        exported = onnx.load(path)
        assert not pairs_of(exported) and "v" not in {each.name for each in exported.graph.input}


def test_a_state_has_one_name_that_nothing_else_has(tmp_path: Path) -> None:
    """Another container has a variable of this name, and signatures an input and an output."""
    other = Node(Op.VAR_HANDLE, [], ["g"], VarHandleOptions(container="c", shared_name="v"))
    both = [other, assign("g", "w"), *SUM[1:]]
    first = signature("first", both, ["x", "w"], ["s"], g=HANDLE, w=X)
    second = signature("second", [other, read("g", "r"), mul("r", "v", "v_2_next")], ["v"],
                       ["v_2_next"], g=HANDLE, v=X, v_2_next=X)  # fmt: skip
    files = export_signatures(model_of(first, second), tmp_path)
    pairs = {key: pairs_of(onnx.load(path)) for key, path in files.items()}
    assert pairs == {"first": [["v_3", "v_3_next"], [None, "v_1_next"]], "second": [["v_1", None]]}


def test_starts_that_differ_are_told() -> None:
    other = signature("other", [once(3), read("h", "r"), add("r", "x", "s")], ["x"], ["s"])
    content = model_of(INFER, other, START, start(5, 6))
    with pytest.warns(ExportWarning, match="start 'v' in different ways"):
        exported = export_onnx(content, signature="infer")
    assert pairs_of(exported) == [["v", None]]


def test_a_signature_that_cannot_be_read_may_set_any_variable(tmp_path: Path) -> None:
    three = T((3,))
    broken = signature("broken", [add("x", "y", "s"), assign("h", "s")], ["x", "y"], ["s"], y=three)
    with pytest.warns(ExportWarning, match=r"not written:\n  'broken': .*ADD"):
        files = export_signatures(model_of(INFER, broken, START), tmp_path)
    assert pairs_of(onnx.load(files["infer"])) == [["v", None]]


def test_a_server_keeps_no_state_that_another_signature_sets(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(model_of(INFER, TRAIN, START))
    with pytest.raises(ExportError, match=r"another signature sets variable 'v'.*--stateless"):
        write_repository(path, tmp_path / "served")
    write_repository(path, tmp_path / "served", arguments={"stateful": False})


@pytest.mark.parametrize("batch", [2, "N"])
def test_state_of_a_batch_goes_from_file_to_file(batch: int | str, tmp_path: Path) -> None:
    content, calls = CASES["trained"]
    files = Files(content, tmp_path, batch=batch)
    samples = [Interpreter(model_content=content) for _ in range(2)]
    for key, feeds in calls:
        rows = [{name: value * scale for name, value in feeds.items()} for scale in (1, 3)]
        wanted = [
            interpreter.get_signature_runner(key)(**row)["s"]
            for interpreter, row in zip(samples, rows, strict=True)
        ]
        found = files(key, {name: np.stack([row[name] for row in rows]) for name in feeds})
        np.testing.assert_array_equal(found["s"], np.stack(wanted))
