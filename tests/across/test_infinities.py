"""What becomes of infinities, of what overflows, and of what is no number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.one_op import Array, T, one_op_model, ours
from tests.ops.operands import exported
from tests.oracle import litert
from tflite_ort import schema
from tflite_ort.schema import Op, TensorType
from tflite_ort.schema.values.complex_pairs import paired

INT32 = TensorType.INT32
WIDE = np.array([np.inf, -np.inf, np.nan, 3e38, -3e38, 1, -0.0, 1e-45], np.float32)
ONES = np.ones(8, np.float32)
CELLS = T((1, 1, 1, 8, 1))
ONE_WEIGHT = T.constant(np.ones((1, 1, 1, 1, 1), np.float32))
VOLUME = schema.Conv3DOptions(
    stride_d=1,
    stride_h=1,
    stride_w=1,
    dilation_d_factor=1,
    dilation_h_factor=1,
    dilation_w_factor=1,
)
WINDOW = schema.Pool2DOptions(stride_w=1, stride_h=1, filter_width=1, filter_height=1)
SHAPE = T.constant(np.array([1, 1, 1, 8, 1], np.int32))
# LiteRT's CONV_3D makes the largest number of what is no number.
VOLUMES = [np.nan_to_num(WIDE, nan=2, posinf=np.inf, neginf=-np.inf).reshape(1, 1, 1, 8, 1)]
HELD = {
    "add_n": (one_op_model(Op.ADD_N, [T((8,))] * 3, [T((8,))]), [WIDE, WIDE, ONES]),
    "l2_pool_2d": (
        one_op_model(Op.L2_POOL_2D, [T((1, 1, 8, 1))], [T((1, 1, 8, 1))], WINDOW),
        [WIDE.reshape(1, 1, 8, 1)],
    ),
    "conv_3d": (one_op_model(Op.CONV_3D, [CELLS, ONE_WEIGHT], [CELLS], VOLUME), VOLUMES),
    "conv_3d_transpose": (
        one_op_model(Op.CONV_3D_TRANSPOSE, [SHAPE, ONE_WEIGHT, CELLS], [CELLS], VOLUME),
        VOLUMES,
    ),
}

# LiteRT multiplies volumes in threads of Eigen's that flush subnormal numbers to 0 on some
# processors and not on others: 1e-45 is then 0. Both are right, so numbers below the smallest
# normal one are the same.
_SUBNORMAL = float(np.finfo(np.float32).tiny)


def compare(model: bytes, feeds: Sequence[Array], rtol: float = 0) -> None:
    """ONNX Runtime, the kernel and an exported file, as LiteRT."""
    want = litert(model, feeds)[0]
    pairs = [paired(array) for array in feeds]
    results = ours(model, feeds)[0], ours(model, feeds, [])[0], exported(model, pairs)
    for got in results:
        np.testing.assert_allclose(got[0], want, rtol=rtol, atol=_SUBNORMAL)


@pytest.mark.parametrize("name", HELD)
def test_sums_stay_finite(name: str) -> None:
    """Of operators that LiteRT has no other kernels of than TFLite's own, which clamp.

    Sums of three and the roots of means are rounded after another order: by 1e-7 of a number.
    """
    compare(*HELD[name], rtol=1e-6)


@pytest.mark.parametrize("computed", [False, True], ids=["constant", "computed"])
def test_the_lowest_integer_over_minus_1(computed: bool) -> None:
    """DIV gives the highest one."""
    a = np.array([-(2**31), 5, -(2**31), 2**31 - 1], np.int32)
    b = np.array([-1, -1, 2, -1], np.int32)
    divisor = T(b.shape, INT32) if computed else T.constant(b)
    model = one_op_model(Op.DIV, [T(a.shape, INT32), divisor], [T(a.shape, INT32)])
    compare(model, [a, b] if computed else [a])


@pytest.mark.parametrize("type", [np.complex64, np.complex128], ids=lambda type: type.__name__)
def test_distances_of_infinite_parts(type: type) -> None:
    """COMPLEX_ABS: infinite, whatever the other part is."""
    parts = [np.nan, np.inf, -np.inf, 3e38, 0.0, 2.0]
    x = np.array([complex(a, b) for a in parts for b in parts], type)
    wide = type is np.complex128
    given = T(x.shape, TensorType.COMPLEX128 if wide else TensorType.COMPLEX64)
    made = T(x.shape, TensorType.FLOAT64 if wide else TensorType.FLOAT32)
    compare(one_op_model(Op.COMPLEX_ABS, [given], [made]), [x], rtol=1e-6)


@pytest.mark.parametrize("beta", [0.0, 3.0, 1e30, 3.4e38])
def test_a_softmax_with_a_large_beta(beta: float) -> None:
    """The largest value is taken off before beta multiplies, which could overflow, or round."""
    rows = [[1000.1, 1000.2, 999.9], [1e9, 2, 3], [np.nan, 1, 2], [np.inf, 1, 2], [-np.inf, 1, 1]]
    feed = np.array(rows, np.float32)
    model = one_op_model(Op.SOFTMAX, [T((5, 3))], [T((5, 3))], schema.SoftmaxOptions(beta))
    want = litert(model, [feed])[0]
    for got in (ours(model, [feed])[0], ours(model, [feed], [])[0], exported(model, [feed])):
        np.testing.assert_allclose(got[0], want, rtol=0, atol=1e-6)
