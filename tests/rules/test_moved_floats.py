"""Floats that are codes times a scale are moved as codes where a device rounds floats."""

from __future__ import annotations

import numpy as np
import pytest

from tests.npu_graphs import WHY, for_npu
from tests.one_op import Node, T, graph_model
from tests.oracle import litert
from tflite_ort import Interpreter
from tflite_ort.schema import (
    DequantizeOptions,
    GatherOptions,
    MirrorPadMode,
    MirrorPadOptions,
    Op,
    QuantizeOptions,
    ResizeNearestNeighborOptions,
    TensorType,
)

INT8, FLOAT32 = TensorType.INT8, TensorType.FLOAT32
SEED = 2


def moved(first: str = "x", scale: float = 0.3) -> bytes:
    """Codes x, or floats f, that are enlarged, padded and made codes."""
    tensors = {
        "x": T((1, 5, 4, 3), INT8, scale=0.3, zero_point=-7),
        "f": T((1, 5, 4, 3), FLOAT32),
        "sizes": T.constant(np.int32([10, 8])),
        "large": T((1, 10, 8, 3), FLOAT32),
        "pads": T.constant(np.int32([[0, 0], [2, 2], [1, 1], [0, 0]])),
        "padded": T((1, 14, 10, 3), FLOAT32),
        "y": T((1, 14, 10, 3), INT8, scale=scale, zero_point=-7),
    }
    nodes = [
        Node(Op.DEQUANTIZE, ["x"], ["f"], DequantizeOptions()),
        Node(Op.RESIZE_NEAREST_NEIGHBOR, ["f", "sizes"], ["large"], ResizeNearestNeighborOptions()),
        Node(Op.MIRROR_PAD, ["large", "pads"], ["padded"], MirrorPadOptions(MirrorPadMode.REFLECT)),
        Node(Op.QUANTIZE, ["padded"], ["y"], QuantizeOptions()),
    ]
    if first == "f":
        nodes, tensors = nodes[1:], {name: t for name, t in tensors.items() if name != "x"}
    return graph_model(tensors, nodes, ["y", "padded"])


@pytest.mark.parametrize("scale", [0.3, 0.17])
def test_codes_are_moved_as_they_are(monkeypatch: pytest.MonkeyPatch, scale: float) -> None:
    model = moved(scale=scale)
    print(f"seed {SEED}")
    codes = np.random.default_rng(SEED).integers(-128, 128, (1, 5, 4, 3)).astype(np.int8)
    wanted = litert(model, [codes])
    for_npu(monkeypatch)
    ours = Interpreter(model_content=model)
    ours.allocate_tensors()
    ours.set_tensor(ours.get_input_details()[0]["index"], codes)
    ours.invoke()
    assert {row.runs_on for row in ours.delegation()} == {"ort"}
    for detail, right in zip(ours.get_output_details(), wanted, strict=True):
        np.testing.assert_array_equal(ours.get_tensor(detail["index"]), right)


def test_floats_that_are_no_codes_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    for_npu(monkeypatch)
    ours = Interpreter(model_content=moved("f"))
    ours.allocate_tensors()
    rows = {row.operator: row for row in ours.delegation()}
    assert rows["QUANTIZE"].runs_on == "ort"
    for name in ("RESIZE_NEAREST_NEIGHBOR", "MIRROR_PAD"):
        assert (rows[name].runs_on, rows[name].reason) == ("numpy", WHY)


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
@pytest.mark.parametrize("places", [(4,), (2, 3)])
def test_what_is_picked_along_an_axis_between_others(
    monkeypatch: pytest.MonkeyPatch, axis: int, places: tuple[int, ...]
) -> None:
    """The axis goes first: NPUs pick wrong elements along one between others."""
    shape = (2, 4, 5, 3)
    print(f"seed {SEED}")
    rng = np.random.default_rng(SEED)
    chosen = rng.integers(0, shape[axis], places).astype(np.int32)
    codes = rng.integers(-128, 128, shape).astype(np.int8)
    result = np.take(codes, chosen, axis=axis)
    tensors = {
        "x": T(shape, INT8, scale=0.3, zero_point=-7),
        "places": T.constant(chosen),
        "y": T(result.shape, INT8, scale=0.3, zero_point=-7),
    }
    model = graph_model(
        tensors, [Node(Op.GATHER, ["x", "places"], ["y"], GatherOptions(axis))], ["y"]
    )
    for_npu(monkeypatch)
    ours = Interpreter(model_content=model)
    ours.allocate_tensors()
    ours.set_tensor(ours.get_input_details()[0]["index"], codes)
    ours.invoke()
    np.testing.assert_array_equal(ours.get_tensor(ours.get_output_details()[0]["index"]), result)
