"""Means of uneven pools and sums of codes, in the forms that PyTorch and OpenVINO compute."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest

from tests.one_op import T, one_op_model
from tests.test_presets import session
from tflite_ort import export_onnx
from tflite_ort.export.inferred import inferred
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.serialization import serialized
from tflite_ort.opmap.onnx_graph.writing.means import even_pools, sums_as_means
from tflite_ort.schema import Op, Padding, Pool2DOptions, ReducerOptions, TensorType

Array = npt.NDArray[Any]


def kinds(model: onnx.ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in model.graph.node)


def run(model: ir.Model, x: Array) -> Array:
    proto = onnx.load_model_from_string(serialized(model))
    (found,) = session(proto).run(None, {"x": x})
    return np.asarray(found)


def pool(pads: list[int], strides: list[int], shape: tuple[int, ...]) -> ir.Model:
    x, y = (
        ir.Value(name, dtype=ir.DataType.FLOAT, shape=s)
        for name, s in zip("xy", (shape, None), strict=True)
    )
    window = [3, 2, 4][: len(shape) - 2]
    attributes = {"kernel_shape": window, "pads": pads, "strides": strides}
    node = ir.Node("AveragePool", [x], [y], attributes=attributes, name="pool")
    return ir.Model(ir.Graph([x], [y], [node]), opset_imports={"": 17}, ir_version=8)


@pytest.mark.parametrize(
    ("pads", "strides", "shape"),
    [
        ([0, 0, 1, 1], [1, 1], (2, 3, 5, 7)),
        ([1, 0, 2, 1], [2, 3], (1, 2, 6, 9)),
        ([2, 1, 0, 0], [3, 1], (1, 1, 3, 2)),
        ([0, 1], [2], (1, 4, 9)),
        ([1, 0, 1, 1, 1, 2], [1, 2, 2], (1, 2, 4, 5, 6)),
    ],
)
def test_pools_with_uneven_pads_give_the_same_means(
    pads: list[int], strides: list[int], shape: tuple[int, ...]
) -> None:
    x = np.random.default_rng(0).normal(0, 3, shape).astype(np.float32)
    want = run(pool(pads, strides, shape), x)
    model = pool(pads, strides, shape)
    even_pools(model.graph, inferred(model))
    assert [node.op_type for node in model.graph.nodes] == ["Pad", "AveragePool", "Mul"]
    np.testing.assert_allclose(run(model, x), want, rtol=3e-7, atol=1e-6)


def test_even_pools_stay() -> None:
    model = pool([1, 1, 1, 1], [2, 2], (1, 2, 6, 6))
    even_pools(model.graph, inferred(model))
    assert [node.op_type for node in model.graph.nodes] == ["AveragePool"]


@pytest.mark.parametrize("name", ["torch", "coreml"])
def test_a_pool_for_pytorch_pads_both_ends_alike(name: str) -> None:
    options = Pool2DOptions(
        padding=Padding.SAME, stride_w=2, stride_h=2, filter_width=3, filter_height=3
    )
    content = one_op_model(Op.AVERAGE_POOL_2D, [T((1, 6, 6, 2))], [T((1, 3, 3, 2))], options)
    model = export_onnx(content, for_=name, check=True)
    (node,) = (node for node in model.graph.node if node.op_type == "AveragePool")
    assert "pads" not in {each.name for each in node.attribute}


CODES = {"type": TensorType.INT8, "scale": 0.05, "zero_point": -128}
SUMS = ReducerOptions(keep_dims=True)


def sum_of_codes(shape: tuple[int, ...], axes: list[int], **open_sizes: Any) -> bytes:
    made = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    given = [T(shape, **CODES, **open_sizes), T.constant(np.array(axes, np.int32))]
    y = T(made, TensorType.INT8, 2.0, -128)
    return one_op_model(Op.SUM, given, [y], SUMS, version=2)


@pytest.mark.parametrize("opset", [17, 19])
def test_sums_of_codes_for_openvino_are_means(opset: int) -> None:
    """OpenVINO 2026.4 sums up codes and takes the zero point off once: 36 codes were 3,808 off."""
    content = sum_of_codes((1, 6, 6, 5), [1, 2])
    made = kinds(export_onnx(content, for_="openvino", opset=opset, check=True))
    assert made["ReduceMean"] == 1
    assert not made["ReduceSum"]
    assert kinds(export_onnx(content, for_="mobile"))["ReduceSum"] == 1


@pytest.mark.parametrize("axes", [(1, 2), (-1,), ()])
@pytest.mark.parametrize("opset", [17, 19])
def test_sums_of_open_sizes_are_counted(axes: tuple[int, ...], opset: int) -> None:
    x = np.random.default_rng(1).normal(0, 3, (2, 4, 3)).astype(np.float32)
    ends = [
        ir.Value("x", dtype=ir.DataType.FLOAT, shape=("a", "b", "c")),
        ir.Value("y", dtype=ir.DataType.FLOAT),
    ]
    graph = ir.Graph([ends[0]], [ends[1]], [])
    scale = graph.add_initializer("scale", np.array(0.01, np.float32))
    zero = graph.add_initializer("zero", np.array(-3, np.int8))
    inner = [ir.Value(name) for name in ("codes", "reals")]
    given: list[ir.Value | None] = [inner[1]]
    given += [graph.add_initializer("axes", np.array(axes, np.int64))] if axes else []
    graph.nodes = [
        ir.Node("QuantizeLinear", [ends[0], scale, zero], [inner[0]], name="to"),
        ir.Node("DequantizeLinear", [inner[0], scale, zero], [inner[1]], name="from"),
        ir.Node("ReduceSum", given, [ends[1]], attributes={"keepdims": 1}, name="sum"),
    ]
    model = ir.Model(graph, opset_imports={"": opset}, ir_version=8)
    want = run(model, x)
    sums_as_means(graph, inferred(model), opset)
    assert "ReduceSum" not in {node.op_type for node in graph.nodes}
    np.testing.assert_allclose(run(model, x), want, rtol=1e-6, atol=1e-6)
