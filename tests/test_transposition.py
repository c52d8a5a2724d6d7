"""Large transposed matrices in C order, byte for byte as numpy makes them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tflite_ort.opmap.graph.quantized_nodes import dequantized
from tflite_ort.opmap.onnx_graph.constants import in_order
from tflite_ort.schema import Quantization


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.float32, np.float64, np.bool_])
@pytest.mark.parametrize("shape", [(1024, 2048), (1000, 1111), (1111, 1000), (65, 65536)])
def test_a_transposed_matrix_is_put_in_order(shape: tuple[int, int], dtype: Any) -> None:
    draw = np.random.default_rng(3)
    matrix: npt.NDArray[Any] = draw.integers(-99, 99, shape).astype(dtype)
    for source in (matrix, matrix.T, matrix[::2].T, np.flip(matrix).T, matrix.reshape(-1)):
        result = in_order(source)
        assert result.flags.c_contiguous
        assert result.dtype == source.dtype
        assert np.array_equal(result, source)


def test_large_weights_are_put_in_order_soon() -> None:
    """Sooner than by numpy, in the best of three turns: it takes 8 ns for a byte."""
    matrix = np.ones((8192, 8192), np.int8)

    def seconds(call: Callable[[Any], object]) -> float:
        started = time.process_time()
        call(matrix.T)
        return time.process_time() - started

    turns = [(seconds(in_order), seconds(np.ascontiguousarray)) for _ in range(3)]
    ours, numpys = map(min, zip(*turns, strict=True))
    assert ours < numpys / 1.5, turns


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
@pytest.mark.parametrize("zeros", [[0], [3], [0, 0, 0], [1, -128, 127], [1 << 30, 0, 5]])
def test_real_weights_are_the_same_without_wide_integers(dtype: Any, zeros: list[int]) -> None:
    info = np.iinfo(dtype)
    codes = np.linspace(info.min, info.max, 3 * 256).astype(dtype).reshape(3, 256)
    scales = np.geomspace(1e-3, 0.7, len(zeros)).astype(np.float32)
    got = dequantized(codes, Quantization(scales, np.array(zeros, np.int64), 0))
    along = (-1, 1) if len(zeros) > 1 else (1, 1)
    wide = codes.astype(np.int64) - np.reshape(zeros, along)
    assert np.array_equal(got, wide.astype(np.float32) * scales.reshape(along))
    assert got.dtype == np.float32
