"""Operators that a user registers: TFLite's life cycle, plain functions."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.one_op import Node, T, graph_model
from tests.ops.custom_op import custom_model
from tests.registered import (
    ONE,
    Recorder,
    X,
    doubling_until_a_hundred,
    invoked,
    opened,
    places,
    resolver_of,
    translated_double,
)
from tests.subgraph_models import Sub, model_of
from tflite_ort import (
    Interpreter,
    KernelError,
    Registration,
    export_onnx,
)
from tflite_ort.opmap import Graph
from tflite_ort.schema import (
    AddOptions,
    Op,
    OperatorView,
)

Array = npt.NDArray[Any]

# The life cycle ----------------------------------------------------------------------------------


def test_each_function_is_called_as_often_as_tflite_calls_it() -> None:
    recorder = Recorder()
    interpreter = opened(ONE, Registration(kernel=recorder))
    assert recorder.counts() == [1, 0, 0, 0]
    interpreter.allocate_tensors()
    interpreter.allocate_tensors()
    assert recorder.counts() == [1, 1, 0, 0]
    for _ in range(3):
        np.testing.assert_array_equal(invoked(interpreter, X)[0], X * 2)
    assert recorder.counts() == [1, 1, 3, 0]
    for size in (5, 3, 3):
        feed = np.arange(size, dtype=np.float32)
        np.testing.assert_array_equal(invoked(interpreter, feed)[0], feed * 2)
    assert recorder.counts() == [1, 3, 6, 0]
    interpreter.close()
    interpreter.close()
    assert recorder.counts() == [1, 3, 6, 1]


def test_a_resize_without_an_allocation_prepares_nothing() -> None:
    recorder = Recorder()
    interpreter = opened(ONE, Registration(kernel=recorder))
    interpreter.resize_tensor_input(0, [4])
    interpreter.resize_tensor_input(0, [6])
    assert recorder.counts() == [1, 0, 0, 0]
    interpreter.allocate_tensors()
    assert recorder.counts() == [1, 1, 0, 0]
    assert interpreter.get_output_details()[0]["shape"].tolist() == [6]


def test_what_is_collected_is_freed() -> None:
    recorder = Recorder()
    values = {"x": T((3,)), "y": T((3,))}
    model = model_of(Sub(values, [Node("Own", ["x"], ["y"])], ["x"], ["y"], "main"))
    interpreter = opened(model, Registration(kernel=recorder))
    invoked(interpreter, X)
    runner = interpreter.get_signature_runner("main")
    del interpreter
    gc.collect()
    np.testing.assert_array_equal(runner(x=X)["y"], X * 2)
    assert recorder.counts() == [1, 1, 2, 0]
    del runner
    assert recorder.counts() == [1, 1, 2, 1]


def test_each_node_has_a_state_of_its_own_made_of_its_options() -> None:
    recorder, seen = Recorder(), []

    def invoke(context: Any, node: Any) -> None:
        seen.append((node.name, node.index, node.state, node.custom_options, node.options))
        node.outputs[0].data[...] = node.inputs[0].data

    recorder.invoke = invoke  # type: ignore[method-assign]
    options = b"\x07\x00\x00"
    nodes = [Node("Own", ["x"], ["y"], options), Node("Own", ["y"], ["z"], options)]
    model = graph_model({name: T((3,)) for name in "xyz"}, nodes, ["z"])
    with opened(model, Registration(kernel=recorder)) as interpreter:
        invoked(interpreter, X)
    state = {"options": b"\x07\x00\x00"}
    assert seen == [("Own", i, state, b"\x07\x00\x00", b"\x07\x00\x00") for i in (0, 1)]
    assert seen[0][2] is not seen[1][2]
    assert [id(freed) for freed in recorder.freed] == [id(row[2]) for row in seen]


def test_a_kernel_that_has_a_translation_is_prepared_and_not_invoked() -> None:
    recorder = Recorder()
    registration = Registration(translated_double, recorder)
    with opened(ONE, registration) as interpreter:
        np.testing.assert_array_equal(invoked(interpreter, X)[0], X * 2)
        assert places(interpreter) == ["ort"]
    assert recorder.counts() == [1, 1, 0, 1]


def test_an_export_frees_what_it_initialised() -> None:
    recorder = Recorder()
    exported = export_onnx(ONE, resolver=resolver_of(Registration(translated_double, recorder)))
    assert [node.op_type for node in exported.graph.node] == ["Add"]
    assert recorder.counts() == [1, 1, 0, 1]


def test_a_kernel_without_prepare_keeps_the_declared_shape() -> None:
    class Ones:
        @staticmethod
        def invoke(context: Any, node: Any) -> None:
            assert node.state is None
            node.outputs[0].data[...] = 1

    (result,) = invoked(opened(ONE, Registration(kernel=Ones)), np.zeros(7, np.float32))
    np.testing.assert_array_equal(result, np.ones(3, np.float32))


def test_prepare_sets_a_dtype_and_adds_temporaries() -> None:
    class Cumulated:
        def prepare(self, context: Any, node: Any) -> None:
            (source,) = node.inputs
            assert (source.shape, source.dtype, source.data) == ((3,), np.float32, None)
            context.resize_tensor(node.outputs[0], (2, 3), np.float64)
            assert context.add_temporary((3,), np.float64).shape == (3,)
            assert context.num_threads == 2

        def invoke(self, context: Any, node: Any) -> None:
            (total,) = node.temporaries
            total += node.inputs[0].data
            node.outputs[0].data[...] = total

    interpreter = opened(ONE, Registration(kernel=Cumulated()), num_threads=2)
    invoked(interpreter, X)
    (result,) = invoked(interpreter, X)
    np.testing.assert_array_equal(result, np.stack([X * 2.0] * 2))
    assert result.dtype == np.float64


def test_a_dynamic_output_gets_its_shape_at_each_invoke() -> None:
    class Positive:
        prepared = 0

        def prepare(self, context: Any, node: Any) -> None:
            context.set_tensor_to_dynamic(node.outputs[0])
            self.prepared += 1

        def invoke(self, context: Any, node: Any) -> None:
            kept = node.inputs[0].data[node.inputs[0].data > 0]
            context.resize_tensor(node.outputs[0], kept.shape)
            node.outputs[0].data[...] = kept

    kernel, after = Positive(), Recorder()
    nodes = [
        Node("Own", ["x"], ["y"]),
        Node("After", ["y"], ["z"]),
    ]
    model = graph_model({name: T((3,)) for name in "xyz"}, nodes, ["z"])
    resolver = resolver_of(Registration(kernel=kernel))
    resolver.add_custom("After", Registration(kernel=after))
    interpreter = Interpreter(model_content=model, resolver=resolver)
    for feed in (X, X - 1.5, X - 2, X):
        np.testing.assert_array_equal(invoked(interpreter, feed)[0], feed[feed > 0] * 2)
    assert kernel.prepared == 1
    # In TFLite too, what follows is prepared when a shape that reaches it changes.
    assert after.counts() == [1, 4, 4, 0]


def test_a_node_in_the_body_of_a_loop() -> None:
    recorder = Recorder()
    with opened(doubling_until_a_hundred(), Registration(kernel=recorder)) as interpreter:
        np.testing.assert_array_equal(invoked(interpreter, X)[0], X * 16)
        np.testing.assert_array_equal(invoked(interpreter, X * 8)[0], X * 16)
        feed = np.full(5, 10, np.float32)
        np.testing.assert_array_equal(invoked(interpreter, feed)[0], feed * 2)
    assert recorder.counts() == [1, 2, 6, 1]


def test_a_variable_keeps_what_is_written() -> None:
    class Accumulated:
        @staticmethod
        def invoke(context: Any, node: Any) -> None:
            x, total = (tensor.data for tensor in node.inputs)
            total += x
            node.outputs[0].data[...] = total

    tensors = {"x": T((3,)), "total": T((3,), is_variable=True), "y": T((3,))}
    nodes = [Node("Own", ["x", "total"], ["y"])]
    model = graph_model(tensors, nodes, ["y"])
    plain = Registration(function=lambda x, total: (total + x, total + x))
    for registration in (Registration(kernel=Accumulated), plain):
        interpreter = opened(model, registration)
        for number in (1, 2, 3):
            np.testing.assert_array_equal(invoked(interpreter, X)[0], X * number)
        interpreter.reset_all_variables()
        np.testing.assert_array_equal(invoked(interpreter, X)[0], X)


def test_a_computed_tensor_is_no_variable() -> None:
    nodes = [
        Node(Op.ADD, ["x", "x"], ["y"], AddOptions()),
        Node("Own", ["y"], ["z"]),
    ]
    model = graph_model({"x": T((3,)), "y": T((3,), is_variable=True), "z": T((3,))}, nodes, ["z"])
    for registration in (Registration(kernel=Recorder()), Registration(function=lambda y: y * 2)):
        np.testing.assert_array_equal(invoked(opened(model, registration), X)[0], X * 4)


# Functions ---------------------------------------------------------------------------------------

OPTIONS = {"scale": 3.0, "T": 0}


def with_options(x: Array, scale: float = 1.0) -> Array:
    return x * np.float32(scale)


def with_any_option(x: Array, **options: Any) -> Array:
    assert options == OPTIONS
    return x * np.float32(options["scale"])


@pytest.mark.parametrize("function", [with_options, with_any_option])
def test_a_function_gets_the_options_that_it_names(function: Callable[..., Array]) -> None:
    model = custom_model("Own", [T((3,))], [T((3,))], OPTIONS)
    (result,) = invoked(opened(model, Registration(function=function)), X)
    np.testing.assert_array_equal(result, X * 3)


def test_other_options_are_given_as_bytes() -> None:
    def shifted(x: Array, custom_options: bytes) -> Array:
        return x + np.float32(custom_options[0])

    model = custom_model("Own", [T((3,))], [T((3,))], b"\x05\x00\x00")
    np.testing.assert_array_equal(
        invoked(opened(model, Registration(function=shifted)), X)[0], X + 5
    )


def test_a_function_of_numpy_takes_no_options() -> None:
    model = custom_model("Own", [T((3,))], [T((3,))], OPTIONS)
    (result,) = invoked(opened(model, Registration(function=np.sqrt)), X)
    np.testing.assert_array_equal(result, np.sqrt(X))


def test_several_results_and_an_input_left_out() -> None:
    def extremes(x: Array, other: Array | None) -> list[Any]:
        assert other is None
        return [x.min(), x.max(), x]

    nodes = [Node("Own", ["x", None], ["low", "high", "same"])]
    tensors = {"x": T((3,)), "low": T(()), "high": T(()), "same": T((3,))}
    model = graph_model(tensors, nodes, ["low", "high", "same"])
    interpreter = opened(model, Registration(function=extremes))
    low, high, same = invoked(interpreter, X)
    assert (low, high) == (1, 4)
    np.testing.assert_array_equal(same, X)


def test_a_function_is_tried_where_the_declared_shapes_do_not_hold() -> None:
    calls = []

    def halves(x: Array) -> Array:
        calls.append(x.copy())
        return x[: len(x) // 2]

    interpreter = opened(
        custom_model("Own", [T((4,))], [T((2,))]), Registration(function=halves, translate=halved)
    )
    interpreter.allocate_tensors()
    assert calls == []
    (result,) = invoked(interpreter, np.arange(6, dtype=np.float32))
    np.testing.assert_array_equal(result, [0, 1, 2])
    assert places(interpreter) == ["ort"]
    assert [call.tolist() for call in calls] == [[0] * 6]


def halved(op: OperatorView[Any], g: Graph) -> None:
    ends = [g.constant([n], np.int64) for n in (0, op.output.shape[0])]
    g.write(op.output, g.op("Slice", g.read(op.inputs[0]), *ends))  # type: ignore[arg-type]


def test_shapes_that_depend_on_data_are_what_comes_out() -> None:
    def reciprocals(x: Array) -> Array:
        if not x.any():
            raise ZeroDivisionError("nothing to divide by")
        return np.float32(1) / x[x != 0]

    interpreter = opened(
        custom_model("Own", [T((3,))], [T((3,), shape_signature=(-1,))]),
        Registration(function=reciprocals),
    )
    for feed in (X, X - 1, X - 2):
        expected = 1 / feed[feed != 0]
        np.testing.assert_array_equal(invoked(interpreter, feed)[0], expected)


def test_shapes_can_be_given() -> None:
    def pairs(op: OperatorView[Any]) -> list[tuple[int, ...]]:
        return [(2, *op.inputs[0].shape)] if op.inputs[0] else []

    registration = Registration(function=lambda x: np.stack([x, x]), shapes=pairs)
    interpreter = opened(ONE, registration)
    assert invoked(interpreter, np.zeros(5, np.float32))[0].shape == (2, 5)
    wrong = Registration(function=np.sqrt, shapes=lambda op: [])
    with pytest.raises(KernelError, match="0 shapes for 1 outputs"):
        invoked(opened(ONE, wrong), X)


def test_a_function_runs_at_every_invoke_also_of_constants() -> None:
    counter = iter(range(100))
    nodes = [Node("Own", ["c"], ["y"])]
    model = graph_model({"c": T.constant(X), "y": T((3,))}, nodes, ["y"])
    interpreter = opened(model, Registration(function=lambda x: x * next(counter)))
    for number in range(3):
        np.testing.assert_array_equal(invoked(interpreter)[0], X * number)
