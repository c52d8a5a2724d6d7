"""Constants that broadcast over the last axes are repeated: the same numbers, in longer runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnxruntime
import pytest

from tests.one_op import Node, T, assert_close, graph_model, one_op_model, ours
from tests.optimised import optimised_graphs
from tests.oracle import litert
from tests.rules.builder import Builder
from tflite_ort import export_onnx
from tflite_ort.opmap.idioms import long_runs
from tflite_ort.schema import (
    AddOptions,
    DivOptions,
    FullyConnectedOptions,
    MaximumMinimumOptions,
    MulOptions,
    Op,
    SubOptions,
    TensorType,
)
from tflite_ort.schema.values.sizes import unknown_size

Shape = tuple[int, ...]
OPTIONS = {
    Op.ADD: AddOptions,
    Op.SUB: SubOptions,
    Op.MUL: MulOptions,
    Op.DIV: DivOptions,
    Op.MAXIMUM: MaximumMinimumOptions,
}
N = unknown_size()
ROWS: dict[str, tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]] = {
    "colours": ((1, 1, 1, 3), (1, 224, 224, 3), (1, 1, 224, 3)),
    "small image": ((1, 1, 1, 3), (1, 6, 7, 3), (1, 6, 7, 3)),
    "one number": ((1, 1, 1, 1), (1, 224, 224, 3), (1, 1, 1, 1)),
    "many channels": ((1, 1, 1, 96), (1, 8, 8, 96), (1, 1, 1, 96)),
    "columns": ((1, 1, 30, 1), (1, 20, 30, 2), (1, 20, 30, 2)),
    "rows of one number": ((1, 40, 1), (1, 40, 600), (1, 40, 1)),
    "same": ((4, 5), (4, 5), (4, 5)),
    "open batch": ((1, 1, 3), (N, 200, 3), (1, 200, 3)),
    "open rows": ((1, 1, 3), (1, N, 3), (1, 1, 3)),
    "too many": ((1, 2), (70_000, 2), (1, 2)),
    "other is smaller": ((5, 4, 3), (1, 1, 3), (5, 4, 3)),
}


@pytest.mark.parametrize("name", ROWS)
def test_to_which_shape(name: str) -> None:
    shape, other, longer = ROWS[name]
    assert long_runs.repeated_shape(shape, other) == longer


@pytest.mark.parametrize("type", [TensorType.FLOAT32, TensorType.INT8, TensorType.INT32])
@pytest.mark.parametrize("op", OPTIONS)
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("shape", [(3,), (30, 1), (1, 1, 3), (20, 1, 1), ()])
def test_same_numbers(
    monkeypatch: pytest.MonkeyPatch, op: Op, type: TensorType, first: bool, shape: Shape
) -> None:
    if type is TensorType.INT8 and op is Op.DIV:
        type = TensorType.UINT8
    code: dict[str, Any] = {}
    if type in (TensorType.INT8, TensorType.UINT8):
        code = {"scale": 0.1, "zero_point": 3}
    rng = np.random.default_rng(0)
    image, made = (T((2, 20, 30, 3), type, **code) for _ in range(2))
    numbers = T(shape, type, **code).random(rng, 1, 9)
    constant = T.constant(np.asarray(np.maximum(numbers, numbers.dtype.type(4))), type, **code)
    operands = [constant, image] if first else [image, constant]
    model = one_op_model(op, operands, [made], OPTIONS[op]())
    feeds = [np.asarray(np.maximum(image.random(rng), 5))]
    (repeated,), _ = ours(model, feeds)
    monkeypatch.setattr(long_runs, "repeated_shape", lambda shape, _: shape)
    np.testing.assert_array_equal(repeated, ours(model, feeds)[0][0])
    if op is not Op.DIV or not code:  # whose small quotients LiteRT shifts too far
        assert_close(repeated, litert(model, feeds)[0], 1, 1e-6, op.name)


@pytest.mark.parametrize("type", [TensorType.FLOAT32, TensorType.INT8, TensorType.INT32])
@pytest.mark.parametrize("op", [Op.GREATER, Op.LESS_EQUAL, Op.EQUAL, Op.NOT_EQUAL])
@pytest.mark.parametrize("shape", [(3,), (30, 1), (20, 1, 1), ()])
def test_comparisons(op: Op, type: TensorType, shape: Shape) -> None:
    code: dict[str, Any] = {"scale": 0.1, "zero_point": 3} if type is TensorType.INT8 else {}
    rng = np.random.default_rng(0)
    image, constant = T((2, 20, 30, 3), type, **code), T(shape, type, **code).random(rng, 1, 9)
    operands = [image, T.constant(constant, type, **code)]
    model = one_op_model(op, operands, [T(image.shape, TensorType.BOOL)])
    check_repeated(model, [image.random(rng, 1, 9)], repeated=len(shape) in (1, 2))


@pytest.mark.parametrize("type", [TensorType.FLOAT32, TensorType.INT8, TensorType.INT32])
@pytest.mark.parametrize("constant", [0, 1, 2])
@pytest.mark.parametrize("shape", [(3,), (30, 1), (20, 1, 1), ()])
def test_selection(type: TensorType, constant: int, shape: Shape) -> None:
    code: dict[str, Any] = {"scale": 0.1, "zero_point": 3} if type is TensorType.INT8 else {}
    rng = np.random.default_rng(0)
    values = T((2, 20, 30, 3), type, **code)
    operands = [T(values.shape, TensorType.BOOL), values, values]
    known = replace(operands[constant], shape=shape)
    operands[constant] = replace(known, data=np.asarray(known.random(rng)))
    feeds = [t.random(rng) for t in operands if t.data is None]
    check_repeated(
        one_op_model(Op.SELECT_V2, operands, [values]), feeds, repeated=len(shape) in (1, 2)
    )


@pytest.mark.parametrize("shape", [(3,), (1, 1, 3), (1,), ()])
@pytest.mark.parametrize("first", [False, True])
def test_rows_behind_a_function_of_a_layer(shape: Shape, first: bool) -> None:
    """A short row is repeated for all rows; a single number is not."""
    rng = np.random.default_rng(0)
    tensors = {
        **{name: T((2, 100, 3)) for name in ("x", "layer", "tanh", "y")},
        "weights": T.constant(rng.normal(size=(3, 3)).astype(np.float32)),
        "row": T.constant(rng.normal(size=shape).astype(np.float32)),
    }
    operands = ["row", "tanh"] if first else ["tanh", "row"]
    layer = FullyConnectedOptions(keep_num_dims=True)
    nodes = [
        Node(Op.FULLY_CONNECTED, ["x", "weights", None], ["layer"], layer),
        Node(Op.TANH, ["layer"], ["tanh"]),
        Node(Op.MUL, operands, ["y"], MulOptions()),
    ]
    model = graph_model(tensors, nodes, ["y"])
    (graph,) = optimised_graphs(model)
    sizes = [np.prod(each.dims) for each in graph.graph.initializer]
    assert (600 in sizes) == (shape[-1:] == (3,)), sizes
    feeds = [rng.normal(size=(2, 100, 3)).astype(np.float32)]
    assert_close(ours(model, feeds)[0][0], litert(model, feeds)[0], 1e-5, 1e-6, "MUL")


def check_repeated(model: bytes, feeds: list[Any], repeated: bool) -> None:
    """Whether ONNX Runtime has a repeated constant, and LiteRT's result."""
    (graph,) = optimised_graphs(model)
    sizes = [np.prod(each.dims) for each in graph.graph.initializer]
    assert (max(sizes, default=1) >= 600) == repeated, sizes
    np.testing.assert_array_equal(ours(model, feeds)[0][0], litert(model, feeds)[0])


