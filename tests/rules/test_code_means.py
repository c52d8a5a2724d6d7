"""Sums and means of 8-bit codes: LiteRT's by nodes of floats, and the same ones by one node."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from tests.one_op import Node, T, graph_model, ours
from tests.ops.operands import exported
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tflite_ort import export_onnx
from tflite_ort.opmap.rules.rule import without
from tflite_ort.schema import Op, Padding, Pool2DOptions, ReducerOptions, TensorType

POOL = "QLinearGlobalAveragePool"
Codes = npt.NDArray[np.integer[Any]]


def every_sum(cells: int, type: TensorType) -> Codes:
    """Rows of `cells` codes, which have all sums."""
    totals = np.arange(255 * cells + 1)
    lower, more = np.divmod(totals, cells)
    rows = lower[:, None] + (np.arange(cells) < more[:, None])
    return (rows - 128).astype(np.int8) if type is TensorType.INT8 else rows.astype(np.uint8)


def model_of(
    op: Op,
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    scales: tuple[float, float],
    zeros: tuple[int, int] = (3, -7),
    type: TensorType = TensorType.INT8,
) -> bytes:
    result = np.empty(shape, bool).any(axis=axes).shape
    tensors = {
        "x": T(shape, type, scale=scales[0], zero_point=zeros[0]),
        "axes": T.constant(np.int32(axes)),
        "y": T(result, type, scale=scales[1], zero_point=zeros[1]),
    }
    return graph_model(tensors, [Node(op, ["x", "axes"], ["y"], ReducerOptions())], ["y"])


@pytest.mark.parametrize("cells", [2, 7, 9, 64, 128])
@pytest.mark.parametrize("ratio", [1.0, 0.5, 2.0, 16.34876, 0.0777])
@pytest.mark.parametrize(
    ("type", "zeros"),
    [
        (TensorType.INT8, (3, 3)),
        (TensorType.INT8, (-128, -128)),
        (TensorType.INT8, (-128, 5)),
        (TensorType.UINT8, (130, 4)),
        (TensorType.UINT8, (255, 255)),
    ],
)
def test_every_sum_has_the_same_code(
    cells: int,
    ratio: float,
    type: TensorType,
    zeros: tuple[int, int],
) -> None:
    rows = every_sum(cells, type)
    for op, scale in ((Op.MEAN, 0.1), (Op.SUM, 0.1 * cells)):
        model = model_of(op, rows.shape, (1,), (0.1, scale / ratio), zeros, type)
        by_node, _ = ours(model, [rows])
        with without("means of codes"):
            by_floats, _ = ours(model, [rows])
        np.testing.assert_array_equal(by_floats[0], litert(model, [rows])[0])
        assert np.count_nonzero(by_node[0] != by_floats[0]) <= len(rows) / 2**14


SHAPES = {
    "rows": ((4, 6, 32), (2,), POOL),
    "rows of a batch of one": ((1, 6, 32), (0, 2), POOL),
    "all": ((4, 6, 5), (0, 1, 2), POOL),
    "planes": ((2, 12, 5, 3), (2, 3), POOL),
    "columns": ((4, 6, 32), (1,), "ReduceSum"),
    "rows and more": ((4, 6, 32), (0, 2), "ReduceSum"),
    "one": ((4, 6, 1), (2,), "ReduceSum"),
    "many": ((4, 2000), (1,), POOL),
    "too many": ((2, 65_794), (1,), "ReduceMean"),
}


@pytest.mark.parametrize("name", SHAPES)
def test_which_means_are_one_node(name: str) -> None:
    shape, axes, node = SHAPES[name]
    model = model_of(Op.MEAN, shape, axes, (0.1, 0.0316789))
    assert optimised_nodes(model)[node] == 1
    codes = np.random.default_rng(1).integers(-128, 127, shape, np.int8, endpoint=True)
    np.testing.assert_array_equal(ours(model, [codes])[0][0], litert(model, [codes])[0])


@pytest.mark.parametrize("ratio", [2.0**-30, 2.0**9, 2.0**15, 2.0**25])
@pytest.mark.parametrize(
    ("op", "shape", "axes"),
    [
        (Op.MEAN, (4, 8), (1,)),
        (Op.SUM, (4, 8), (1,)),
        (Op.MEAN, (1, 8, 8, 1), (1, 2)),
        (Op.MEAN, (2, 8, 8, 3), (1, 2)),
    ],
)
def test_ratios_that_the_node_does_not_take(
    op: Op, shape: tuple[int, ...], axes: tuple[int, ...], ratio: float
) -> None:
    """In front there is a pooling of images, whose result is channels-first."""
    code: dict[str, Any] = {"type": TensorType.INT8, "scale": ratio, "zero_point": -128}
    result = np.empty(shape, bool).any(axis=axes).shape
    tensors = {
        "x": T(shape, **code),
        "same": T(shape, **code),
        "axes": T.constant(np.int32(axes)),
        "y": T(result, TensorType.INT8, scale=1.0, zero_point=3),
    }
    pool = Pool2DOptions(Padding.SAME, 1, 1, 1, 1)
    before = Node(Op.MAX_POOL_2D, ["x"], ["same"], pool)
    if len(shape) != 4:
        before = Node(Op.RELU, ["x"], ["same"])
    reduce = Node(op, ["same", "axes"], ["y"], ReducerOptions())
    model = graph_model(tensors, [before, reduce], ["y"])
    codes = np.random.default_rng(1).integers(-128, 127, shape, np.int8, endpoint=True)
    expected = litert(model, [codes])[0]
    np.testing.assert_array_equal(ours(model, [codes])[0][0], expected)
    np.testing.assert_array_equal(exported(model, [codes])[0], expected)


def test_means_of_an_open_batch_are_one_node() -> None:
    code: dict[str, Any] = {"type": TensorType.INT8, "zero_point": -128}
    tensors = {
        "x": T((1, 5, 7, 16), **code, scale=0.1),
        "same": T((1, 5, 7, 16), **code, scale=0.1),
        "axes": T.constant(np.int32([1, 2])),
        "y": T((1, 16), **code, scale=0.0316789),
    }
    pool = Pool2DOptions(Padding.SAME, 1, 1, 1, 1)
    nodes = [
        Node(Op.MAX_POOL_2D, ["x"], ["same"], pool),
        Node(Op.MEAN, ["same", "axes"], ["y"], ReducerOptions()),
    ]
    model = graph_model(tensors, nodes, ["y"])
    file = export_onnx(model, for_="onnxruntime", input_shapes={"x": ("n", 5, 7, 16)})
    assert "GlobalAveragePool" in {node.op_type for node in file.graph.node}
    codes = np.random.default_rng(2).integers(-128, 127, (3, 5, 7, 16), np.int8, endpoint=True)
    (got,) = onnxruntime.InferenceSession(file.SerializeToString()).run(None, {"x": codes})
    want = [litert(model, [each[np.newaxis]])[0] for each in codes]
    np.testing.assert_array_equal(got, np.concatenate(want))
