"""Models that are well-formed tables and cannot be: one of our errors, from whatever is asked."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.attempts import Attempt, attempted
from tests.models import model_path
from tests.one_op import Node, T, graph_model, one_op_model
from tests.subgraph_models import Sub, model_of
from tests.survivor import Survivor
from tflite_ort import AllocationError, BridgeError, Interpreter, export_onnx
from tflite_ort.schema import (
    AddOptions,
    BlockwiseQuantization,
    BudgetExceeded,
    Buffer,
    CallOnceOptions,
    CallOptions,
    DimensionMetadata,
    DimensionType,
    IfOptions,
    MalformedModel,
    Model,
    Op,
    Operator,
    OperatorCode,
    QuantizationParameters,
    ResizeError,
    ShapeOptions,
    SparsityParameters,
    SubGraph,
    Tensor,
    TensorError,
    TensorType,
    UniqueOptions,
    VarHandleOptions,
    WhileOptions,
    read_model,
    write_model,
)
from tflite_ort.schema.file.flow import MOST_NESTED

X, FLAG = Tensor((2,), name="x"), Tensor((), TensorType.BOOL, name="flag", buffer=1)
ADD = one_op_model(Op.ADD, [T((2,)), T((2,))], [T((2,))], AddOptions())


def nested(depth: int, op: Op) -> bytes:
    """`depth` subgraphs, each of which calls the next one; the last computes NEG."""
    tensors = (FLAG, X, replace(X, name="y"))
    graphs = []
    for number in range(1, depth):
        options = IfOptions(number, number) if op is Op.IF else CallOptions(number)
        inputs = (0, 1) if op is Op.IF else (1,)
        graphs.append(SubGraph(tensors, (1,), (2,), (Operator(0, inputs, (2,), options),)))
    graphs.append(SubGraph(tensors, (1,), (2,), (Operator(1, (1,), (2,)),)))
    codes = (OperatorCode(op), OperatorCode(Op.NEG))
    buffers = (Buffer(), Buffer(np.ones(1, np.uint8)))
    return write_model(Model(3, codes, tuple(graphs), buffers=buffers))


@pytest.mark.parametrize("op", [Op.IF, Op.CALL])
def test_calls_nested_as_deep_as_is_promised(op: Op) -> None:
    model = nested(MOST_NESTED if op is Op.CALL else 12, op)
    with Survivor(attempted) as survivor:
        assert survivor.call(Attempt(model)) == "fine"
    read_model(nested(MOST_NESTED, op))
    for depth in (MOST_NESTED + 1, 100, 5000):
        with pytest.raises(MalformedModel, match=f"call each other {depth} deep, at most 32"):
            read_model(nested(depth, op))


def nested_loops(depth: int, width: int) -> bytes:
    """A loop whose body has `width` loops in turn, and so on; none of them begins."""
    count, flag = T((), TensorType.INT32), T((), TensorType.BOOL)

    def body(number: int) -> Sub:
        names = ["i", *(f"a{place}" for place in range(width)), "o"]
        loops = [
            Node(Op.WHILE, [a], [b], WhileOptions(1, number + 1)) for a, b in pairwise(names[:-1])
        ]
        return Sub(
            dict.fromkeys(names, count), [*loops, Node(Op.NEG, names[-2:-1], ["o"])], ["i"], ["o"]
        )

    greater = Node(Op.GREATER, ["i", "zero"], ["t"])
    tensors = {"i": count, "zero": T.constant(np.int32(0)), "t": flag}
    leaf = Sub(dict.fromkeys("io", count), [Node(Op.NEG, ["i"], ["o"])], ["i"], ["o"])
    main = Sub(
        dict.fromkeys("io", count), [Node(Op.WHILE, ["i"], ["o"], WhileOptions(1, 2))], ["i"], ["o"]
    )
    bodies = [body(number) for number in range(2, 2 + depth)]
    return model_of(main, Sub(tensors, [greater], ["i"], ["t"]), *bodies, leaf)


@pytest.mark.parametrize(("depth", "width"), [(28, 1), (6, 2), (28, 2)])
def test_loops_in_loops(depth: int, width: int) -> None:
    """Bodies are not made for each way that leads to them without end."""
    model = nested_loops(depth, width)
    if width**depth < 100:
        interpreter = Interpreter(model_content=model)
        interpreter.allocate_tensors()
        interpreter.invoke()
        assert interpreter.get_tensor(interpreter.get_output_details()[0]["index"]) == 0
        return
    for make in (
        lambda: Interpreter(model_content=model).allocate_tensors(),
        lambda: export_onnx(model),
    ):
        with pytest.raises(BudgetExceeded, match="called operators"):
            make()


@pytest.mark.parametrize("op", [Op.IF, Op.CALL])
@pytest.mark.parametrize("length", [1, 2, 3000])
def test_subgraphs_that_call_themselves(op: Op, length: int) -> None:
    model = read_model(nested(2, op))
    graph = model.subgraphs[0]
    (operator,) = graph.operators

    def calling(number: int) -> SubGraph:
        options = IfOptions(number, number) if op is Op.IF else CallOptions(number)
        return replace(graph, operators=(replace(operator, options=options),))

    graphs = tuple(calling((number + 1) % length) for number in range(length))
    with pytest.raises(MalformedModel, match=r"subgraph \d+ calls itself"):
        read_model(write_model(replace(model, subgraphs=graphs)))


# Changes of the tensors, buffers or operators of an addition, and what is said when it is read.
def changed(**changes: Any) -> Callable[[Model], Model]:
    def change(model: Model) -> Model:
        (graph,) = model.subgraphs
        first, *others = graph.tensors
        graph = replace(graph, tensors=(replace(first, **changes), *others), inputs=(1,))
        buffers = (*model.buffers[:1], Buffer(np.zeros(8, np.uint8)))
        return replace(model, subgraphs=(graph,), buffers=buffers)

    return change


def with_options(content: bytes, options: Any, op: Op | None = None) -> bytes:
    """A model of one operator with other options, and as another operator."""
    model = read_model(content)
    (graph,), (code,) = model.subgraphs, model.operator_codes
    (operator,) = graph.operators
    graph = replace(graph, operators=(replace(operator, options=options),))
    code = code if op is None else replace(code, builtin_code=op)
    return write_model(replace(model, subgraphs=(graph,), operator_codes=(code,)))


def scales(count: int, **more: Any) -> QuantizationParameters:
    one = np.ones(count, np.float32)
    return QuantizationParameters(scale=one, zero_point=np.zeros(count, np.int64), **more)


CSR = DimensionMetadata(DimensionType.SPARSE_CSR, 0)
WRONG = {
    "sparse without its order": (
        changed(buffer=1, sparsity=SparsityParameters()),
        "traversal order",
    ),
    "sparse without indices": (
        changed(buffer=1, sparsity=SparsityParameters((0,), None, (CSR,))),
        "lacks its segments",
    ),
    "sparse with few values": (
        changed(
            buffer=1,
            shape=(1 << 20, 1 << 20),
            sparsity=SparsityParameters((0, 1), None, (DimensionMetadata(),) * 2),
        ),
        "2 values for 1099511627776 places",
    ),
    "text without offsets": (changed(buffer=1, type=TensorType.STRING), "2 strings"),
    "scales for other channels": (
        changed(buffer=1, shape=(1, 2), quantization=scales(3)),
        "3 scales for 1 channels",
    ),
    "scales of no dimension": (
        changed(buffer=1, shape=(1, 2), quantization=scales(2, quantized_dimension=7)),
        "dimension 7 of a tensor of rank 2",
    ),
    "blocks of scales elsewhere": (
        changed(quantization=QuantizationParameters(details=BlockwiseQuantization(99, -1, 4))),
        "tensor 99, and there are 3",
    ),
    "external data nowhere": (changed(external_buffer=9), "no buffer 9"),
    "no array of this shape": (changed(shape=(0, *(2**31 - 1,) * 3)), "too large"),
}


@pytest.mark.parametrize("name", WRONG)
def test_parts_that_do_not_fit_are_found_when_read(name: str) -> None:
    change, reason = WRONG[name]
    content = write_model(change(read_model(ADD)))
    for read in (read_model, lambda c: Interpreter(model_content=c), export_onnx):
        with pytest.raises(MalformedModel, match=reason) as caught:
            read(content)
        assert caught.value.path.startswith("subgraphs[0].tensors[0]")


# Models that load, whatever they are then asked.
UNARY = {"x": T((2,)), "y": T((2,)), "z": T((2,))}
ODD: dict[str, bytes] = {
    "read before it is computed": graph_model(
        UNARY, [Node(Op.NEG, ["y"], ["z"]), Node(Op.ABS, ["x"], ["y"])], ["z"]
    ),
    "computed twice": graph_model(
        UNARY, [Node(Op.NEG, ["x"], ["y"]), Node(Op.ABS, ["x"], ["y"])], ["y"]
    ),
    "its own input": graph_model(UNARY, [Node(Op.ADD, ["x", "y"], ["y"], AddOptions())], ["y"]),
    "a handle is no value": graph_model(
        {"h": T((), TensorType.RESOURCE), "y": T((2,))},
        [Node(Op.VAR_HANDLE, [], ["h"], VarHandleOptions("", "v")), Node(Op.GELU, ["h"], ["y"])],
        ["y"],
    ),
    "a variant": one_op_model(
        Op.BROADCAST_ARGS, [T((6,), TensorType.VARIANT), T((6,))], [T((6,), TensorType.INT32)]
    ),
    "reals for complex numbers": one_op_model(
        Op.UNIQUE,
        [T((2,))],
        [T((8,), TensorType.COMPLEX64), T((8,), TensorType.INT32)],
        UniqueOptions(TensorType.INT32),
    ),
    "numbers for text": one_op_model(
        Op.PAD,
        [T((2,), TensorType.INT8), T.constant(np.array([[1, 1]], np.int32))],
        [T((4,), TensorType.STRING)],
    ),
    "options of another operator": with_options(
        one_op_model(Op.NEG, [T((2,))], [T((2,))]), IfOptions(0, 0)
    ),
    "an IF with the options of an addition": with_options(ADD, AddOptions(), Op.IF),
    "calls of what is not there": one_op_model(
        Op.SHAPE, [T((2,))], [T((1,), TensorType.INT32)], ShapeOptions(TensorType.RESOURCE)
    ),
    "no buffers at all": write_model(replace(read_model(ADD), buffers=())),
    "no operators": graph_model({"x": T((2,))}, [], ["x"]),
    "call once of nothing": one_op_model(Op.CALL_ONCE, [], [], CallOnceOptions(0)),
    "a size beyond 32 bits": one_op_model(
        Op.TILE,
        [T((4,)), T.constant(np.array([2**31 - 1], np.int32))],
        [T((4,))],
    ),
}


def test_nothing_else_is_raised() -> None:
    with Survivor(attempted) as survivor:
        said = {name: survivor.call(Attempt(content)) for name, content in ODD.items()}
    assert said == dict.fromkeys(ODD, "fine")


def test_a_model_that_was_not_read_is_checked_too() -> None:
    model = read_model(ADD)
    (graph,) = model.subgraphs
    with pytest.raises(MalformedModel, match=r"tensor 7, and there are 3 at subgraphs\[0\].inputs"):
        export_onnx(replace(model, subgraphs=(replace(graph, inputs=(0, 7)),)))


def test_order_is_found_when_allocated() -> None:
    """As in LiteRT; details are there all the same."""
    for name, reason in (
        ("read before it is computed", "tensor 1 is read before it is computed"),
        ("computed twice", "tensor 1 has a value before it is computed"),
    ):
        interpreter = Interpreter(model_content=ODD[name])
        assert len(interpreter.get_tensor_details()) == 3
        with pytest.raises(AllocationError, match=reason):
            interpreter.allocate_tensors()
        with pytest.raises(BridgeError, match=reason):
            export_onnx(ODD[name])


@pytest.mark.parametrize(
    "shape", [[2**31], [2**40], [2**70], [1.5], [-1], ["a"], [[1]], [[1], [1, 2]], [None]]
)
def test_sizes_that_are_none(shape: Any) -> None:
    interpreter = Interpreter(model_content=ADD)
    with pytest.raises(TensorError):
        interpreter.resize_tensor_input(0, shape)
    interpreter.allocate_tensors()
    assert interpreter.get_input_details()[0]["shape"].tolist() == [2]


@pytest.mark.parametrize("shape", [[], [3], [3.0], [True], (np.int64(3),), np.array([3], np.uint8)])
def test_sizes(shape: Any) -> None:
    interpreter = Interpreter(model_content=ADD)
    interpreter.resize_tensor_input(0, shape)
    assert interpreter.get_input_details()[0]["shape"].tolist() == list(shape)


def test_the_largest_size() -> None:
    interpreter = Interpreter(model_content=ADD)
    interpreter.resize_tensor_input(0, [2**31 - 1])
    assert interpreter.get_input_details()[0]["shape"].tolist() == [2**31 - 1]
    with pytest.raises(ResizeError):
        interpreter.resize_tensor_input(0, [2**31])


@pytest.mark.parametrize("content", [b"", bytearray(), memoryview(b""), b"TFL3", b"\0" * 8])
def test_content_that_is_none(content: Any) -> None:
    for read in (lambda c: Interpreter(model_content=c), read_model, export_onnx):
        with pytest.raises(MalformedModel):
            read(content)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /dev/stdin")
@pytest.mark.parametrize("command", ["run", "export", "inspect", "versions", "bench"])
def test_standard_input(command: str, tmp_path: Path) -> None:
    """A file there is a file; what comes through a pipe is refused in one line."""
    path = model_path("tflite2onnx__add.float32.tflite")
    arguments = [sys.executable, "-m", "tflite_ort", command, "/dev/stdin"]
    arguments += [str(tmp_path / "out.onnx")] if command == "export" else []
    arguments += ["--rounds", "1", "--min-time", "0"] if command == "bench" else []
    piped = subprocess.run(arguments, input=path.read_bytes(), capture_output=True, timeout=300)
    assert piped.returncode == 1
    assert b"is a pipe, not a plain file" in piped.stderr
    assert b"Traceback" not in piped.stderr
    if command == "versions":
        with open(path, "rb") as file:
            done = subprocess.run(arguments, stdin=file, capture_output=True, timeout=300)
        assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes")
def test_a_pipe_that_nobody_writes_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.tflite")
    for read in (Interpreter, read_model, export_onnx):
        with pytest.raises(OSError, match="pipe"):
            read(tmp_path / "model.tflite")
