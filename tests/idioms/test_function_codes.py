"""Functions of 8-bit codes in LiteRT's fixed point, by floats: every code is LiteRT's."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import onnx
import pytest

from tests.one_op import Array, T, one_op_model, ours
from tests.ops.operands import exported
from tests.oracle import litert
from tflite_ort.export.exporting import export_onnx
from tflite_ort.schema import Op, TensorType

INT8 = TensorType.INT8
CODES = np.arange(-128, 128, dtype=np.int8)
SQUARE = CODES.reshape(16, 16)  # rows are looked up


def check(model: bytes, feeds: Iterable[Array], node: str) -> None:
    """The results of the interpreter and of an exact export are LiteRT's, with such a node."""
    feeds = list(feeds)
    want = litert(model, feeds, "reference")[0]
    np.testing.assert_array_equal(ours(model, feeds)[0][0], want)
    np.testing.assert_array_equal(exported(model, feeds, exact=True)[0], want)
    graph: onnx.GraphProto = export_onnx(model, exact=True).graph
    assert node in {each.op_type for each in graph.node}


def one_operand(op: Op, source: tuple[float, int], target: tuple[float, int]) -> bytes:
    tensors = [T((16, 16), INT8, scale=scale, zero_point=zero) for scale, zero in (source, target)]
    return one_op_model(op, tensors[:1], tensors[1:], None)


@pytest.mark.parametrize(
    ("source", "target", "node"),
    [
        ((0.079, 20), (0.0742, -128), "HardSwish"),
        ((0.0471, -24), (0.0288, -126), "HardSigmoid"),  # LiteRT's codes are not the nearest
        ((0.0161, 17), (0.0151, -66), "HardSigmoid"),
        ((0.0212, -58), (0.0205, -92), "Gather"),  # no multiples of x and its square give them
    ],
    ids=str,
)
def test_hard_swish(source: tuple[float, int], target: tuple[float, int], node: str) -> None:
    check(one_operand(Op.HARD_SWISH, source, target), [SQUARE], node)


def test_hard_swish_of_scales_that_litert_refuses() -> None:
    model = one_operand(Op.HARD_SWISH, (1.0, 0), (1 / 256, -128))
    with pytest.raises(RuntimeError):
        litert(model, [SQUARE])
    x = SQUARE.astype(np.int64)
    want = np.clip(np.rint(256 * x * np.clip(x + 3, 0, 6) / 6), 0, 255) - 128
    np.testing.assert_array_equal(exported(model, [SQUARE], exact=True)[0], want)


@pytest.mark.parametrize(
    ("source", "target"),
    [((0.037, -128), (0.00925, -128)), ((0.02, -128), (0.05, 127)), ((0.25, -128), (0.0625, 0))],
    ids=str,
)
def test_rsqrt(source: tuple[float, int], target: tuple[float, int]) -> None:
    check(one_operand(Op.RSQRT, source, target), [SQUARE], "Sqrt")


@pytest.mark.parametrize(
    ("scales", "zeros", "node"),
    [
        ((0.037, 3.379601001739502, 5.710851669311523), (37, -128, -128), "DequantizeLinear"),
        ((0.1, 0.1, 0.02), (3, 3, 100), "DequantizeLinear"),
        ((1.3137, 4.8253, 132.607), (5, -7, -128), "Cast"),  # float32 rounds a square otherwise
        ((0.025, 0.0694, 0.376), (122, 99, -3), "Cast"),  # and here an operand
    ],
    ids=str,
)
def test_squared_difference(scales: tuple[float, ...], zeros: tuple[int, ...], node: str) -> None:
    """Every pair of codes."""
    first, second, made = (
        T(shape, INT8, scale=scale, zero_point=zero)
        for shape, scale, zero in zip(((256, 1), (256,), (256, 256)), scales, zeros, strict=True)
    )
    model = one_op_model(Op.SQUARED_DIFFERENCE, [first, second], [made], None)
    check(model, [CODES[:, np.newaxis], CODES], node)
