"""Codes whose scales are far from each other: the true result, cut to the codes, or a refusal.

LiteRT is no reference here: its ADD ends the process, and its SUB and RELU shift all bits out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest

from tests.one_op import Array, T, one_op_model, ours
from tflite_ort import BridgeError, export_onnx
from tflite_ort.schema import AddOptions, L2NormOptions, Op, SubOptions, TensorType
from tflite_ort.schema.values.semantics import quantized_range

UINT8, INT8, INT16 = TensorType.UINT8, TensorType.INT8, TensorType.INT16
ZERO_POINTS = {UINT8: 120, INT8: -5, INT16: 0}
TYPES = pytest.mark.parametrize("type", ZERO_POINTS, ids=lambda type: type.name)


def drawn(type: TensorType, scale: float, rng: np.random.Generator) -> tuple[T, Array, Array]:
    """A tensor, codes for it, and the reals that they stand for."""
    tensor = T((600,), type, scale=scale, zero_point=ZERO_POINTS[type])
    codes = tensor.random(rng)
    codes[:50] = ZERO_POINTS[type]
    reals = (codes.astype(np.float64) - ZERO_POINTS[type]) * np.float64(np.float32(scale))
    return tensor, codes, reals


def quantised(reals: Array, output: T) -> Array:
    assert isinstance(output.scale, float) and isinstance(output.zero_point, int)
    codes = np.rint(reals / np.float64(np.float32(output.scale))) + output.zero_point
    return np.asarray(np.clip(codes, *quantized_range(output.type)), np.int64)


def check(model: bytes, feeds: list[Array], want: Array) -> None:
    """The interpreter, numpy and the export are within a quantum of `want`."""
    session = onnxruntime.InferenceSession(export_onnx(model).SerializeToString())
    names = [each.name for each in session.get_inputs()]
    results: list[Any] = [ours(model, feeds)[0][0], ours(model, feeds, [])[0][0]]
    results += session.run(None, dict(zip(names, feeds, strict=True)))
    for got, what in zip(results, ("interpreter", "numpy", "export"), strict=True):
        assert np.abs(got.astype(np.int64) - want).max() <= 1, what


@TYPES
@pytest.mark.parametrize("op", [Op.ADD, Op.SUB], ids=lambda op: op.name)
@pytest.mark.parametrize("scales", [(2e3, 9e2), (9e6, 1e-6), (1e8, 3e7), (1e12, 1.0), (1e-3, 3e9)])
def test_sums(op: Op, type: TensorType, scales: tuple[float, float]) -> None:
    rng = np.random.default_rng(0)
    (a, first, x), (b, second, y) = (drawn(type, scale, rng) for scale in scales)
    made = T(a.shape, type, scale=0.01, zero_point=ZERO_POINTS[type])
    options = AddOptions() if op is Op.ADD else SubOptions()
    model = one_op_model(op, [a, b], [made], options)
    want = quantised(x + y if op is Op.ADD else x - y, made)
    check(model, [first, second], want)


@TYPES
@pytest.mark.parametrize("op", [Op.RELU, Op.RELU6], ids=lambda op: op.name)
@pytest.mark.parametrize("scales", [(1e-12, 1e-12), (1e-4, 1e-12), (1e-12, 3e-12)])
def test_limits_next_to_each_other(op: Op, type: TensorType, scales: tuple[float, float]) -> None:
    given, codes, reals = drawn(type, scales[0], np.random.default_rng(0))
    made = T(given.shape, type, scale=scales[1], zero_point=ZERO_POINTS[type])
    results = [
        ours(one_op_model(op, [given], [made]), [codes], providers)[0][0]
        for providers in (None, [])
    ]
    want = quantised(np.clip(reals, 0, 6 if op is Op.RELU6 else None), made)
    assert np.abs(results[0].astype(np.int64) - want).max() <= 1
    assert results[1].min() >= ZERO_POINTS[type]


@pytest.mark.parametrize("type", [UINT8, INT8], ids=lambda type: type.name)
def test_scales_whose_codes_exceed_floats(type: TensorType) -> None:
    given, codes, _ = drawn(type, 3e38, np.random.default_rng(0))
    model = one_op_model(Op.ADD, [given, given], [given], AddOptions())
    with pytest.raises(BridgeError, match="exceed float32"):
        ours(model, [codes, codes])
    with pytest.raises(BridgeError):
        export_onnx(model)


@pytest.mark.parametrize("type", [UINT8, INT8], ids=lambda type: type.name)
@pytest.mark.parametrize("scale", [1e-38, 1e-30, 1e20, 1e30])
def test_norms_do_not_depend_on_the_scale(type: TensorType, scale: float) -> None:
    rng = np.random.default_rng(0)
    given = T((60, 8), type, scale=scale, zero_point=ZERO_POINTS[type])
    made = T(given.shape, type, scale=1 / 128, zero_point=128 if type is UINT8 else 0)
    codes = given.random(rng)
    steps = codes.astype(np.float64) - ZERO_POINTS[type]
    want = quantised(steps / np.sqrt((steps**2).sum(axis=1, keepdims=True)), made)
    check(one_op_model(Op.L2_NORMALIZATION, [given], [made], L2NormOptions()), [codes], want)
