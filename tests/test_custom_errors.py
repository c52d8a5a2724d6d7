"""What code of a user does wrong is reported, and the interpreter can be used again."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.one_op import Node, T, graph_model
from tests.registered import ONE, Recorder, X, invoked, opened, resolver_of
from tests.test_mutations import mutated
from tflite_ort import (
    BridgeError,
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
        Node("Own", ["y"], ["z"]),
    ]
    model = graph_model({name: T((3,)) for name in "xyz"}, nodes, ["z"])
    registration = Registration(function=lambda x: function(x) if failing else x + 1)
    interpreter = opened(model, registration)
    with pytest.raises(
        KernelError, match=rf"^Own_1, which reads 'y', failed to invoke: {message}$"
    ) as caught:
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
        with pytest.raises(
            KernelError, match=rf"^Own_0, which reads 'in0', failed to invoke: {message}$"
        ):
            invoked(interpreter, X)
        fault = ""
        np.testing.assert_array_equal(invoked(interpreter, X)[0], X * 2)
    assert recorder.counts() == [1, 1, 1, 1]


def test_a_failing_init_frees_the_nodes_before() -> None:
    first, second = Recorder(), Recorder("init")
    nodes = [
        Node("Own", ["x"], ["y"]),
        Node("Other", ["y"], ["z"]),
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
        Node("Own", ["x"], ["y"]),
        Node("Own", ["y"], ["z"]),
    ]
    model = graph_model({name: T((3,)) for name in "xyz"}, nodes, ["z"])
    interpreter = opened(model, Registration(kernel=recorder))
    with pytest.raises(KernelError, match="failed to free: OSError: no free today"):
        interpreter.close()
    assert recorder.counts() == [2, 0, 0, 2]


@pytest.mark.usefixtures("unmeasured")
def test_a_damaged_file_runs_or_is_refused() -> None:
    nodes = [
        Node(Op.ADD, ["x", "x"], ["y"], AddOptions()),
        Node("Own", ["y"], ["z"], {"a": [1, 2], "b": "text"}),
    ]
    content = graph_model({name: T((3,)) for name in "xyz"}, nodes, ["z"])
    recorder, draw = Recorder(), random.Random(0)
    kernels = (Registration(kernel=recorder), Registration(function=lambda x, **options: x * 2))
    for _ in range(150):
        damaged = mutated(content, draw)
        for registration in kernels:
            with suppress(BridgeError), opened(damaged, registration) as interpreter:
                interpreter.allocate_tensors()
                interpreter.invoke()
    init, _, _, free = recorder.counts()
    assert init == free > 0


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
