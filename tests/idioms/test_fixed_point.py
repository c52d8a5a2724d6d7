"""Integers in doubles through ONNX Runtime: what TFLite's fixed-point arithmetic gives, exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from tflite_ort.opmap import OPSET, Graph, Target
from tflite_ort.opmap.graph import ir
from tflite_ort.opmap.graph.serialization import serialized
from tflite_ort.opmap.idioms.fixed_point import rescaled
from tflite_ort.schema.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
)

Array = npt.NDArray[Any]

MULTIPLIERS = [2.0**-23, 0.0078125, 1.3, 0.29, 3 * 2.0**-17, 0.7e-6, 1.19e-7, 0.013, 0.000244]


def by_nodes(values: Array, multiplier: float, largest: float, bits: int) -> Array:
    g = Graph(Target())
    x = ir.Value("x", dtype=ir.DataType.DOUBLE, shape=(len(values),))
    y = rescaled(g, x, np.float32(multiplier), largest, bits=bits)
    y.dtype = ir.DataType.DOUBLE
    graph = ir.Graph([x], [y], g.nodes, initializers=g.constants.values, name="g")
    content = serialized(ir.Model(graph, opset_imports={"": OPSET}))
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": values.astype(np.float64)})[0])


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
