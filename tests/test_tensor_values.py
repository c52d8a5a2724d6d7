"""What tensors of every type can be set to, and what they give, held against LiteRT's."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT

from tests.one_op import T, one_op_model
from tflite_ort import Interpreter, TensorError
from tflite_ort.schema import Op, ReshapeOptions, TensorType

DTYPES = [
    *(np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
    *(np.float16, np.float32, np.float64, np.complex64, np.complex128),
    *(ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.int4),
    *(np.dtype("S3"), np.dtype("U3"), np.dtype("M8[s]")),
]
# LiteRT segfaults where it reads these before they are set.
UNREADABLE = {TensorType.STRING, TensorType.RESOURCE, TensorType.VARIANT}
TYPES = [kind for kind in TensorType if kind not in UNREADABLE]
# What ours takes beyond LiteRT: 2-bit integers, and 8-bit floats in numpy types of their own.
MORE = {
    (TensorType.INT2, np.dtype(np.int8)),
    (TensorType.FLOAT8_E4M3FN, np.dtype(ml_dtypes.float8_e4m3fn)),
    (TensorType.FLOAT8_E5M2, np.dtype(ml_dtypes.float8_e5m2)),
}


def pair(kind: TensorType, shape: tuple[int, ...] = (2, 3)) -> tuple[Any, Any]:
    longer = (*shape, 1)
    model = one_op_model(
        Op.RESHAPE, [T(shape, kind)], [T(longer, kind)], ReshapeOptions(new_shape=longer)
    )
    both = Interpreter(model_content=model, providers=[]), LiteRT(model_content=model)
    for interpreter in both:
        interpreter.allocate_tensors()
    return both


def outcome(interpreter: Any, value: Any) -> Any:
    """The value that the input has afterwards, or the message, without numbers of bytes and without
    the advice that ours gives after LiteRT's message."""
    try:
        interpreter.set_tensor(0, value)
    except ValueError as error:
        return str(error).strip().split(" 'in0' takes ")[0].split("; ")[0].split(" has ")[0]
    return interpreter.get_tensor(0)


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.name)
def test_the_dtypes_that_a_type_takes(kind: TensorType) -> None:
    ours, theirs = pair(kind)
    assert ours.get_tensor(0).dtype == theirs.get_tensor(0).dtype
    for dtype in map(np.dtype, DTYPES):
        value = np.ones((2, 3)).astype(dtype)
        got, expected = outcome(ours, value), outcome(theirs, value)
        if (kind, dtype) in MORE:
            assert not isinstance(got, str)
        elif isinstance(expected, str):
            assert isinstance(got, str), f"{dtype} is taken"
        else:
            assert got.dtype == expected.dtype
            np.testing.assert_array_equal(got, expected)


class Arraylike:
    """What numpy makes an array of."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.ones((2, 3), np.float32)


NO_ARRAYS: list[Any] = [
    *([[number] * 3] * 2 for number in (1, 1.0, True, 1j, "a", b"a", None)),
    *([[1, 2], [3]], memoryview(np.ones((2, 3), np.float32)), Arraylike(), range(6), 1, {1: 2}),
    *(np.asfortranarray(np.ones((2, 3), np.float32)), np.ones((4, 6), np.float32)[::2, ::2]),
]


@pytest.mark.parametrize(
    "kind",
    [
        *(TensorType.INT64, TensorType.FLOAT64, TensorType.FLOAT32, TensorType.BOOL),
        *(TensorType.COMPLEX128, TensorType.INT4),
    ],
    ids=lambda kind: kind.name,
)
def test_values_that_are_no_plain_arrays(kind: TensorType) -> None:
    ours, theirs = pair(kind)
    for value in NO_ARRAYS:
        got, expected = outcome(ours, value), outcome(theirs, value)
        assert type(got) is type(expected), value
        if not isinstance(expected, str):
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (2, 1, 3)])
def test_shapes_with_their_messages(shape: tuple[int, ...]) -> None:
    ours, theirs = pair(TensorType.FLOAT32, shape)
    for given in ((), (1,), (3,), (2, 1, 3), (0, 3), (2, 1, 4)):
        got, expected = (outcome(each, np.ones(given, np.float32)) for each in (ours, theirs))
        assert type(got) is type(expected)
        assert np.array_equal(got, expected)


@pytest.mark.parametrize(
    ("kind", "value"), [(TensorType.INT4, 8), (TensorType.INT4, -9), (TensorType.UINT4, 16)]
)
def test_numbers_beyond_four_bits(kind: TensorType, value: int) -> None:
    ours, theirs = pair(kind)
    dtype = np.uint8 if kind is TensorType.UINT4 else np.int8
    for interpreter in (ours, theirs):
        with pytest.raises(ValueError, match="must be between"):
            interpreter.set_tensor(0, np.full((2, 3), value, dtype))


def test_a_constant_cannot_be_set() -> None:
    shape = T.constant(np.int32([6]))
    model = one_op_model(Op.RESHAPE, [T((2, 3)), shape], [T((6,))], ReshapeOptions())
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    with pytest.raises(TensorError, match=r"'in1' \(1\) is a constant"):
        interpreter.set_tensor(1, np.int32([6]))
    assert not interpreter.tensor(1)().flags.writeable


def test_the_second_time_is_as_the_first() -> None:
    ours, theirs = pair(TensorType.FLOAT32)
    good = np.arange(6, dtype=np.float32).reshape(2, 3)
    bad = [
        good.astype(np.float64),
        good.T.copy(),
        good.tolist(),
        good[0],
        np.float32(1),
        good[:, ::2],
    ]
    for value in (good, good * 2, *bad, good[::-1]):
        got, expected = outcome(ours, value), outcome(theirs, value)
        assert np.array_equal(got, expected) if isinstance(got, np.ndarray) else got == expected


def test_what_is_given_is_a_copy_each_time() -> None:
    ours, _ = pair(TensorType.INT8)
    for number in range(3):
        ours.set_tensor(0, np.full((2, 3), number, np.int8))
        value = ours.get_tensor(0)
        value[:] = 9
        np.testing.assert_array_equal(ours.get_tensor(0), number)
        assert value.flags.owndata and value.flags.c_contiguous


def test_indices_and_shapes_are_checked_each_time() -> None:
    ours, _ = pair(TensorType.INT32)
    value = np.ones((2, 3), np.int32)
    for index in (0, np.int64(0), np.array(0)):
        ours.set_tensor(index, value)
        np.testing.assert_array_equal(ours.get_tensor(index), value)
    for index in (0.0, "0", None):
        with pytest.raises(TypeError):
            ours.get_tensor(index)
    ours.resize_tensor_input(0, (4, 3))
    with pytest.raises(TensorError):
        ours.set_tensor(0, value)
    with pytest.raises(TensorError):
        ours.get_tensor(0)
