"""What is exported can be loaded, or is refused: no file that ONNX Runtime refuses is written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from tests.one_op import Node, T, graph_model, one_op_model, ours
from tests.ops.operands import exported
from tests.oracle import litert
from tests.samples import SAMPLES, sample, types
from tests.subgraph_models import Sub, invoked, model_of
from tflite_ort import (
    AllocationError,
    BridgeError,
    BuiltinOpResolver,
    ExportError,
    Interpreter,
    Registration,
    export_onnx,
    schema,
)
from tflite_ort.opmap import Graph
from tflite_ort.schema import Op, OperatorView, TensorType
from tflite_ort.schema.arithmetic.fixed_point import quantize_multiplier
from tflite_ort.schema.values.semantics import quantized_range

FLOAT32, INT8, INT16, INT32 = (
    TensorType.FLOAT32,
    TensorType.INT8,
    TensorType.INT16,
    TensorType.INT32,
)
FULLY_CONNECTED = schema.FullyConnectedOptions(asymmetric_quantize_inputs=True)
CODES = {INT8: (0.1, 3), TensorType.UINT8: (0.1, 131), INT16: (0.1, 0)}


def without_scales(model: bytes) -> Iterator[tuple[str, bytes]]:
    """`model` with the scale of one tensor left out, for each that has one."""
    whole = schema.read_model(model)
    (graph,) = whole.subgraphs
    for index, tensor in enumerate(graph.tensors):
        if tensor.quantization is not None:
            tensors = list(graph.tensors)
            tensors[index] = replace(tensor, quantization=None)
            changed = replace(graph, tensors=tuple(tensors))
            yield tensor.name, schema.write_model(replace(whole, subgraphs=(changed,)))


@pytest.mark.parametrize("op", SAMPLES, ids=lambda op: op.name)
def test_codes_beside_plain_integers(op: Op) -> None:
    """Of each operator of 8-bit codes with one tensor that has no scale: refused for a reason, or
    as the kernel has it."""
    if INT8 not in types(op):
        return
    model, feeds = sample(op, INT8)
    for name, changed in without_scales(model):
        try:
            got = exported(changed, feeds)
        except (AllocationError, ExportError, schema.ModelError) as error:
            assert "no valid graph" not in str(error), f"without the scale of {name}: {error}"
            continue
        try:
            want, _ = ours(changed, feeds, [])
        except BridgeError:
            continue  # the kernel takes less
        for one, other in zip(got, want, strict=True):
            np.testing.assert_allclose(one, other, atol=1, err_msg=f"without {name}")


@pytest.mark.parametrize("type", CODES, ids=lambda type: type.name)
@pytest.mark.parametrize("op", [Op.MAXIMUM, Op.MINIMUM], ids=lambda op: op.name)
@pytest.mark.parametrize("plain", ["in0", "in1", "out0"])
def test_larger_codes(op: Op, type: TensorType, plain: str) -> None:
    """As LiteRT, which compares codes whatever their scales."""
    given = T((4,), type, *CODES[type])
    model = one_op_model(op, [given, given], [given])
    model = dict(without_scales(model))[plain]
    rng = np.random.default_rng(0)
    feeds = [given.random(rng), given.random(rng)]
    want = litert(model, feeds)
    for got in (ours(model, feeds)[0], ours(model, feeds, [])[0], exported(model, feeds)):
        np.testing.assert_array_equal(got[0], want[0])


@pytest.mark.parametrize("op", [Op.AVERAGE_POOL_2D, Op.MAX_POOL_2D], ids=lambda op: op.name)
@pytest.mark.parametrize("scale", [None, 0.2], ids=["none", "other"])
def test_pools_of_two_scales(op: Op, scale: float | None) -> None:
    """The codes are pooled, whatever the scales."""
    options = schema.Pool2DOptions(stride_w=1, stride_h=1, filter_width=2, filter_height=2)
    given, made = T((1, 5, 5, 3), INT8, 0.1, 3), T((1, 5, 5, 3), INT8, scale, 5)
    model = one_op_model(op, [given], [made], options, 2)
    feeds = [given.random(np.random.default_rng(0))]
    want = litert(model, feeds, "reference")
    for got in (ours(model, feeds)[0], ours(model, feeds, [])[0], exported(model, feeds)):
        np.testing.assert_array_equal(got[0], want[0])


BIASED: dict[str, tuple[Op, list[T], T, Any]] = {
    "convolution": (
        Op.CONV_2D,
        [T((1, 4, 4, 2)), T.constant(np.ones((3, 2, 2, 2), np.float32))],
        T((1, 4, 4, 3)),
        schema.Conv2DOptions(stride_h=1, stride_w=1),
    ),
    "fully_connected": (
        Op.FULLY_CONNECTED,
        [T((1, 4)), T.constant(np.ones((3, 4), np.float32))],
        T((1, 3)),
        schema.FullyConnectedOptions(),
    ),
}


@pytest.mark.parametrize("type", [np.int8, np.int32, np.int64], ids=lambda type: type.__name__)
@pytest.mark.parametrize("layer", BIASED)
def test_biases_of_another_type(layer: str, type: Any) -> None:
    """Refused, as LiteRT does."""
    op, inputs, output, options = BIASED[layer]
    bias = T.constant(np.array([1, 2, 3], type), scale=0.5)
    model = one_op_model(op, [*inputs, bias], [output], options)
    feeds = [np.ones(inputs[0].shape, np.float32)]
    with pytest.raises(RuntimeError):
        litert(model, feeds)
    for refusing in (lambda: ours(model, feeds), lambda: ours(model, feeds, [])):
        with pytest.raises(AllocationError, match="a bias of"):
            refusing()
    with pytest.raises(schema.ModelError, match="a bias of"):
        export_onnx(model)


def test_without_nodes(tmp_path: Path) -> None:
    """Inputs and constants that are outputs are exported; what has no output has no graph."""
    x, c = T((2,)), T.constant(np.array([3, 4], np.float32))
    feeds = [np.array([1, 2], np.float32)]
    for outputs in (["x"], ["c"], ["x", "c"], ["x", "x"]):
        model = graph_model({"x": x, "c": c}, [], outputs)
        for got, want in zip(exported(model, feeds), litert(model, feeds), strict=True):
            np.testing.assert_array_equal(got, want)
    path = tmp_path / "none.onnx"
    for nodes in ([], [Node(Op.ABS, ["x"], ["y"])]):
        with pytest.raises(ExportError, match="no output"):
            export_onnx(graph_model({"x": x, "y": x}, nodes, []), path)
    assert not path.exists()


def ill_typed(op: OperatorView[Any], g: Graph) -> None:
    """A translator that is wrong: no integers are added to floats."""
    g.write(op.output, g.op("Add", g.read(op.inputs[0]), g.constant(1, np.int64)))


def test_what_cannot_be_loaded_is_not_written(tmp_path: Path) -> None:
    """The reason is ONNX Runtime's; nothing is written."""
    resolver = BuiltinOpResolver()
    resolver.add_builtin(Op.ABS, Registration(ill_typed, None), 1, 5)
    path = tmp_path / "wrong.onnx"
    model = one_op_model(Op.ABS, [T((2,))], [T((2,))])
    with pytest.raises(ExportError, match=r"no valid graph.*bound to different types"):
        export_onnx(model, path, resolver=resolver)
    assert not path.exists()


