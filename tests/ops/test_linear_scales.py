"""Products with constants that have a scale for each channel, or for each block of a row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from tests.one_op import Node, T, assert_close, graph_model, one_op_model, ours
from tests.ops.operands import exported, optimized_nodes, with_blocks
from tests.ops.test_linear import product
from tests.oracle import litert
from tflite_ort import export_onnx
from tflite_ort.schema import (
    BatchMatMulOptions,
    BridgeError,
    FullyConnectedOptions,
    Op,
    TensorType,
)
from tflite_ort.schema.values.semantics import quantized_range

Shape = tuple[int, ...]


@pytest.mark.parametrize(
    ("x", "y"), [((5, 16), (16, 7)), ((1, 5, 16), (1, 16, 7)), ((3, 5, 16), (16, 7))]
)
@pytest.mark.parametrize("adjoint", ["", "y"], ids=["plain", "adjoint"])
def test_a_scale_for_each_column_is_one_integer_node(
    x: Shape, y: Shape, adjoint: str, tmp_path: Path
) -> None:
    case = product("int8", x, y, adjoint, constant=True)
    axis = len(y) - (2 if adjoint else 1)
    right = replace(case.inputs[1], scale=np.linspace(0.01, 0.02, 7).tolist(), axis=axis)
    columns = replace(case, inputs=[case.inputs[0], right])
    nodes = optimized_nodes(columns.model(), tmp_path / "o.onnx")
    assert nodes.count("QLinearMatMul") == 1 and "MatMul" not in nodes


@pytest.mark.parametrize("adjoint", [False, True], ids=["plain", "adjoint"])
@pytest.mark.parametrize("axis", [-2, -1], ids=["rows", "columns"])
@pytest.mark.parametrize("batch", [(), (1,), (2,), (1, 1)], ids=str)
@pytest.mark.parametrize("type", [TensorType.INT8, TensorType.INT16], ids=lambda type: type.name)
def test_batch_matmul_with_a_scale_for_each_channel(
    type: TensorType, batch: Shape, axis: int, adjoint: bool
) -> None:
    """The true product, on both paths; LiteRT takes the scales for 0."""
    rng = np.random.default_rng(axis % 3)
    axis += len(batch) + 2
    codes = rng.integers(-127, 128, (*batch, 4, 3) if adjoint else (*batch, 3, 4)).astype(np.int8)
    scales = rng.uniform(0.1, 0.5, codes.shape[axis]).astype(np.float32)
    wide = type is TensorType.INT16
    x = T((*batch, 2, 3), type, 0.01, 0 if wide else 3)
    y = T.constant(codes, scale=scales.tolist(), axis=axis)
    unit = 0.01 if wide else 0.5
    output = T((*batch, 2, 4), type, unit, 0 if wide else -2)
    options = BatchMatMulOptions(adj_y=adjoint)
    model = one_op_model(Op.BATCH_MATMUL, [x, y], [output], options, 3)
    feed = x.random(rng)
    shape = [1] * codes.ndim
    shape[axis] = -1
    real = codes * scales.astype(np.float64).reshape(shape)
    product = (
        0.01
        * (feed.astype(np.float64) - (0 if wide else 3))
        @ (real.swapaxes(-1, -2) if adjoint else real)
    )
    low, high = quantized_range(type)
    want = np.clip(np.rint(product / unit) + (0 if wide else -2), low, high).astype(feed.dtype)
    by_ort, runners = ours(model, [feed])
    assert runners == {"ort"}
    assert not np.array_equal(litert(model, [feed])[0], want)
    for got in (by_ort, ours(model, [feed], [])[0], exported(model, [feed])):
        assert_close(got[0], want, 1, 0, "per channel")


@pytest.mark.parametrize("adjoint", [False, True], ids=["plain", "adjoint"])
@pytest.mark.parametrize("channels", [False, True], ids=["one scale", "columns"])
@pytest.mark.parametrize("weights", ["uint8", "int8"])
def test_exported_activations_of_16_bits_are_not_rounded_to_8(
    weights: str, channels: bool, adjoint: bool
) -> None:
    """In a session without entries, where ONNX Runtime makes MatMulNBits of a DequantizeLinear."""
    rng, depth, units = np.random.default_rng(0), 64, 32
    codes = rng.integers(-127, 128, (units, depth) if adjoint else (depth, units)).astype(np.int8)
    scale = rng.uniform(0.01, 0.02, units).tolist() if channels else 0.01
    x = T((5, depth), TensorType.INT16, 0.001)
    y = T.constant(codes, scale=scale, axis=0 if adjoint else 1)
    output, options = T((5, units), TensorType.INT16, 0.0005), BatchMatMulOptions(adj_y=adjoint)
    model = one_op_model(Op.BATCH_MATMUL, [x, y], [output], options, 3)
    feed = x.random(rng)
    proto = export_onnx(model, weights=weights)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    (got,) = session.run(None, {"in0": feed})
    assert_close(got, ours(model, [feed])[0][0], 1, 0, "exported")


@pytest.mark.parametrize("adjoint", [False, True], ids=["plain", "adjoint"])
@pytest.mark.parametrize("axis", [-2, -1], ids=["rows", "columns"])
@pytest.mark.parametrize("batch", [(), (1,), (2,)], ids=str)
def test_hybrid_batch_matmul_with_a_scale_for_each_channel(
    batch: Shape, axis: int, adjoint: bool
) -> None:
    """Of columns as LiteRT does it. Scales along the sums LiteRT takes for those of the columns;
    here the product is the true one, too."""
    rng, depth, units = np.random.default_rng(0), 16, 7
    codes = rng.integers(-127, 128, (*batch, *((units, depth) if adjoint else (depth, units))))
    axis += codes.ndim
    scales = rng.uniform(0.01, 0.05, codes.shape[axis]).astype(np.float32)
    y = T.constant(codes.astype(np.int8), scale=scales.tolist(), axis=axis)
    tensors = [T((*batch, 5, depth)), y]
    options = BatchMatMulOptions(adj_y=adjoint)
    model = one_op_model(Op.BATCH_MATMUL, tensors, [T((*batch, 5, units))], options, 4)
    x = rng.standard_normal(tensors[0].shape).astype(np.float32)
    real = codes * np.expand_dims(scales, [i for i in range(codes.ndim) if i != axis])
    want = (x @ (real.swapaxes(-1, -2) if adjoint else real)).astype(np.float32)
    if axis == codes.ndim - (2 if adjoint else 1):
        assert_close(litert(model, [x])[0], want, 0, 2e-2, "LiteRT")
    for got in (ours(model, [x])[0], ours(model, [x], [])[0], exported(model, [x])):
        assert_close(got[0], want, 0, 2e-2, "a scale for each channel")
    for hybrid in ("dynamic", "xnnpack"):
        assert_close(exported(model, [x], hybrid=hybrid)[0], want, 0, 2e-2, hybrid)


@pytest.mark.parametrize("providers", [None, []])
def test_blocks_that_end_within_a_row_are_none(providers: list[str] | None) -> None:
    """Three blocks of 2 have all elements of 2 rows of 3; no row has a whole number of them."""
    tensors = {
        "x": T((1, 3)),
        "weights": T.constant(np.ones((2, 3), np.int8), TensorType.INT4),
        "scales": T.constant(np.ones(3, np.float16)),
        "y": T((1, 2)),
    }
    node = Node(Op.FULLY_CONNECTED, ["x", "weights", None], ["y"], FullyConnectedOptions(), 10)
    model = with_blocks(graph_model(tensors, [node], ["y"]), 1, 2, 2)
    with pytest.raises(BridgeError, match="no scale"):
        ours(model, [np.ones((1, 3), np.float32)], providers)


@pytest.mark.parametrize("type", [TensorType.FLOAT32, TensorType.INT8])
@pytest.mark.parametrize("units", [6, 4])
def test_scales_along_the_sums_are_refused(type: TensorType, units: int) -> None:
    quantized = type is TensorType.INT8
    scales = np.linspace(0.1, 0.2, 6).tolist()
    weights = T.constant(np.ones((units, 6), np.int8), scale=scales, axis=1)
    data, result = (T((2, n), type, 0.1 if quantized else None) for n in (6, units))
    options = FullyConnectedOptions()
    model = one_op_model(Op.FULLY_CONNECTED, [data, weights, None], [result], options, 5)
    if quantized:
        with pytest.raises(RuntimeError, match="quantized_dimension"):
            litert(model, [np.ones((2, 6), np.int8)])
    with pytest.raises(BridgeError, match="scales along axis 1"):
        ours(model, [np.ones((2, 6), data.random(np.random.default_rng(0)).dtype)])
