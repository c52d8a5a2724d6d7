"""Windows over images of an open size in exports, by windows and strides of all proportions."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest

from tests.one_op import T, one_op_model
from tests.oracle import litert
from tflite_ort import ExportError, export_onnx
from tflite_ort.schema import Conv2DOptions, Op, Pool2DOptions

OPEN: dict[str, Any] = {"in0": (1, "h", "w", 2)}
POOLS = (Op.MAX_POOL_2D, Op.AVERAGE_POOL_2D)


def windows(op: Op, size: int, kernel: int, stride: int) -> bytes:
    """`op` with SAME padding over an image of `size` x `size`."""
    image, result = T((1, size, size, 2)), T((1, -(-size // stride), -(-size // stride), 2))
    strides = {"stride_w": stride, "stride_h": stride}
    if op in POOLS:
        options = Pool2DOptions(filter_width=kernel, filter_height=kernel, **strides)
        return one_op_model(op, [image], [result], options)
    weights = np.random.default_rng(0).normal(size=(2, kernel, kernel, 2)).astype(np.float32)
    bias = T.constant(np.zeros(2, np.float32))
    operands = [image, T.constant(weights), bias]
    return one_op_model(op, operands, [result], Conv2DOptions(**strides))


@pytest.mark.parametrize("op", (*POOLS, Op.CONV_2D), ids=lambda op: op.name)
@pytest.mark.parametrize(("kernel", "stride"), [(1, 2), (1, 5), (2, 2), (3, 2), (3, 3)])
def test_any_size_is_right(op: Op, kernel: int, stride: int) -> None:
    content = export_onnx(windows(op, 6, kernel, stride), input_shapes=OPEN).SerializeToString()
    session = onnxruntime.InferenceSession(content)
    for size in range(2, 12):
        image = np.random.default_rng(size).normal(size=(1, size, size, 2)).astype(np.float32)
        (wanted,) = litert(windows(op, size, kernel, stride), [image])
        (got,) = session.run(None, {"in0": image})
        assert np.allclose(got, wanted, atol=1e-5), size


@pytest.mark.parametrize("op", (*POOLS, Op.CONV_2D), ids=lambda op: op.name)
def test_a_stride_beyond_several_cells_is_refused(op: Op) -> None:
    """ONNX Runtime's MaxPool fails over some sizes, and its Conv begins a cell too late."""
    with pytest.raises(ExportError, match="a stride longer than its windows, over an unknown size"):
        export_onnx(windows(op, 6, 2, 5), input_shapes=OPEN)