@pytest.mark.parametrize("type", [TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8])
@pytest.mark.parametrize("op", [Op.ADD, Op.MUL, Op.MAXIMUM])
def test_exports_hold_the_constant_once(op: Op, type: TensorType) -> None:
    # With this scale no product of codes is next to a half, so that MUL is fused too.
    code: dict[str, Any] = {} if type is TensorType.FLOAT32 else {"scale": 0.0937, "zero_point": 3}
    rng = np.random.default_rng(0)
    image, colours = T((1, 40, 40, 3), type, **code), T((3,), type, **code).random(rng)
    model = one_op_model(op, [image, T.constant(colours, type, **code)], [image], OPTIONS[op]())
    exported = export_onnx(model)
    assert [node.op_type for node in exported.graph.node].count("Expand") == 1
    assert len(exported.SerializeToString()) < 1000
    session = onnxruntime.InferenceSession(exported.SerializeToString())
    feed = image.random(rng)
    (got,) = session.run(None, {session.get_inputs()[0].name: feed})
    assert_close(got, litert(model, [feed])[0], 1, 1e-6, op.name)


def layers(shape: Shape, *ops: Op) -> bytes:
    """A product of rows, an operator with a constant row for each of `ops`, another product."""
    rng, b = np.random.default_rng(2), Builder()
    name = b.input("x", *shape)
    for op in (Op.FULLY_CONNECTED, *ops, Op.FULLY_CONNECTED):
        if op is Op.FULLY_CONNECTED:
            weights = b.constant(rng.integers(-3, 4, (shape[-1], shape[-1])))
            options = FullyConnectedOptions(keep_num_dims=True)
            name = b.op(op, [name, weights], shape, options)
        elif op is Op.RELU:
            name = b.op(op, [name], shape)
        else:
            name = b.op(op, [name, b.constant(rng.integers(1, 9, shape[-1]))], shape)
    return graph_model(b.tensors, b.nodes, [name])


