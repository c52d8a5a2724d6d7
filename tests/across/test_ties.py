"""Equal scores: exports pick the same ones as LiteRT."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest

from tests.one_op import T, one_op_model
from tests.oracle import litert
from tflite_ort import export_onnx
from tflite_ort.schema import ArgMaxOptions, ArgMinOptions, Op, TensorType, UniqueOptions
from tflite_ort.schema.file.element_types import NUMPY_DTYPE

INT32 = TensorType.INT32
TYPES = (TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8, INT32, TensorType.INT64)


def assert_same(model: bytes, array: np.ndarray[Any, Any]) -> None:
    proto = export_onnx(model)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    got = session.run(None, {session.get_inputs()[0].name: array})
    for kernels in ("default", "optimized", "reference"):
        for one, right in zip(got, litert(model, [array], kernels), strict=True):
            np.testing.assert_array_equal(one, right, err_msg=kernels)


def drawn(shape: tuple[int, ...], type: TensorType, levels: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(levels)
    return rng.integers(0, levels, shape).astype(NUMPY_DTYPE[type])


@pytest.mark.parametrize("type", TYPES, ids=lambda type: type.name)
@pytest.mark.parametrize(("shape", "count"), [((3, 40), 7), ((2, 300), 300), ((1, 2000), 100)])
def test_top_k(shape: tuple[int, ...], count: int, type: TensorType) -> None:
    made = (*shape[:-1], count)
    k = T.constant(np.int32(count))
    model = one_op_model(Op.TOPK_V2, [T(shape, type), k], [T(made, type), T(made, INT32)])
    for levels in (1, 3, 16):
        assert_same(model, drawn(shape, type, levels))


@pytest.mark.parametrize("type", TYPES[:-1], ids=lambda type: type.name)
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("op", [Op.ARG_MAX, Op.ARG_MIN])
def test_the_best_index(op: Op, axis: int, type: TensorType) -> None:
    shape = (3, 17, 70)
    made = tuple(n for at, n in enumerate(shape) if at != axis)
    options = (ArgMaxOptions if op is Op.ARG_MAX else ArgMinOptions)(output_type=INT32)
    given = [T(shape, type), T.constant(np.int32(axis))]
    model = one_op_model(op, given, [T(made, INT32)], options)
    for levels in (1, 2, 5):
        assert_same(model, drawn(shape, type, levels))


@pytest.mark.parametrize("type", [TensorType.FLOAT32, INT32], ids=lambda type: type.name)
def test_values_that_stand_several_times(type: TensorType) -> None:
    options = UniqueOptions(idx_out_type=INT32)
    model = one_op_model(Op.UNIQUE, [T((90,), type)], [T((90,), type), T((90,), INT32)], options)
    for levels in (1, 4, 60):
        assert_same(model, drawn((90,), type, levels))
