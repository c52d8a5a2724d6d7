"""The registry of translators and kernels: exact versions, declared inputs, no silent override."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tflite_ort.fallback_kernels import kernel
from tflite_ort.opmap import translator
from tflite_ort.schema import ModelError, Op, OperatorView, TensorType, TensorView, Untranslatable
from tflite_ort.schema.shapes.registry import all_rules
from tflite_ort.schema.values.inputs import Inputs
from tflite_ort.schema.values.sizes import unknown_size
from tflite_ort.specialize.called_subgraphs import CALLERS
from tflite_ort.specialize.resources import NAMES
from tflite_ort.versioning.registry import Entry, Registry

Function = Callable[..., Any]


def view(*constant: bool | None) -> OperatorView[Any]:
    """An operator with an input per argument: constant, computed, or left out (None)."""
    inputs = tuple(
        None
        if is_constant is None
        else TensorView(
            i,
            f"t{i}",
            TensorType.FLOAT32,
            (1,),
            np.zeros(1, np.float32) if is_constant else None,
        )
        for i, is_constant in enumerate(constant)
    )
    return OperatorView(Op.ADD, 1, 0, inputs, (), None)


def test_lookup_is_exact() -> None:
    registry: Registry[Function] = Registry("test")
    registry(Op.ADD, versions=(2, 4))(print)
    assert registry.find(Op.ADD, 1) is None
    assert registry.find(Op.ADD, 5) is None
    assert registry.find(Op.SUB, 2) is None
    entry = registry.find(Op.ADD, 3)
    assert entry is not None
    assert entry.function is print
    assert registry.versions(Op.ADD) == [2, 3, 4]
    assert len(list(registry)) == 1


def test_a_second_registration_of_a_pair_raises() -> None:
    registry: Registry[Function] = Registry("test")
    registry(Op.ADD, versions=(1, 2))(print)
    with pytest.raises(ValueError, match="ADD version 2 has a test already"):
        registry(Op.ADD, versions=(2, 3))(repr)


def test_neither_of_a_registry_and_its_copy_sees_what_is_changed_in_the_other() -> None:
    registry, other = Registry[Function]("test"), Registry[Function]("test")
    other(Op.ADD, versions=(1, 2))(print)
    other(Op.SUB, versions=(1, 1))(repr)
    registry.update(other)
    copy = registry.copy()
    again = copy.copy()
    assert copy.find(Op.ADD, 1) is registry.find(Op.ADD, 1) is not None
    registry.remove(Op.ADD, 1)
    copy.replace(Entry(Op.SUB, 2, 2, Inputs.of(("x",)), len))
    found = [[each.versions(op) for op in (Op.ADD, Op.SUB)] for each in (registry, copy, again)]
    assert found == [[[2], [1]], [[1, 2], [1, 2]], [[1, 2], [1]]]


def test_registries_are_equal_whatever_was_looked_up() -> None:
    registry, other = Registry[Function]("test"), Registry[Function]("test")
    other(Op.ADD, versions=(1, 2))(print)
    other(Op.SUB, versions=(1, 1))(repr)
    registry.update(other)
    copy, fresh = registry.copy(), Registry[Function]("test")
    fresh.update(other)
    assert registry.find(Op.ADD, 1) is not None
    assert registry == copy == fresh
    copy.remove(Op.SUB, 1)
    assert registry == fresh != copy


@pytest.mark.parametrize("versions", [(0, 1), (3, 2), (-1, -1)])
def test_ranges_that_are_none(versions: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="range"):
        Registry[Function]("test")(Op.ADD, versions=versions)(print)


@pytest.mark.parametrize("declared", [("a", "a?"), ("a*", "b")])
def test_declarations_that_say_nothing(declared: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="input"):
        Inputs.of(declared)


def test_inputs_are_bound_by_name() -> None:
    inputs = Inputs.of(("input", "filter!", "bias?"))
    bound = inputs.bind(view(False, True))
    assert bound["filter"].name == "t1"
    assert bound.get("bias") is None
    with pytest.raises(ModelError, match="ADD_0 lacks input 'bias'"):
        bound["bias"]
    assert inputs.bind(view(False, True, None)).get("bias") is None


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ((False,), ModelError, "1 inputs, expected 2 to 3"),
        ((False, True, True, True), ModelError, "4 inputs"),
        ((None, True), ModelError, "'input' was optional but was expected"),
        ((False, False), Untranslatable, "'filter' is not a constant"),
    ],
)
def test_inputs_that_do_not_fit(
    given: tuple[bool | None, ...], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Inputs.of(("input", "filter!", "bias?")).bind(view(*given))


def test_a_last_name_takes_all_that_remain() -> None:
    inputs = Inputs.of(("axis", "values*"))
    assert len(inputs.bind(view(True, False, False, False)).inputs) == 4


def test_inputs_of_other_types_are_refused() -> None:
    inputs = Inputs.parse("ids: i32 i64, values*: f32")
    assert inputs.declared == ("ids", "values*")
    with pytest.raises(ModelError, match=r"ADD_0: FLOAT32 is not one of the types .*INT32, INT64"):
        inputs.check(view(True))
    first, *rest = view(True).inputs * 2
    assert first is not None
    of_bools = replace(first, type=TensorType.BOOL)
    floats = Inputs.parse("x, values*: i8 f32")
    floats.check(replace(view(), inputs=(of_bools, None, *rest)))
    with pytest.raises(ModelError, match="BOOL"):
        floats.check(replace(view(), inputs=(first, *rest, of_bools)))


def test_lists_are_of_few_integers() -> None:
    inputs = Inputs.parse("x, axes[], k?[]: i32")
    assert inputs.declared == ("x", "axes", "k?")
    x, *_ = view(True).inputs
    assert x is not None
    axes, many = (replace(x, type=TensorType.INT64, shape=(n,)) for n in (128, 129))
    floats, unknown = replace(x, shape=(2,)), replace(many, shape=(unknown_size(),))
    for fitting in (axes, unknown):
        inputs.check(replace(view(), inputs=(x, fitting)))
    inputs.check(replace(view(), inputs=(x, many), outputs=(x,) * 129))  # one for each result
    with pytest.raises(ModelError, match="ADD_0: input 'axes' lists 129 numbers, at most 128"):
        inputs.check(replace(view(), inputs=(x, many)))
    empty = replace(axes, shape=(2, 1 << 20, 0))  # a million lists of nothing, if they are listed
    with pytest.raises(ModelError, match="'axes' lists 2097152 numbers, at most 128"):
        inputs.check(replace(view(), inputs=(x, empty)))
    with pytest.raises(ModelError, match="FLOAT32 is not one of the types accepted: INT16, INT32"):
        inputs.check(replace(view(), inputs=(x, floats)))
    with pytest.raises(ModelError, match="INT64 is not one of the types accepted: INT32"):
        inputs.check(replace(view(), inputs=(x, axes, axes)))
    for given in ((x,), (x, axes, axes, axes)):
        with pytest.raises(ModelError, match=f"ADD_0 has {len(given)} inputs, expected 2 to 3"):
            inputs.check(replace(view(), inputs=given))


def test_what_is_not_declared_is_not_registered() -> None:
    with pytest.raises(ValueError, match="HASHTABLES has no row"):
        Registry[Function]("test")("HASHTABLES", versions=(1, 1))(print)
    with pytest.raises(ValueError, match=r"no inputs .*'z'"):
        Registry[Function]("test")(Op.ADD, versions=(1, 1), constants=("z",))(print)


def test_every_operator_that_runs_has_a_shape_rule() -> None:
    """An operator without one could not follow a resized input; but what calls subgraphs has their
    shapes, and handles have none."""
    known = {entry.op for entry in (*translator, *kernel)}
    assert known - set(all_rules()) == CALLERS | NAMES


def test_every_translator_has_a_kernel_of_the_same_versions() -> None:
    for entry in translator:
        versions = range(entry.first, entry.last + 1)
        assert [v for v in versions if kernel.find(entry.op, v) is None] == [], entry.op.name
