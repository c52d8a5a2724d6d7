"""Resolvers: exact lookup, overriding, custom operators, and what an interpreter does with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.one_op import T, one_op_model
from tflite_ort import (
    BuiltinOpResolver,
    ExportError,
    Interpreter,
    MutableOpResolver,
    Registration,
    UnresolvedOperator,
    UnsupportedVersion,
    export_onnx,
)
from tflite_ort.fallback_kernels import kernel
from tflite_ort.opmap import Graph, translator
from tflite_ort.schema import (
    AddOptions,
    Model,
    Op,
    OperatorCode,
    OperatorView,
    read_model,
    write_model,
)

ADD = one_op_model(Op.ADD, [T((3,)), T((3,))], [T((3,))], AddOptions())
ADD_9 = one_op_model(Op.ADD, [T((3,)), T((3,))], [T((3,))], AddOptions(), version=9)
VALUES = np.array([1, 2, 4], np.float32)


def difference(op: OperatorView[Any], inputs: Sequence[Any], state: Any) -> tuple[Any, ...]:
    return (inputs[0] - inputs[1],)


def translated_difference(op: OperatorView[Any], g: Graph) -> None:
    g.write(op.output, g.op("Sub", g.read(op["a"]), g.read(op["b"])))


BOTH = Registration(translated_difference, difference, ("a", "b"))
REGISTRATIONS = [(BOTH, "ort"), (Registration(kernel=difference), "numpy")]


def run(model: bytes, resolver: Any) -> tuple[Any, str]:
    interpreter = Interpreter(model_content=model, resolver=resolver)
    interpreter.allocate_tensors()
    for detail, value in zip(interpreter.get_input_details(), (VALUES, VALUES * 3), strict=False):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    (output,) = interpreter.get_output_details()
    return interpreter.get_tensor(output["index"]), interpreter.delegation()[0].runs_on


def test_the_builtin_resolver_has_all_that_is_registered() -> None:
    resolver = BuiltinOpResolver()
    for op, version in {*translator.pairs(), *kernel.pairs()}:
        found = resolver.find(op, version)
        assert found is not None
        for entry, function in (
            (translator.find(op, version), found.translate),
            (kernel.find(op, version), found.kernel),
        ):
            assert (None if entry is None else entry.function) is function
    assert resolver.find(Op.ADD, 7) is None
    assert resolver.find(Op.ADD, 0) is None
    assert resolver.find("ADD", 1) is None


def test_a_lookup_never_finds_the_newest_version_below() -> None:
    resolver = MutableOpResolver()
    resolver.add_builtin(Op.ADD, BOTH)
    resolver.add_builtin(Op.ADD, BOTH, 3, 4)
    assert resolver.versions(Op.ADD) == [1, 3, 4]
    assert resolver.find(Op.ADD, 2) is None
    with pytest.raises(UnsupportedVersion, match="this library has versions 1, 3, 4"):
        Interpreter(model_content=ADD_9, resolver=resolver)


@pytest.mark.parametrize(("registration", "runs_on"), REGISTRATIONS, ids=["both", "kernel"])
def test_a_builtin_can_be_replaced(registration: Registration, runs_on: str) -> None:
    resolver = BuiltinOpResolver()
    resolver.add_builtin(Op.ADD, registration)
    result, ran_on = run(ADD, resolver)
    np.testing.assert_array_equal(result, VALUES - VALUES * 3)
    assert ran_on == runs_on
    assert run(ADD, None)[1] == "ort"
    np.testing.assert_array_equal(run(ADD, None)[0], VALUES * 4)


def test_a_version_that_is_not_known_can_be_added() -> None:
    resolver = BuiltinOpResolver()
    resolver.add_builtin(Op.ADD, BOTH, 7, 9)
    assert resolver.versions(Op.ADD) == list(range(1, 10))
    np.testing.assert_array_equal(run(ADD_9, resolver)[0], VALUES - VALUES * 3)


def test_an_export_uses_the_resolver() -> None:
    resolver = BuiltinOpResolver()
    resolver.add_builtin(Op.ADD, BOTH)
    assert [node.op_type for node in export_onnx(ADD, resolver=resolver).graph.node] == ["Sub"]
    resolver.add_builtin(Op.ADD, Registration(kernel=difference))
    with pytest.raises(ExportError, match="no translator for ADD version 1"):
        export_onnx(ADD, resolver=resolver)


def custom_model(version: int = 1) -> bytes:
    code = OperatorCode(builtin_code=Op.CUSTOM, custom_code="Difference", version=version)
    return write_model(replace(read_model(ADD), operator_codes=(code,)))


def test_a_custom_operator_is_found_by_name_and_version() -> None:
    resolver = BuiltinOpResolver()
    with pytest.raises(UnresolvedOperator, match=r"unresolved custom op: Difference\."):
        Interpreter(model_content=custom_model(), resolver=resolver).allocate_tensors()
    resolver.add_custom("Difference", BOTH, 1, 2)
    assert resolver.find("Difference", 2) == BOTH
    with pytest.raises(UnresolvedOperator, match="registered are versions 1 to 2"):
        Interpreter(model_content=custom_model(3), resolver=resolver).allocate_tensors()


@pytest.mark.parametrize(("registration", "runs_on"), REGISTRATIONS, ids=["both", "kernel"])
def test_a_custom_operator_runs(registration: Registration, runs_on: str) -> None:
    resolver = MutableOpResolver()
    resolver.add_custom("Difference", registration)
    result, ran_on = run(custom_model(), resolver)
    np.testing.assert_array_equal(result, VALUES - VALUES * 3)
    assert ran_on == runs_on


def test_a_resized_custom_operator_makes_the_shape_it_makes() -> None:
    resolver = MutableOpResolver()
    resolver.add_custom("Difference", BOTH)
    interpreter = Interpreter(model_content=custom_model(), resolver=resolver)
    for detail in interpreter.get_input_details():
        interpreter.resize_tensor_input(detail["index"], [5])
    interpreter.allocate_tensors()
    interpreter.invoke()
    (output,) = interpreter.get_output_details()
    assert interpreter.get_tensor(output["index"]).shape == (5,)


def test_add_all_replaces_what_is_there() -> None:
    mine = MutableOpResolver()
    mine.add_builtin(Op.ADD, Registration(kernel=difference), 1, 2)
    resolver = BuiltinOpResolver()
    resolver.add_all(mine)
    assert resolver.find(Op.ADD, 1) == Registration(kernel=difference)
    assert resolver.find(Op.ADD, 3) == BuiltinOpResolver().find(Op.ADD, 3)
    assert resolver.versions(Op.ADD) == BuiltinOpResolver().versions(Op.ADD)


def test_what_was_found_can_be_added() -> None:
    resolver = MutableOpResolver()
    found = BuiltinOpResolver().find(Op.ADD, 1)
    assert found is not None
    resolver.add_builtin(Op.ADD, found)
    assert resolver.find(Op.ADD, 1) == found
    np.testing.assert_array_equal(run(ADD, resolver)[0], VALUES * 4)


def test_a_narrowed_resolver_has_the_model_s_operators_alone() -> None:
    narrow = BuiltinOpResolver().narrowed(read_model(ADD))
    assert narrow.translators.pairs() == narrow.kernels.pairs() == [(Op.ADD, 1)]
    np.testing.assert_array_equal(run(ADD, narrow)[0], VALUES * 4)
    code = OperatorCode(builtin_code=Op.ADD, version=9)
    nothing = BuiltinOpResolver().narrowed(Model(version=3, operator_codes=(code,)))
    assert nothing.versions(Op.ADD) == []


def test_bad_registrations_are_refused() -> None:
    with pytest.raises(ValueError, match="needs a translator or a kernel"):
        Registration()
    with pytest.raises(ValueError, match="min_version 3 is above max_version 1"):
        MutableOpResolver().add_custom("Difference", BOTH, 3)
