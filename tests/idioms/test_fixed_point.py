"""Integers in doubles through ONNX Runtime: what TFLite's fixed-point arithmetic gives, exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from tflite_ort.opmap import OPSET, Graph, Target
from tflite_ort.opmap.idioms.fixed_point import rescaled
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.serialization import serialized
from tflite_ort.schema.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)

Array = npt.NDArray[Any]

MULTIPLIERS = [2.0**-23, 0.0078125, 1.3, 0.29, 3 * 2.0**-17, 0.7e-6, 1.19e-7, 0.013, 0.000244]


def by_nodes(
    values: Array, multiplier: npt.ArrayLike, largest: float, bits: int, *, upwards: bool = False
) -> Array:
    g = Graph(Target())
    x = ir.Value("x", dtype=ir.DataType.DOUBLE, shape=values.shape)
    y = rescaled(g, x, np.float32(multiplier), largest, bits=bits, upwards=upwards)
    y.dtype = ir.DataType.DOUBLE
    graph = ir.Graph([x], [y], g.nodes, initializers=g.constants.values, name="g")
    content = serialized(ir.Model(graph, opset_imports={"": OPSET}))
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": values.astype(np.float64)})[0])


def rescale_upwards(values: Array, q31: Array, shift: Array) -> Array:
    """Two roundings, both of halves upwards, as of TFLite's layers of 16-bit activations."""
    left, right = (np.maximum(sign * shift.astype(np.int64), 0) for sign in (1, -1))
    high = ((values << left) * q31.astype(np.int64) + 2**30) >> 31
    return np.where(right > 0, (high + (1 << np.maximum(right - 1, 0))) >> right, high)


def near_edges(multiplier: float, bits: int, rng: np.random.Generator) -> Array:
    """Integers of 31 bits around those where one result gives way to the next."""
    q31, shift = (int(part) for part in quantize_multiplier(np.float32(multiplier)))
    results = rng.integers(0, 2**bits, 300).astype(object)
    places = [int((2 * k + 1) * 2**30 * 2 ** max(-shift, 0)) // q31 for k in results]
    values = [place + off for place in places for off in (-2, -1, 0, 1, 2)]
    kept = np.array([value for value in values if value < 2**31], np.int64)
    return np.concatenate([kept, -kept])


@pytest.mark.parametrize("bits", [9, 17])
@pytest.mark.parametrize("multiplier", MULTIPLIERS)
@pytest.mark.parametrize("largest", [2.0**21, 2.0**30, 2.0**31])
def test_rescaling_is_exact(multiplier: float, bits: int, largest: float) -> None:
    rng = np.random.default_rng(0)
    values = np.concatenate(
        [near_edges(multiplier, bits, rng), rng.integers(-(2**31), 2**31, 1000)]
    )
    values = values[np.abs(values) <= largest]
    q31, shift = quantize_multiplier(np.float32(multiplier))
    fits = np.abs(values) * 2.0 ** max(int(shift), 0) < 2**31
    want = multiply_by_quantized_multiplier(values[fits], q31, shift)
    got = by_nodes(values[fits], multiplier, largest, bits)
    inside = np.abs(want) < 2**bits
    assert inside.any()
    np.testing.assert_array_equal(got[inside], want[inside])


# Two of them have few bits, so that products are halves.
NARROW_MULTIPLIERS = [*MULTIPLIERS, 0.5, 0.75, 2.0**-9, 3 * 2.0**-10, 5.7, 0.003, 1.9e-5]


@pytest.mark.parametrize("upwards", [False, True])
@pytest.mark.parametrize("multiplier", NARROW_MULTIPLIERS)
def test_every_small_integer_is_rescaled_exactly(multiplier: float, upwards: bool) -> None:
    largest = 2**19
    values = np.arange(-largest, largest + 1)
    q31, shift = quantize_multiplier(np.float32(multiplier))
    want = (rescale_upwards if upwards else multiply_by_quantized_multiplier)(values, q31, shift)
    got = by_nodes(values, multiplier, float(largest), 32, upwards=upwards)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "multipliers", [(0.3, 0.31, 0.29), (0.3, 0.01, 1e-4), (0.5, 0.3, 0.25), (0.9, 0.01, 1.4)]
)
@pytest.mark.parametrize("upwards", [False, True])
def test_channels_of_several_multipliers_are_rescaled_exactly(
    multipliers: tuple[float, ...], upwards: bool
) -> None:
    values = np.random.default_rng(0).integers(-(2**20), 2**20, (20_000, 3))
    values[:3000] = np.arange(-1500, 1500)[:, np.newaxis]
    q31, shift = quantize_multiplier(np.float32(multipliers))
    want = (rescale_upwards if upwards else multiply_by_quantized_multiplier)(values, q31, shift)
    got = by_nodes(values, multipliers, 2.0**20, 32, upwards=upwards)
    np.testing.assert_array_equal(got, want)
