"""FILL, RANGE, RANK and BITCAST against LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes

from tests.one_op import Array, Case, T, assert_close, check, one_op_model, ours
from tests.ops.moved import BOOL, FLOAT32, INT8, INT16, INT32, INT64, TYPES, UINT8, ints, tensor
from tests.ops.operands import exported
from tests.ops.versions import check_versions, one_per_operator
from tests.oracle import litert
from tflite_ort.schema import BridgeError, Op, TensorType
from tflite_ort.schema.file.element_types import NUMPY_DTYPE

FLOAT64, UINT32, UINT16 = TensorType.FLOAT64, TensorType.UINT32, TensorType.UINT16
Shape = tuple[int, ...]


def fill(type: TensorType, shape: Shape, dtype: Any = np.int32) -> Case:
    dims = T.constant(np.array(shape, dtype))
    name = f"FILL-{type.name}-{shape}-{np.dtype(dtype).name}"
    return Case(name, Op.FILL, [dims, tensor((), type)], [tensor(shape, type)], quanta=0, rtol=0)


def bitcast(
    source: TensorType, shape: Shape, target: TensorType, result: Shape, runs_on: str = "ort"
) -> Case:
    low = -(2**31) if NUMPY_DTYPE[source].kind == "i" else 0
    return Case(
        f"BITCAST-{source.name}-{target.name}-{shape}",
        Op.BITCAST,
        [T(shape, source)],
        [T(result, target)],
        low=low if NUMPY_DTYPE[source].itemsize >= 4 else 0,
        high=2.0**31 - 1 if NUMPY_DTYPE[source].itemsize >= 4 else 100,
        quanta=0,
        rtol=0,
        runs_on=runs_on,
    )


SPECIAL = [0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x00800000, 0x3F7FFFFF, 0x7F800000]


def test_exported_bits_of_floats() -> None:
    """No operator of ONNX 21 takes a float apart, or puts one together."""
    drawn = np.random.default_rng(3).integers(0, 2**32, 3000, dtype=np.uint32)
    bits = np.concatenate([np.array([*SPECIAL, 0xFF800000, 0x7FC00000], np.uint32), drawn])
    floats = bits.view(np.float32)
    number = np.where(np.isnan(floats), 0x7FC00000, bits).astype(np.uint32)
    apart = bitcast(FLOAT32, bits.shape, INT32, bits.shape).model()
    np.testing.assert_array_equal(exported(apart, [floats])[0].view(np.uint32), number)
    halves = bitcast(INT16, (*bits.shape, 2), FLOAT32, bits.shape).model()
    (got,) = exported(halves, [bits.view(np.int16).reshape(-1, 2)])
    sure = ~np.isnan(floats)
    np.testing.assert_array_equal(got.view(np.uint32)[sure], bits[sure])
    assert np.isnan(got[~sure]).all()


CASES = [
    *[fill(type, (2, 3, 4)) for type in (*TYPES, TensorType.FLOAT16, UINT32)],
    *[fill(FLOAT32, shape, np.int64) for shape in ((), (0, 3), (5,), (1, 2, 1, 2, 1, 2))],
    *[
        bitcast(source, (3, 4), target, (3, 4))
        for source, target in ((INT32, UINT32), (UINT32, INT32), (INT16, UINT16), (INT8, UINT8))
    ],
    bitcast(UINT8, (3, 4), INT8, (3, 4)),
    bitcast(FLOAT32, (3, 4), INT32, (3, 4), "numpy"),
    bitcast(INT32, (3, 2), INT64, (3,), "numpy"),
    bitcast(INT32, (3, 5), UINT8, (3, 5, 4)),
    bitcast(UINT32, (2, 3), INT16, (2, 3, 2)),
    bitcast(INT16, (5, 2), UINT32, (5,)),
    bitcast(UINT8, (4, 3, 4), INT32, (4, 3)),
    bitcast(UINT8, (0, 3, 4), INT32, (0, 3)),
    bitcast(INT64, (), INT16, (4,), "numpy"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_against_litert(case: Case) -> None:
    check(case)


RANK = Case("rank", Op.RANK, [T((2, 3))], [T((), INT32)])
RANGE = Case("range", Op.RANGE, [T((), INT32)] * 3, [T((2,), INT32)])


@pytest.mark.parametrize(
    "case", [*one_per_operator(CASES), RANK, RANGE], ids=lambda case: case.op.name
)
def test_versions_are_those_of_litert(case: Case) -> None:
    check_versions(case)


@given(
    type=st.sampled_from((FLOAT32, INT32, UINT8, INT8, BOOL, INT64)),
    shape=array_shapes(min_dims=0, max_dims=6, min_side=0, max_side=4),
    dtype=st.sampled_from((np.int32, np.int64)),
    seed=st.integers(0, 2**31),
)
def test_fill_of_any_shape(type: TensorType, shape: Shape, dtype: Any, seed: int) -> None:
    check(fill(type, shape, dtype), seed)


def ranged(start: float, limit: float, delta: float, type: TensorType) -> list[Array]:
    return [np.array(value, NUMPY_DTYPE[type]) for value in (start, limit, delta)]


RANGES = (
    (0, 7, 1, INT32),
    (5, -6, -3, INT32),
    (2, 100, 7, INT64),
    (0.0, 1.0, 0.1, FLOAT32),
    (1.5, -2.0, -0.25, FLOAT32),
    (0.0, 100.0, 0.3, FLOAT32),
)


@pytest.mark.parametrize(("start", "limit", "delta", "type"), RANGES)
def test_range_of_constants_and_of_computed_bounds(
    start: float, limit: float, delta: float, type: TensorType
) -> None:
    bounds = ranged(start, limit, delta, type)
    scalars = [T((), type)] * 3
    model = one_op_model(Op.RANGE, scalars, [T((0,), type, shape_signature=(-1,))])
    (want,) = litert(model, bounds, "reference")
    (got,), runs_on = ours(model, bounds)
    assert runs_on == {"ort"}
    assert_close(got, want, 0, 0, "computed")
    constants = [T.constant(bound) for bound in bounds]
    folded = one_op_model(Op.RANGE, constants, [T(want.shape, type)])
    (got,), runs_on = ours(folded, [])
    assert runs_on == {"constant"}
    assert_close(got, want, 0, 0, "constant")


@given(
    type=st.sampled_from((FLOAT32, INT32, INT64)),
    start=st.integers(-50, 50),
    steps=st.integers(1, 40),
    delta=st.integers(1, 9),
    down=st.booleans(),
)
def test_any_range(type: TensorType, start: int, steps: int, delta: int, down: bool) -> None:
    sign = -1 if down else 1
    scale = 0.37 if type is FLOAT32 else 1
    bounds = ranged(start * scale, (start + sign * steps) * scale, sign * delta * scale, type)
    model = one_op_model(Op.RANGE, [T((), type)] * 3, [T((0,), type, shape_signature=(-1,))])
    assert_close(ours(model, bounds)[0][0], litert(model, bounds, "reference")[0], 0, 0, "drawn")


def test_a_range_to_its_start_is_empty() -> None:
    model = one_op_model(Op.RANGE, [T((), INT32)] * 3, [T((0,), INT32, shape_signature=(-1,))])
    assert ours(model, ranged(4, 4, 2, INT32))[0][0].shape == (0,)


@pytest.mark.parametrize("delta", [0, -1])
def test_a_range_that_never_ends_is_an_error(delta: int) -> None:
    model = one_op_model(Op.RANGE, [T((), INT32)] * 3, [T((0,), INT32, shape_signature=(-1,))])
    with pytest.raises(BridgeError, match=f"no way from 1 to 5 by {delta}"):
        ours(model, ranged(1, 5, delta, INT32), providers=[])
    with pytest.raises(BridgeError, match="RANGE_0"):
        ours(model, ranged(1, 5, delta, INT32))


@pytest.mark.parametrize("shape", [(), (3,), (2, 0, 4, 1)])
@pytest.mark.parametrize("type", [FLOAT32, INT8, BOOL], ids=lambda type: type.name)
def test_rank_is_a_constant(shape: Shape, type: TensorType) -> None:
    model = one_op_model(Op.RANK, [T(shape, type)], [T((), INT32)])
    feed = np.zeros(shape, NUMPY_DTYPE[type])
    (got,), runs_on = ours(model, [feed])
    assert runs_on == {"constant"}
    assert_close(got, litert(model, [feed], "reference")[0], 0, 0, "rank")


def test_fill_of_a_computed_shape() -> None:
    inputs = [T((2,), INT32), T(())]
    model = one_op_model(Op.FILL, inputs, [T((0, 0), shape_signature=(-1, -1))])
    feeds = [np.array([2, 3], np.int32), np.array(1.5, np.float32)]
    assert np.array_equal(ours(model, feeds)[0][0], litert(model, feeds, "reference")[0])
    wrong = [np.array([2, -3], np.int32), feeds[1]]
    with pytest.raises(BridgeError, match="dimensions must be >= 0"):
        ours(model, wrong, providers=[])
    with pytest.raises(BridgeError, match="FILL_0"):
        ours(model, wrong)


def test_fill_repeats_a_string() -> None:
    text = TensorType.STRING
    model = one_op_model(Op.FILL, [ints(2, 1), T((), text)], [T((2, 1), text)])
    (got,), runs_on = ours(model, [np.array(b"hey", object)])
    assert runs_on == {"numpy"}
    assert got.tolist() == [[b"hey"], [b"hey"]]


REFUSED: tuple[tuple[Op, list[T], T, Any, str], ...] = (
    (Op.BITCAST, [T((3,), INT16)], T((), INT32), None, r"has to end in 2 for INT32"),
    (
        Op.FILL,
        [ints(2), T((), INT8, scale=0.1)],
        T((2,), INT8, scale=0.2),
        None,
        "differ in scale",
    ),
)


@pytest.mark.parametrize(("op", "inputs", "output", "options", "reason"), REFUSED)
def test_what_litert_refuses_is_refused(
    op: Op, inputs: list[T], output: T, options: Any, reason: str
) -> None:
    model = one_op_model(op, inputs, [output], options)
    feeds = [np.ones(t.shape, NUMPY_DTYPE[t.type]) for t in inputs if not t.is_constant]
    with pytest.raises(BridgeError, match=reason):
        ours(model, feeds)
    with pytest.raises((RuntimeError, ValueError)):
        litert(model, feeds, "reference")
