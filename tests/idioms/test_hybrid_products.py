"""Rows times 8-bit weights through ONNX Runtime: in floats, rounded to 8 bits, in digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from tflite_ort.opmap import OPSET, Graph, Target
from tflite_ort.opmap.idioms.hybrid import Rounding
from tflite_ort.opmap.idioms.hybrid_products import WeightMatrix, keeps_codes, sum_of_products
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.serialization import serialized
from tflite_ort.providers.trials import exact_weight_type

Array = npt.NDArray[Any]

CPU = Target(exact_weight_type(), cpu_kernels=True)
COLUMNS, UNITS = 1024, 256  # so many that a single row meets them in digits
ROWS = {
    "normal": lambda rng: rng.normal(0, 3, COLUMNS),
    "positive": lambda rng: rng.uniform(0, 255, COLUMNS),
    "one of many": lambda rng: 7.5 * (np.arange(COLUMNS) == 99),
    "powers of 2": lambda rng: 2.0 ** rng.integers(-12, 12, COLUMNS),
    "of all magnitudes": lambda rng: rng.normal(0, 1, COLUMNS) * 10.0 ** rng.uniform(-9, 0),
    "tiny": lambda rng: rng.normal(0, 1e-20, COLUMNS),
    "huge": lambda rng: rng.normal(0, 1e20, COLUMNS),
    "equal": lambda rng: np.full(COLUMNS, -0.1),
    "zeros": lambda rng: np.zeros(COLUMNS),
}


def weights(rng: np.random.Generator, units: int = UNITS, columns: int = COLUMNS) -> WeightMatrix:
    codes = rng.integers(-127, 128, (units, columns)).astype(np.int8)
    return WeightMatrix(codes, rng.uniform(0.001, 0.02, units).astype(np.float32))


def computed(
    target: Target, x: Array, matrix: WeightMatrix, rounding: Rounding | None = None
) -> tuple[Array, set[str]]:
    """What the nodes give, and which they are."""
    g = Graph(target)
    value = ir.Value("x", dtype=ir.DataType.FLOAT, shape=x.shape)
    bias = g.constant(np.zeros(len(matrix.codes), np.float32))
    y = sum_of_products(g, [(value, matrix)], rounding=rounding, single_row=len(x) == 1, added=bias)
    y.dtype = ir.DataType.FLOAT
    constants = g.constants.values
    graph = ir.Graph([value], [y], g.nodes, initializers=constants, name="g")
    content = serialized(ir.Model(graph, opset_imports={"": OPSET}))
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    result = np.asarray(session.run(None, {"x": x.astype(np.float32)})[0])
    return result, {node.op_type for node in g.nodes}


@pytest.mark.parametrize("row", ROWS)
def test_digits_are_as_exact_as_floats(row: str) -> None:
    rng = np.random.default_rng(0)
    matrix = weights(rng)
    x = ROWS[row](rng).astype(np.float32)[np.newaxis]
    got, nodes = computed(CPU, x, matrix)
    assert ("MatMulInteger" in nodes) == (CPU.weights == "int8")
    exact = x.astype(np.float64) @ matrix.reals.T.astype(np.float64)
    np.testing.assert_allclose(got, exact, rtol=0, atol=2e-6 * np.abs(exact).max())


@pytest.mark.parametrize("rounding", Rounding)
@pytest.mark.parametrize("rows", [1, 3])
def test_products_of_codes_are_those_of_what_they_stand_for(rounding: Rounding, rows: int) -> None:
    rng = np.random.default_rng(1)
    matrix = weights(rng, 1640, 40)
    x = rng.normal(0, 2, (rows, 40)).astype(np.float32)
    x[0, :9] = np.arange(-4, 5)  # the largest is whole, so that some are halfway between codes
    by_codes, nodes = computed(CPU, x, matrix, rounding)
    assert "MatMulInteger" in nodes
    by_reals, nodes = computed(Target(), x, matrix, rounding)
    assert "MatMulInteger" not in nodes
    np.testing.assert_allclose(by_codes, by_reals, rtol=0, atol=1e-6 * np.abs(by_reals).max())
    exact = x.astype(np.float64) @ matrix.reals.T
    assert np.abs(by_codes - exact).max() > 1e-4 * np.abs(exact).max(), "nothing was rounded"


@pytest.mark.parametrize(
    ("target", "rows", "columns"),
    [(Target(), 1, COLUMNS), (CPU, 2, COLUMNS), (CPU, 1, 64), (Target("uint8", True), 1, COLUMNS)],
)
def test_floats_where_they_are_faster_or_digits_are_not_exact(
    target: Target, rows: int, columns: int
) -> None:
    matrix = weights(np.random.default_rng(2), columns=columns)
    assert not keeps_codes(Graph(target), matrix, None, single_row=rows == 1)
    _, nodes = computed(target, np.ones((rows, columns)), matrix)
    assert nodes == {"Gemm"}
