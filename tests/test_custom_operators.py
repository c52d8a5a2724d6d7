"""Operators that a user registers: the life cycle, functions, translators, errors, exports."""

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
    invoked,
    opened,
    places,
    resolver_of,
    translated_double,
)
from tflite_ort import (
    ExportError,
    Interpreter,
    KernelError,
    Registration,
    TranslatorError,
    Untranslatable,
    export_onnx,
)
from tflite_ort.opmap import Graph
from tflite_ort.schema import AddOptions, Op, OperatorView

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
    interpreter = opened(ONE, Registration(kernel=recorder))
    invoked(interpreter, X)
    del interpreter
    gc.collect()
    assert recorder.counts() == [1, 1, 1, 1]


def test_each_node_has_a_state_of_its_own_made_of_its_options() -> None:
    recorder, seen = Recorder(), []

    def invoke(context: Any, node: Any) -> None:
        seen.append((node.name, node.index, node.state, node.custom_options, node.options))
        node.outputs[0].data[...] = node.inputs[0].data

    recorder.invoke = invoke  # type: ignore[method-assign]
    nodes = [
        Node(Op.CUSTOM, ["x"], ["y"], custom_code="Own"),
        Node(Op.CUSTOM, ["y"], ["z"], custom_code="Own"),
    ]
    tensors = {name: T((3,)) for name in "xyz"}
    options = np.frombuffer(b"\x07\x00\x00", np.uint8)
    model = graph_model(tensors, nodes, ["z"], custom_options=options)
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
        Node(Op.CUSTOM, ["x"], ["y"], custom_code="Own"),
        Node(Op.CUSTOM, ["y"], ["z"], custom_code="After"),
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

    nodes = [Node(Op.CUSTOM, ["x", None], ["low", "high", "same"], custom_code="Own")]
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
    nodes = [Node(Op.CUSTOM, ["c"], ["y"], custom_code="Own")]
    model = graph_model({"c": T.constant(X), "y": T((3,))}, nodes, ["y"])
    interpreter = opened(model, Registration(function=lambda x: x * next(counter)))
    for number in range(3):
        np.testing.assert_array_equal(invoked(interpreter)[0], X * number)


# Errors ------------------------------------------------------------------------------------------


class Odd(Exception):
    """No error of Python's own."""


def _raises(x: Array) -> Array:
    raise Odd("not today")


def _writes(x: Array) -> Array:
    x[0] = 7
    return x


# What goes wrong with a function, what the message says, and the original error.
FAULTS = [
    (_raises, r"Odd: not today", Odd),
    (_writes, r"ValueError: assignment destination is read-only", ValueError),
    (lambda x: (x, x), r"it returned 2 results, expected 1", KernelError),
    (lambda x: None, r"result 0 is NoneType, expected an array", KernelError),
    (lambda x: x.astype(np.float64), r"result 0 is float64, expected float32", KernelError),
    (lambda x: x[1:], r"result 0 has shape \(2,\), expected \(3,\)", KernelError),
]


@pytest.mark.parametrize(("function", "message", "cause"), FAULTS)
def test_what_a_function_does_wrong_is_reported(
    function: Callable[[Array], Any], message: str, cause: type[Exception]
) -> None:
    failing = True
    nodes = [
        Node(Op.ADD, ["x", "x"], ["y"], AddOptions()),
        Node(Op.CUSTOM, ["y"], ["z"], custom_code="Own"),
    ]
    model = graph_model({name: T((3,)) for name in "xyz"}, nodes, ["z"])
    registration = Registration(function=lambda x: function(x) if failing else x + 1)
    interpreter = opened(model, registration)
    with pytest.raises(KernelError, match=rf"^Own_1 failed to invoke: {message}$") as caught:
        invoked(interpreter, X)
    assert isinstance(caught.value.__cause__, cause)
    failing = False
    np.testing.assert_array_equal(invoked(interpreter, X)[0], X * 2 + 1)