def test_a_number_beside_rows() -> None:
    """A number has no rows: neither it nor what it multiplies is repeated."""
    rng, b, shape = np.random.default_rng(2), Builder(), (1, 70, 16)
    weights = b.constant(rng.integers(-3, 4, (16, 16)))
    options = FullyConnectedOptions(keep_num_dims=True)
    name = b.op(Op.FULLY_CONNECTED, [b.input("x", *shape), weights], shape, options)
    name = b.op(Op.MUL, [b.constant(3), b.op(Op.RELU, [name], shape)], shape)
    model = graph_model(b.tensors, b.nodes, [name])
    x = rng.integers(-5, 5, shape).astype(np.float32)
    np.testing.assert_array_equal(ours(model, [x])[0][0], litert(model, [x])[0])


LAYERS = {
    "a product of rows": ((1, 70, 16), (Op.RELU, Op.MUL), 1),
    "a sum of rows": ((1, 70, 16), (Op.RELU, Op.ADD), 1),
    "both": ((2, 35, 16), (Op.RELU, Op.MUL, Op.ADD), 2),
    "fused with a layer": ((1, 70, 16), (Op.ADD,), 0),
    "as rows in the file": ((70, 16), (Op.RELU, Op.MUL), 1),
    "one row": ((1, 1, 16), (Op.RELU, Op.MUL), 1),
    "long rows": ((1, 70, 96), (Op.RELU, Op.MUL), 0),
    "many rows": ((1, 1100, 16), (Op.RELU, Op.MUL), 0),
}


@pytest.mark.parametrize("name", LAYERS)
def test_rows_of_layers(name: str) -> None:
    shape, ops, repeated = LAYERS[name]
    model, count = layers(shape, *ops), int(np.prod(shape))
    (graph,) = optimised_graphs(model)
    sizes = [int(np.prod(each.dims)) for each in graph.graph.initializer]
    assert sizes.count(count) == repeated, sizes
    x = np.random.default_rng(0).integers(-5, 5, shape).astype(np.float32)
    np.testing.assert_array_equal(ours(model, [x])[0][0], litert(model, [x])[0])
