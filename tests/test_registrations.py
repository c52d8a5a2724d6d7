"""Registrations: translation and kernel together, overriding, versions, names, the command line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.one_op import Node, T, graph_model, one_op_model
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
    BuiltinOpResolver,
    Interpreter,
    KernelError,
    MutableOpResolver,
    Registration,
    UnresolvedOperator,
)
from tflite_ort.opmap import Graph
from tflite_ort.schema import AddOptions, Op, OperatorView, TensorType

Array = npt.NDArray[Any]


def test_the_programs_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "face_landmark_with_attention.tflite").write_bytes(ADD)
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parent.parent / "docs" / "custom_operators.md"
    names: dict[str, Any] = {}
    for program in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(program, page.name, "exec"), names)
    for name, expected in (("Atan", np.arctan(X)), ("ATAN", np.arctan(X)), ("Scaled", X * 2)):
        model = custom_model(name, [T((3,))], [T((3,))])
        with Interpreter(model_content=model, resolver=names["resolver"]) as interpreter:
            np.testing.assert_allclose(invoked(interpreter, X)[0], expected, rtol=1e-6)


# Translation and kernel --------------------------------------------------------------------------


def test_a_kernel_checks_the_translation() -> None:
    factor = np.float32(2)
    registration = Registration(translated_double, function=lambda x: x * factor, check=True)
    nodes = [
        Node(Op.ADD, ["x", "x"], ["y"], AddOptions()),
        Node("Own", ["y"], ["z"]),
        Node(Op.ADD, ["z", "z"], ["w"], AddOptions()),
    ]
    model = graph_model({name: T((3,)) for name in "xyzw"}, nodes, ["w"])
    interpreter = opened(model, registration)
    np.testing.assert_array_equal(invoked(interpreter, X)[0], X * 8)
    assert places(interpreter) == ["ort", "ort", "ort"]
    factor = np.float32(2.5)
    with pytest.raises(KernelError, match=r"Own_1: .* by 4, at most 0.0002 is allowed"):
        invoked(interpreter, X)
    factor = np.float32(2)
    np.testing.assert_array_equal(invoked(interpreter, X)[0], X * 8)


@pytest.mark.parametrize("off", [0, 1, 2])
def test_codes_may_differ_by_one_from_the_kernel(off: int) -> None:
    codes = T((3,), TensorType.INT8, scale=0.5, zero_point=3)
    model = custom_model("Own", [codes], [codes])

    def same(op: OperatorView[Any], g: Graph) -> None:
        g.write(op.output, g.op("Identity", g.read(op.present_inputs()[0])))

    registration = Registration(same, function=lambda x: x + np.int8(off), check=True)
    interpreter, feed = opened(model, registration), np.array([-5, 0, 7], np.int8)
    if off < 2:
        np.testing.assert_array_equal(invoked(interpreter, feed)[0], feed)
    else:
        with pytest.raises(KernelError, match="by 2, at most 1 is allowed"):
            invoked(interpreter, feed)


def test_without_a_provider_the_kernel_runs() -> None:
    recorder = Recorder()
    interpreter = opened(ONE, Registration(translated_double, recorder, check=True), providers=[])
    np.testing.assert_array_equal(invoked(interpreter, X)[0], X * 2)
    assert recorder.counts() == [1, 1, 1, 0]


# Resolvers ---------------------------------------------------------------------------------------

ADD = one_op_model(Op.ADD, [T((3,)), T((3,))], [T((3,))], AddOptions())


def test_a_builtin_is_overridden_by_a_function() -> None:
    resolver = BuiltinOpResolver()

    @resolver.builtin(Op.ADD)
    def subtract(a: Array, b: Array, fused_activation_function: Any) -> Array:
        assert fused_activation_function == 0
        return a - b

    interpreter = Interpreter(model_content=ADD, resolver=resolver)
    np.testing.assert_array_equal(invoked(interpreter, X, X * 3)[0], X * -2)
    feed = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(invoked(interpreter, feed, feed)[0], feed * 0)
    assert places(interpreter) == ["numpy"]


def test_a_builtin_is_overridden_in_its_life_cycle() -> None:
    recorder = Recorder()
    resolver = BuiltinOpResolver()
    resolver.add_builtin(Op.ADD, Registration(kernel=recorder))
    with Interpreter(model_content=ADD, resolver=resolver) as interpreter:
        np.testing.assert_array_equal(invoked(interpreter, X, X)[0], X * 2)
    assert recorder.counts() == [1, 1, 1, 1]
    assert recorder.freed == [{"options": b""}]


def test_a_class_is_registered_by_the_decorator() -> None:
    resolver = MutableOpResolver()

    @resolver.custom("Own", min_version=2, max_version=3)
    class Twice:
        @staticmethod
        def invoke(context: Any, node: Any) -> None:
            node.outputs[0].data[...] = node.inputs[0].data * 2

    assert resolver.versions("Own") == [2, 3]
    model = custom_model("Own", [T((3,))], [T((3,))], version=3)
    np.testing.assert_array_equal(
        invoked(Interpreter(model_content=model, resolver=resolver), X)[0], X * 2
    )


@pytest.mark.parametrize("version", [1, 4])
def test_other_versions_are_not_resolved(version: int) -> None:
    resolver = resolver_of(Registration(function=np.sqrt), "Own", 2, 3)
    model = custom_model("Own", [T((3,))], [T((3,))], version=version)
    interpreter = Interpreter(model_content=model, resolver=resolver)
    with pytest.raises(UnresolvedOperator, match="registered are versions 2 to 3"):
        interpreter.allocate_tensors()


def test_names_are_case_sensitive() -> None:
    interpreter = Interpreter(
        model_content=ONE, resolver=resolver_of(Registration(function=np.sqrt), "OWN")
    )
    with pytest.raises(UnresolvedOperator, match="'OWN' is, and names are case-sensitive"):
        interpreter.allocate_tensors()


def test_an_interpreter_keeps_what_it_was_given() -> None:
    resolver = resolver_of(Registration(function=lambda x: x * 2))
    interpreter = Interpreter(model_content=ONE, resolver=resolver)
    resolver.add_custom("Own", Registration(function=lambda x: x * 3))
    np.testing.assert_array_equal(invoked(interpreter, X)[0], X * 2)
    again = interpreter.copy()
    np.testing.assert_array_equal(invoked(again, X)[0], X * 3)


def test_registrations_that_cannot_be() -> None:
    cases: Sequence[tuple[dict[str, Any], str]] = [
        ({}, "needs a translator or a kernel"),
        ({"kernel": Recorder(), "function": np.sqrt}, "a kernel or a function, not both"),
        ({"kernel": 5}, "a kernel has a function `invoke`, or is a function"),
        ({"function": np.sqrt, "check": True}, "only a translator with a kernel"),
        ({"translate": translated_double, "check": True}, "only a translator with a kernel"),
    ]
    for fields, message in cases:
        with pytest.raises(ValueError, match=message):
            Registration(**fields)