def _invoke_faults(fault: str, context: Any, node: Any) -> Any:
    (source,), (output,) = node.inputs, node.outputs
    if fault == "raises":
        raise Odd("not today")
    if fault == "writes":
        source.data[0] = 7
    if fault == "returns":
        return source.data
    if fault == "dtype":
        output.data = source.data.astype(np.float64)
    if fault == "shape":
        output.data = source.data[1:]
    if fault == "resizes":
        context.resize_tensor(output, (2,))
    if fault == "adds":
        context.add_temporary((2,))
    if fault == "another":
        context.resize_tensor(source, (2,))
    return None


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("raises", r"Odd: not today"),
        ("writes", r"ValueError: assignment destination is read-only"),
        ("returns", r"invoke returned ndarray, and fills its outputs"),
        ("dtype", r"result 0 is float64, expected float32"),
        ("shape", r"result 0 has shape \(2,\), expected \(3,\)"),
        ("resizes", r"'out0' is not dynamic: its shape is set in prepare"),
        ("adds", r"a temporary is added in prepare alone"),
        ("another", r"'in0' is no output of Own"),
    ],
)
def test_what_an_invoke_does_wrong_is_reported(fault: str, message: str) -> None:
    recorder, healthy = Recorder(), Recorder.invoke

    def invoke(context: Any, node: Any) -> Any:
        return _invoke_faults(fault, context, node) if fault else healthy(recorder, context, node)

    recorder.invoke = invoke  # type: ignore[method-assign]
    with opened(ONE, Registration(kernel=recorder)) as interpreter:
        with pytest.raises(KernelError, match=rf"^Own_0 failed to invoke: {message}$"):
            invoked(interpreter, X)
        fault = ""
        np.testing.assert_array_equal(invoked(interpreter, X)[0], X * 2)
    assert recorder.counts() == [1, 1, 1, 1]


def test_a_failing_init_frees_the_nodes_before() -> None:
    first, second = Recorder(), Recorder("init")
    nodes = [
        Node(Op.CUSTOM, ["x"], ["y"], custom_code="Own"),
        Node(Op.CUSTOM, ["y"], ["z"], custom_code="Other"),
    ]
    model = graph_model({name: T((3,)) for name in "xyz"}, nodes, ["z"])
    resolver = resolver_of(Registration(kernel=first))
    resolver.add_custom("Other", Registration(kernel=second))
    with pytest.raises(KernelError, match="Other_1 failed to initialize: OSError: no init today"):
        Interpreter(model_content=model, resolver=resolver)
    assert (first.counts(), second.counts()) == ([1, 0, 0, 1], [1, 0, 0, 0])


def test_a_failing_prepare_is_reported_by_the_allocation() -> None:
    recorder = Recorder("prepare")
    interpreter = opened(ONE, Registration(kernel=recorder))
    with pytest.raises(KernelError, match="Own_0 failed to prepare: OSError: no prepare today"):
        interpreter.allocate_tensors()
    recorder.failing = ""
    np.testing.assert_array_equal(invoked(interpreter, X)[0], X * 2)
    assert recorder.counts() == [1, 2, 1, 0]


def test_a_failing_free_leaves_none_of_the_others() -> None:
    recorder = Recorder("free")
    nodes = [
        Node(Op.CUSTOM, ["x"], ["y"], custom_code="Own"),
        Node(Op.CUSTOM, ["y"], ["z"], custom_code="Own"),
    ]
    model = graph_model({name: T((3,)) for name in "xyz"}, nodes, ["z"])
    interpreter = opened(model, Registration(kernel=recorder))
    with pytest.raises(KernelError, match="failed to free: OSError: no free today"):
        interpreter.close()
    assert recorder.counts() == [2, 0, 0, 2]


def test_a_translator_that_fails_is_reported() -> None:
    def translate(op: OperatorView[Any], g: Graph) -> None:
        raise Odd("not today")

    for kernel in (None, Recorder()):
        interpreter = opened(ONE, Registration(translate, kernel))
        with pytest.raises(
            TranslatorError, match="Own_0: its translator failed: Odd: not"
        ) as caught:
            interpreter.allocate_tensors()
        assert isinstance(caught.value.__cause__, Odd)
    with pytest.raises(TranslatorError):
        export_onnx(ONE, resolver=resolver_of(Registration(translate)))


def test_a_translator_that_refuses_leaves_the_operator_to_numpy() -> None:
    def translate(op: OperatorView[Any], g: Graph) -> None:
        raise Untranslatable("no such node")

    interpreter = opened(ONE, Registration(translate, function=lambda x: x * 2))
    np.testing.assert_array_equal(invoked(interpreter, X)[0], X * 2)
    (row,) = interpreter.delegation()
    assert (row.runs_on, row.reason) == ("numpy", "no such node")
    with pytest.raises(ExportError, match="Own_0 version 1: no such node"):
        export_onnx(ONE, resolver=resolver_of(Registration(translate)))
