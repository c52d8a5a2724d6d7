"""Codes that TFLite copies to a tensor of another scale, in files of floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from tests.lstm_models import Lstm
from tests.one_op import T, one_op_model
from tests.oracle import litert_interpreter
from tflite_ort import ExportError, export_onnx
from tflite_ort.schema import (
    DepthToSpaceOptions,
    GatherOptions,
    Op,
    Padding,
    Pool2DOptions,
    ResizeNearestNeighborOptions,
    SplitOptions,
    StridedSliceOptions,
    TensorType,
)

Array = npt.NDArray[Any]
INT8, SEED = TensorType.INT8, 14
GIVEN: dict[str, Any] = {"type": INT8, "scale": 0.05, "zero_point": -7}
SECOND: dict[str, Any] = {"type": INT8, "scale": 0.08, "zero_point": 5}
MADE: dict[str, Any] = {"type": INT8, "scale": 0.031, "zero_point": 20}
X, Y = T((1, 4, 6, 8), **GIVEN), T((1, 4, 6, 8), **SECOND)


def ints(*values: Any) -> T:
    return T.constant(np.array(values, np.int32))


POOL = Pool2DOptions(padding=Padding.VALID, filter_width=2, filter_height=2, stride_w=2, stride_h=2)
CASES: list[tuple[Op, list[T], tuple[int, ...], Any, int]] = [
    (Op.RESHAPE, [X, ints(24, 8)], (24, 8), None, 1),
    (Op.TRANSPOSE, [X, ints(0, 3, 1, 2)], (1, 8, 4, 6), None, 2),
    (Op.REVERSE_V2, [X, ints(2)], (1, 4, 6, 8), None, 2),
    (Op.SLICE, [X, ints(0, 1, 0, 2), ints(1, 2, 6, 3)], (1, 2, 6, 3), None, 2),
    (
        Op.STRIDED_SLICE,
        [X, ints(0, 0, 0, 0), ints(1, 4, 6, 8), ints(1, 2, 3, 1)],
        (1, 2, 2, 8),
        StridedSliceOptions(),
        2,
    ),
    (Op.PAD, [X, ints([0, 0], [1, 2], [0, 1], [0, 0])], (1, 7, 7, 8), None, 2),
    (Op.GATHER, [X, ints(0, 0)], (2, 4, 6, 8), GatherOptions(), 2),
    (Op.TILE, [X, ints(1, 2, 1, 1)], (1, 8, 6, 8), None, 1),
    (Op.DEPTH_TO_SPACE, [X], (1, 8, 12, 2), DepthToSpaceOptions(2), 1),
    (
        Op.RESIZE_NEAREST_NEIGHBOR,
        [X, ints(8, 12)],
        (1, 8, 12, 8),
        ResizeNearestNeighborOptions(),
        2,
    ),
    (Op.MAX_POOL_2D, [X], (1, 2, 3, 8), POOL, 2),
    (Op.MAXIMUM, [X, Y], (1, 4, 6, 8), None, 2),
    (Op.MINIMUM, [X, T.constant(np.int8([3, -9] * 4), **SECOND)], (1, 4, 6, 8), None, 2),
    (Op.SPLIT, [ints(3), X], (1, 4, 6, 4), SplitOptions(2), 2),
]


def difference(content: bytes, name: str) -> float:
    """How many codes of its output a file for `name` is off at most; the inputs are random."""
    model, rng = export_onnx(content, for_=name, stateful=False), np.random.default_rng(SEED)
    interpreter = litert_interpreter(content, "optimized")
    interpreter.allocate_tensors()
    feeds = {}
    for detail, value in zip(interpreter.get_input_details(), model.graph.input, strict=True):
        codes = rng.integers(-128, 128, detail["shape"]).astype(np.int8)
        interpreter.set_tensor(detail["index"], codes)
        scale, zero = detail["quantization"]
        feeds[value.name] = (codes.astype(np.float32) - zero) * np.float32(scale)
    interpreter.invoke()
    worst = 0.0
    got = onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)
    for made, detail in zip(got, interpreter.get_output_details(), strict=True):
        scale, zero = detail["quantization"]
        codes = made / np.float32(scale) + zero
        worst = max(worst, float(np.abs(codes - interpreter.get_tensor(detail["index"])).max()))
    return worst


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].name)
def test_operators_that_move_codes_do_not_look_at_scales(case: tuple[Any, ...]) -> None:
    op, inputs, shape, options, version = case
    outputs = [T(shape, **MADE)] * (2 if op is Op.SPLIT else 1)
    content = one_op_model(op, inputs, outputs, options, version)
    for name in ("tract", "coreml"):
        assert difference(content, name) < 0.01


def test_outputs_of_several_scales_are_a_typed_error() -> None:
    outputs = [T((1, 4, 6, 4), **each) for each in (MADE, SECOND)]
    content = one_op_model(Op.SPLIT, [ints(3), X], outputs, SplitOptions(2), 2)
    with pytest.raises(ExportError, match="several scales"):
        export_onnx(content, for_="tract")


def test_an_lstm_has_the_codes_of_its_hidden_state() -> None:
    """It reads them in the next step by the scale of its output state, and shows them by that of
    its output. Its bias has the scale of the products, whatever the file says."""
    state = T((2, 6), INT8, 0.009, 4, is_variable=True)
    model = Lstm(arithmetic="8x8_16", time=8).model({"output_state": state})
    assert difference(model, "tract") <= 1
    assert difference(model, "coreml") <= 1.5