def test_weights_stay_after_the_check(tmp_path: Path) -> None:
    """Large ones are handed to the session, and written all the same."""
    weights = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    inputs = [T((1, 64)), T.constant(weights)]
    options = schema.FullyConnectedOptions()
    path = tmp_path / "large.onnx"
    export_onnx(one_op_model(Op.FULLY_CONNECTED, inputs, [T((1, 64))], options), path)
    held = [onnx.numpy_helper.to_array(each) for each in onnx.load(path).graph.initializer]
    assert any(np.array_equal(each, weights) for each in held)


@pytest.mark.parametrize("zero_point", [0, 5, -100])
@pytest.mark.parametrize("scales", [(0.001, 0.01), (0.3, 0.1), (1e-6, 0.1), (2e-5, 1e-3)], ids=str)
@pytest.mark.parametrize("type", [INT8, INT16], ids=lambda type: type.name)
def test_quantize_from_32_bits(
    type: TensorType, scales: tuple[float, float], zero_point: int
) -> None:
    """Exactly as LiteRT, which wraps where the zero point is taken off. Where it shifts a number
    out of 32 bits, which C++ leaves undefined, the outermost code."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.integers(-(2**b), 2**b, 99) for b in (8, 14, 20, 31)]).astype(np.int32)
    x = np.append(x, np.array([-(2**31), 2**31 - 1, 0], np.int32))
    given = T(x.shape, INT32, scales[0], zero_point)
    made = T(x.shape, type, scales[1], 3 if type is INT8 else 0)
    model = one_op_model(Op.QUANTIZE, [given], [made], None, 3)
    want = litert(model, [x])[0]
    with np.errstate(over="ignore"):
        moved = x - np.int32(zero_point)
    _, shift = quantize_multiplier(np.float32(scales[0]) / np.float32(scales[1]))
    shifted = moved * 2.0 ** max(int(shift), 0)
    out = (shifted < -(2.0**31)) | (shifted >= 2.0**31)
    low, high = quantized_range(type)
    want = np.where(out, np.where(moved < 0, low, high), want)
    by_ort, runners = ours(model, [x])
    assert runners == {"ort"}
    for got in (by_ort, ours(model, [x], [])[0], exported(model, [x])):
        np.testing.assert_array_equal(got[0], want)


@pytest.mark.parametrize("opset", [17, 21, 24])
@pytest.mark.parametrize("type", [TensorType.INT4, TensorType.INT2], ids=lambda type: type.name)
def test_narrow_codes_that_are_moved_as_floats(type: TensorType, opset: int) -> None:
    """ONNX Runtime moves a DequantizeLinear behind a Transpose, and refuses its own nodes."""
    tensors = {"x": T((2, 3, 4), type, 0.1), "real": T((2, 3, 4)), "y": T((4, 2, 3))}
    tensors["order"] = T.constant(np.int32([2, 0, 1]))
    nodes = [
        Node(Op.DEQUANTIZE, ["x"], ["real"], None, 6),
        Node(Op.TRANSPOSE, ["real", "order"], ["y"]),
    ]
    proto = export_onnx(graph_model(tensors, nodes, ["y"]), opset=opset)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    codes = np.arange(24, dtype=np.int8).reshape(2, 3, 4) % 4 - 2
    (got,) = session.run(None, {"x": codes})
    want = codes.transpose(2, 0, 1) * np.float32(0.1)
    np.testing.assert_array_equal(got, want.astype(np.float32))


@pytest.mark.parametrize("units", [4, 16, 64])
def test_packed_weights_of_a_branch(units: int) -> None:
    """ONNX Runtime looks for the weights of a MatMulNBits among those of the branch."""
    rng = np.random.default_rng(0)
    shape = (1, units)

    def branch(activation: Op) -> Sub:
        codes = rng.integers(-7, 8, (units, units)).astype(np.int8)
        weights = T.constant(codes, TensorType.INT4, scale=0.05)
        tensors = {"x": T(shape), "w": weights, "made": T(shape), "y": T(shape)}
        nodes = [
            Node(Op.FULLY_CONNECTED, ["x", "w", None], ["made"], FULLY_CONNECTED, 14),
            Node(activation, ["made"], ["y"]),
        ]
        return Sub(tensors, nodes, ["x"], ["y"])

    tensors = {"c": T((), TensorType.BOOL), "x": T(shape), "y": T(shape)}
    node = Node(Op.IF, ["c", "x"], ["y"], schema.IfOptions(1, 2))
    main = Sub(tensors, [node], ["c", "x"], ["y"])
    model = model_of(main, branch(Op.RELU), branch(Op.TANH))
    x = rng.normal(size=shape).astype(np.float32)
    interpreter = Interpreter(model_content=model, hybrid="float")
    interpreter.allocate_tensors()
    session = onnxruntime.InferenceSession(export_onnx(model).SerializeToString())
    for flag in (np.bool_(True), np.bool_(False)):
        (want,) = invoked(interpreter, [np.asarray(flag), x])
        (got,) = session.run(None, {"c": np.asarray(flag), "x": x})
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-5)
