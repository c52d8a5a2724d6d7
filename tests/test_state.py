"""What an interpreter keeps between invokes: variable tensors in any mix of runners, and models."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from tests.models import model_path
from tests.one_op import Node, T, graph_model
from tests.oracle import litert_interpreter
from tests.subgraph_models import invoked
from tests.test_models import drawn
from tflite_ort import (
    BatchWarning,
    BuiltinOpResolver,
    Interpreter,
    MalformedModel,
    Registration,
    export_onnx,
)
from tflite_ort.opmap import Domain, Graph
from tflite_ort.schema import OperatorView, TensorType, read_model, write_model

Array = npt.NDArray[Any]

SHAPE = (1, 3)
FLOATS, CODES = T(SHAPE), T(SHAPE, TensorType.INT8, scale=0.5, zero_point=-3)


# An operator of our own, since each of TFLite's that has variables has much else: y = h = x + h.


def in_numpy(op: OperatorView[Any], inputs: Any, state: Any) -> tuple[Array, ...]:
    total = inputs[0] + inputs[1]
    return total, total


def in_onnx(op: OperatorView[Any], g: Graph) -> None:
    domain = Domain.FILE if op.output.is_quantized else Domain.REAL
    wide = (g.op("Cast", g.read(t, domain=domain), to=6) for t in op.present_inputs())
    total = g.op("CastLike", g.op("Add", *wide), g.read(op.present_inputs()[0], domain=domain))
    g.write(op.output, total, domain=domain)
    g.write(op.present_inputs()[1], total, domain=domain)


def resolver() -> BuiltinOpResolver:
    both = BuiltinOpResolver()
    both.add_custom("ort", Registration(in_onnx, in_numpy))
    both.add_custom("numpy", Registration(None, in_numpy))
    return both


def running_sums(*runners: str, t: T = FLOATS) -> bytes:
    """A chain of sums that share one variable, each run where its name says."""
    tensors = {"x": t, "h": replace(t, is_variable=True)}
    nodes, last = [], "x"
    for number, name in enumerate(runners):
        tensors[f"y{number}"] = t
        nodes.append(Node(name, [last, "h"], [f"y{number}"]))
        last = f"y{number}"
    return graph_model(tensors, nodes, [last])


CHAINS = [
    ["ort"],
    ["numpy"],
    ["ort", "ort"],
    ["ort", "numpy"],
    ["numpy", "ort"],
    ["ort", "numpy", "ort"],
    ["numpy", "ort", "numpy"],
]


@pytest.mark.parametrize("t", [FLOATS, CODES], ids=["float32", "int8"])
@pytest.mark.parametrize("runners", CHAINS, ids="-".join)
def test_a_variable_is_the_same_for_all_that_use_it(runners: list[str], t: T) -> None:
    interpreter = Interpreter(model_content=running_sums(*runners, t=t), resolver=resolver())
    interpreter.allocate_tensors()
    assert [row.runs_on for row in interpreter.delegation()] == runners
    dtype, first = (np.int8, -3) if t is CODES else (np.float32, 0)
    np.testing.assert_array_equal(interpreter.get_tensor(1), np.full(SHAPE, first, dtype))
    for _ in range(2):
        variable = np.full(SHAPE, first, dtype)
        for step in range(5):
            value = np.full(SHAPE, step, dtype)
            (got,) = invoked(interpreter, [value])
            for _ in runners:
                value = value + variable
                variable = value
            np.testing.assert_array_equal(got, value)
            np.testing.assert_array_equal(interpreter.get_tensor(1), variable)
        interpreter.reset_all_variables()
        np.testing.assert_array_equal(interpreter.get_tensor(1), np.full(SHAPE, first, dtype))


def test_a_resize_that_changes_something_resets() -> None:
    content = running_sums("ort")
    interpreter = Interpreter(model_content=content, resolver=resolver())
    interpreter.allocate_tensors()
    invoked(interpreter, [np.ones(SHAPE, np.float32)])
    interpreter.allocate_tensors()
    interpreter.resize_tensor_input(0, SHAPE)
    interpreter.allocate_tensors()
    np.testing.assert_array_equal(interpreter.get_tensor(1), np.ones(SHAPE))
    interpreter.resize_tensor_input(0, (2, 3))
    with pytest.warns(BatchWarning, match="may not have a row for each sample"):
        interpreter.allocate_tensors()
    np.testing.assert_array_equal(interpreter.get_tensor(1), np.zeros(SHAPE))


def test_an_exported_variable_starts_as_in_tflite() -> None:
    model = export_onnx(
        running_sums("ort", "ort", t=CODES), resolver=resolver(), state_defaults=True
    )
    assert [value.name for value in model.graph.input] == ["x", "h"]
    assert [value.name for value in model.graph.output] == ["y1", "h_next"]
    session = onnxruntime.InferenceSession(model.SerializeToString())
    x = np.full(SHAPE, 1, np.int8)
    y, after = session.run(None, {"x": x})
    np.testing.assert_array_equal(y, np.full(SHAPE, -4))
    np.testing.assert_array_equal(after, y)
    (y, _) = session.run(None, {"x": x, "h": after})
    np.testing.assert_array_equal(y, np.full(SHAPE, -6))


def test_a_variable_with_data_is_refused() -> None:
    model = read_model(running_sums("ort"))
    graph = model.subgraphs[0]
    tensors = (graph.tensors[0], replace(graph.tensors[1], buffer=len(model.buffers)))
    data = replace(model.buffers[0], data=np.zeros(12, np.uint8))
    graph = replace(graph, tensors=(*tensors, *graph.tensors[2:]))
    broken = replace(model, subgraphs=(graph,), buffers=(*model.buffers, data))
    with pytest.raises(MalformedModel, match="a variable has no data"):
        Interpreter(model_content=write_model(broken))


# Models ------------------------------------------------------------------------------------------

# (model, invokes); all of their outputs are codes or exact.
STREAMING = [("pypi-pymicro-wakeword__hey_jarvis.tflite", 50), ("litert__call_once_mul.tflite", 10)]


@pytest.mark.parametrize(("name", "count"), STREAMING)
def test_a_streaming_model_gives_what_litert_gives(name: str, count: int) -> None:
    content = model_path(name).read_bytes()
    theirs, mine = litert_interpreter(content), Interpreter(model_content=content)
    rng = np.random.default_rng(0)
    for interpreter in (theirs, mine):
        interpreter.allocate_tensors()
    for _ in range(2):
        for _ in range(count):
            feeds = [drawn(detail, rng) for detail in mine.get_input_details()]
            for want, got in zip(invoked(theirs, feeds), invoked(mine, feeds), strict=True):
                np.testing.assert_array_equal(got, want)
        theirs.reset_all_variables()
        mine.reset_all_variables()
    on_numpy = {row.operator for row in mine.delegation() if row.runs_on == "numpy"}
    assert on_numpy == {"CALL_ONCE", "ASSIGN_VARIABLE"}  # what runs once


@pytest.mark.parametrize(("name", "count"), STREAMING)
def test_a_streaming_model_exports(name: str, count: int) -> None:
    content = model_path(name).read_bytes()
    exported = export_onnx(content, state_defaults=True)
    pairs = json.loads({p.key: p.value for p in exported.metadata_props}["tflite.state"])
    session = onnxruntime.InferenceSession(exported.SerializeToString())
    names = [value.name for value in session.get_outputs()]
    theirs = litert_interpreter(content)
    theirs.allocate_tensors()
    rng, state = np.random.default_rng(0), dict[str, Array]()
    for _ in range(count):
        details = theirs.get_input_details()
        feeds = [drawn(detail, rng) for detail in details]
        given = {detail["name"]: array for detail, array in zip(details, feeds, strict=True)}
        results = dict(zip(names, session.run(None, {**given, **state}), strict=True))
        state = {before: results[after] for before, after in pairs}
        for want, got in zip(invoked(theirs, feeds), results.values(), strict=False):
            np.testing.assert_array_equal(got, want)


# The number of iterations is an input of the second one, and the text is handed on.
LOOPS: list[tuple[str, str, dict[str, Array]]] = [
    ("tf__gru_f32.tflite", "GRU", {}),
    (
        "litert__while_op_with_forwarding_input.tflite",
        "If",
        {
            "num_iterations": np.array([1], np.int32),
            "increment_value": np.array(["word"], np.object_),
        },
    ),
]


@pytest.mark.parametrize(("name", "kind", "given"), LOOPS)
def test_a_model_with_a_loop_exports(name: str, kind: str, given: dict[str, Array]) -> None:
    content = model_path(name).read_bytes()
    exported = export_onnx(content)
    assert kind in {node.op_type for node in exported.graph.node}
    session = onnxruntime.InferenceSession(exported.SerializeToString())
    theirs, rng = litert_interpreter(content), np.random.default_rng(0)
    theirs.allocate_tensors()
    feeds = {d["name"]: drawn(d, rng) for d in theirs.get_input_details()} | given
    encoded = [np.array([b"word"]) if x.dtype == np.object_ else x for x in feeds.values()]
    for want, got in zip(invoked(theirs, encoded), session.run(None, feeds), strict=True):
        if got.dtype == np.object_:
            assert [text.encode() for text in got] == list(want)
        else:
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
