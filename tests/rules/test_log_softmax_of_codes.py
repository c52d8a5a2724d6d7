"""LOG_SOFTMAX of floats that are codes times a scale is one of 16-bit codes where a device rounds
floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.npu_graphs import WHY, for_npu
from tests.one_op import Node, T, graph_model
from tests.oracle import litert
from tflite_ort import Interpreter
from tflite_ort.schema import DequantizeOptions, Op, TensorType

SEED, ROWS = 8, 6
CODES = {
    TensorType.INT8: (np.int8, -7),
    TensorType.UINT8: (np.uint8, 255),
    TensorType.INT16: (np.int16, 0),
}


def logarithms(type: TensorType | None, count: int, scale: float) -> bytes:
    """Of codes x, or of floats f."""
    tensors = {"f": T((ROWS, count)), "y": T((ROWS, count))}
    nodes = [Node(Op.LOG_SOFTMAX, ["f"], ["y"])]
    if type is not None:
        tensors["x"] = T((ROWS, count), type, scale=scale, zero_point=CODES[type][1])
        nodes.insert(0, Node(Op.DEQUANTIZE, ["x"], ["f"], DequantizeOptions()))
    return graph_model(tensors, nodes, ["y"])


def opened(model: bytes) -> Interpreter:
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    return interpreter


@pytest.mark.parametrize("type", CODES, ids=lambda each: str(each.name))
@pytest.mark.parametrize(("count", "scale"), [(10, 0.17), (3, 0.004), (1, 0.5), (300, 1.5)])
def test_results_are_within_a_step(
    monkeypatch: pytest.MonkeyPatch, type: TensorType, count: int, scale: float
) -> None:
    dtype, _ = CODES[type]
    scale = scale / 256 if type is TensorType.INT16 else scale
    model, ends = logarithms(type, count, scale), np.iinfo(dtype)
    print(f"seed {SEED}")
    rng = np.random.default_rng(SEED)
    codes: Any = rng.integers(ends.min, ends.max + 1, (ROWS, count)).astype(dtype)
    codes[0], codes[0, 0], codes[1] = ends.min, ends.max, ends.max
    (wanted,) = litert(model, [codes])
    for_npu(monkeypatch)
    ours = opened(model)
    ours.set_tensor(ours.get_input_details()[0]["index"], codes)
    ours.invoke()
    assert {row.runs_on for row in ours.delegation()} == {"ort"}
    got = ours.get_tensor(ours.get_output_details()[0]["index"])
    step = ((int(ends.max) - int(ends.min)) * scale + np.log(count)) / 65535
    np.testing.assert_allclose(got, wanted, rtol=2e-6, atol=0.51 * step)


def test_floats_that_are_no_codes_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    for_npu(monkeypatch)
    (row,) = opened(logarithms(None, 10, 1.0)).delegation()
    assert (row.runs_on, row.reason) == ("numpy", WHY)
