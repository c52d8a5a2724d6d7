"""Element types that few operators take and that LiteRT's Python interface does not hand over."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.accepted_types import accepted_types
from tests.one_op import T, one_op_model, ours
from tests.oracle import litert
from tests.samples import SAMPLES, sample
from tflite_ort.schema import CastOptions, Op, SqueezeOptions, TensorType
from tflite_ort.schema.file.element_types import NUMPY_DTYPE

FLOAT32, STRING = TensorType.FLOAT32, TensorType.STRING
FLOAT8 = (TensorType.FLOAT8_E4M3FN, TensorType.FLOAT8_E5M2)
SMALL = (TensorType.INT2, TensorType.INT4, TensorType.UINT4)
MOVED = [(op, type) for op in SAMPLES for type in FLOAT8 if type in accepted_types(op)]


@pytest.mark.parametrize(("op", "type"), MOVED, ids=lambda part: part.name)
def test_8_bit_floats_move_as_floats_do(op: Op, type: TensorType) -> None:
    """The samples have small whole numbers, which both types hold."""
    wanted, _ = ours(*sample(op, FLOAT32))
    got, _ = ours(*sample(op, type))
    for mine, want in zip(got, wanted, strict=True):
        held = mine.view(NUMPY_DTYPE[type]) if mine.dtype == np.int8 else mine
        assert held.astype(np.float64).tolist() == want.astype(np.float64).tolist()


@pytest.mark.parametrize("type", FLOAT8, ids=lambda type: type.name)
@pytest.mark.parametrize("op", [Op.CAST, Op.DEQUANTIZE], ids=lambda op: op.name)
def test_8_bit_floats_become_floats(op: Op, type: TensorType) -> None:
    x = np.array([0.5, -2, 3, 1.25], NUMPY_DTYPE[type])
    options = CastOptions(type, FLOAT32) if op is Op.CAST else None
    model = one_op_model(op, [T((4,), type)], [T((4,))], options, 9)
    assert ours(model, [x])[0][0].tolist() == [0.5, -2, 3, 1.25]


@pytest.mark.parametrize("type", SMALL, ids=lambda type: type.name)
def test_small_codes_become_floats(type: TensorType) -> None:
    codes = np.array([1, 0, 1], NUMPY_DTYPE[type])
    cast = one_op_model(Op.CAST, [T((3,), type)], [T((3,))], CastOptions(type, FLOAT32), 8)
    assert ours(cast, [codes])[0][0].tolist() == [1, 0, 1]
    scaled = one_op_model(Op.DEQUANTIZE, [T((3,), type, scale=0.5)], [T((3,))], None, 8)
    assert ours(scaled, [codes])[0][0].tolist() == [0.5, 0, 0.5]


@pytest.mark.parametrize("type", [TensorType.INT4, TensorType.UINT4], ids=lambda type: type.name)
def test_floats_become_small_codes(type: TensorType) -> None:
    x = np.array([0.3, 1.2, -9, 99], np.float32)
    model = one_op_model(Op.QUANTIZE, [T((4,))], [T((4,), type, scale=0.5)], None, 5)
    (got,), _ = ours(model, [x])
    assert got.tolist() == litert(model, [x])[0].tolist()


def test_bfloat16_becomes_float() -> None:
    x = np.array([1.5, -3], ml_dtypes.bfloat16)
    options = CastOptions(TensorType.BFLOAT16, FLOAT32)
    model = one_op_model(Op.CAST, [T((2,), TensorType.BFLOAT16)], [T((2,))], options, 7)
    assert ours(model, [x])[0][0].tolist() == litert(model, [x])[0].tolist() == [1.5, -3]


def test_strings_are_squeezed() -> None:
    x = np.array([[b"one"], [b"two"]], np.object_)
    options = SqueezeOptions(squeeze_dims=(1,))
    model = one_op_model(Op.SQUEEZE, [T((2, 1), STRING)], [T((2,), STRING)], options, 2)
    assert ours(model, [x])[0][0].tolist() == [b"one", b"two"]
