"""Exports in 16-bit floats: whole numbers are those of an export in 32-bit floats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest

from tests.models import model_path
from tests.one_op import Node, T, graph_model, one_op_model
from tests.samples import SAMPLES, sample, types
from tflite_ort import BridgeError, ExportError, export_onnx
from tflite_ort.schema import (
    AddOptions,
    Conv2DOptions,
    FullyConnectedOptions,
    GeluOptions,
    Op,
    Padding,
    Pool2DOptions,
    SoftmaxOptions,
    TensorType,
)

Array = npt.NDArray[Any]

INTEGERS = [TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.INT32]


def results(model: bytes, feeds: Sequence[Array], **form: Any) -> list[Array]:
    exported = export_onnx(model, **form)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        exported.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [each.name for each in session.get_inputs()]
    return [np.asarray(each) for each in session.run(None, dict(zip(names, feeds, strict=True)))]


def check_integers(model: bytes, feeds: Sequence[Array]) -> int:
    """Both exports give the same integers; returns how many outputs have such."""
    wanted, found = results(model, feeds), results(model, feeds, float16=True)
    pairs = [(w, f) for w, f in zip(wanted, found, strict=True) if w.dtype.kind in "iub"]
    for want, got in pairs:
        np.testing.assert_array_equal(got, want)
    return len(pairs)


@pytest.mark.parametrize("type", INTEGERS)
def test_integers_of_every_operator_are_the_same(type: TensorType) -> None:
    compared = 0
    for op in SAMPLES:
        if type not in types(op):
            continue
        model, feeds = sample(op, type)
        try:
            export_onnx(model)
        except BridgeError:
            continue
        print(op.name)
        compared += check_integers(model, feeds)
    assert compared > 40


def codes(*shape: int, scale: float = 1e-4) -> T:
    return T(shape, TensorType.INT16, scale)


POOL = Pool2DOptions(Padding.VALID, 1, 1, 2, 2)
NETWORKS: dict[str, bytes] = {
    "gelu": one_op_model(Op.GELU, [codes(4, 64, scale=0.05)], [codes(4, 64, scale=0.04)],
                         GeluOptions()),
    "max pool": one_op_model(Op.MAX_POOL_2D, [codes(1, 8, 8, 2)], [codes(1, 7, 7, 2)], POOL),
    "softmax": one_op_model(Op.SOFTMAX, [codes(4, 64, scale=1e-3)], [codes(4, 64, scale=2**-15)],
                            SoftmaxOptions(1.0)),
    "quantize": one_op_model(Op.QUANTIZE, [T((300,))], [codes(300, scale=1e-3)]),
    "bits": one_op_model(Op.BITCAST, [T((4, 8))], [T((4, 8), TensorType.INT32)]),
    "cast to integers": one_op_model(Op.CAST, [T((300,))], [T((300,), TensorType.INT32)]),
}  # fmt: skip


@pytest.mark.parametrize("name", NETWORKS)
def test_whole_numbers_beyond_11_bits(name: str) -> None:
    rng = np.random.default_rng(7)
    shape = export_onnx(NETWORKS[name]).graph.input[0].type.tensor_type
    sizes = [each.dim_value for each in shape.shape.dim]
    real = shape.elem_type == onnx.TensorProto.FLOAT
    feed = rng.normal(0, 1e5, sizes).astype(np.float32)
    if name == "quantize":
        feed = rng.uniform(-32, 32, sizes).astype(np.float32)
    if not real:
        feed = rng.integers(-32767, 32768, sizes).astype(np.int16)
    assert check_integers(NETWORKS[name], [feed]) == 1


def test_accumulators_of_hybrid_products_are_not_infinite() -> None:
    """127 times 127, 64 times, is no 16-bit float."""
    weights = T((3, 64), TensorType.INT8, 0.01, data=np.full((3, 64), 127, np.int8))
    model = one_op_model(
        Op.FULLY_CONNECTED, [T((1, 64)), weights, None], [T((1, 3))], FullyConnectedOptions()
    )
    feed = [np.ones((1, 64), np.float32)]
    (want,) = results(model, feed, hybrid="dynamic")
    (got,) = results(model, feed, hybrid="dynamic", float16=True)
    np.testing.assert_allclose(got, want, rtol=2e-3)


def test_integers_are_compared_whole() -> None:
    numbers = T((2,), TensorType.INT32)
    tensors = {"x": numbers, "r": T((2,)), "c": T.constant(np.float32([2049, 100000])),
               "y": T((2,), TensorType.BOOL)}  # fmt: skip
    nodes = [Node(Op.CAST, ["x"], ["r"]), Node(Op.EQUAL, ["r", "c"], ["y"])]
    (got,) = results(
        graph_model(tensors, nodes, ["y"]), [np.array([2048, 100000], np.int32)], float16=True
    )
    assert got.tolist() == [False, True]


def test_real_numbers_between_are_16_bits() -> None:
    exported = export_onnx(model_path("mlperf-tiny__kws_ref_model_float32.tflite"), float16=True)
    large = [each for each in exported.graph.initializer if len(each.raw_data) > 1024]
    assert onnx.TensorProto.FLOAT not in {each.data_type for each in large}
    inferred = onnx.shape_inference.infer_shapes(exported).graph.value_info
    kinds = {each.name: each.type.tensor_type.elem_type for each in inferred}
    made = [kinds[node.output[0]] for node in exported.graph.node if node.op_type == "Conv"]
    assert made and set(made) == {onnx.TensorProto.FLOAT16}


def test_weights_that_are_no_16_bit_floats_are_refused() -> None:
    weights = np.ones((1, 1, 1, 2), np.float32)
    weights[..., 1] = 3e38
    content = one_op_model(
        Op.CONV_2D,
        [T((1, 2, 2, 2)), T.constant(weights), T.constant(np.zeros(1, np.float32))],
        [T((1, 2, 2, 1))],
        Conv2DOptions(Padding.VALID, 1, 1),
    )
    with pytest.raises(ExportError, match=r"CONV_2D_0/.*3e\+38"):
        export_onnx(content, float16=True)


def test_numbers_for_minus_infinity_stay_finite() -> None:
    """What masks attention is added to real numbers."""
    mask, x = T((1, 4), TensorType.INT32), T((1, 4))
    tensors = {"m": mask, **dict.fromkeys("xfnsy", x), "one": T.constant(np.float32([1])),
               "low": T.constant(np.float32([-1e9])), "a": x}  # fmt: skip
    nodes = [
        Node(Op.CAST, ["m"], ["f"]),
        Node(Op.SUB, ["one", "f"], ["n"]),
        Node(Op.MUL, ["n", "low"], ["s"]),
        Node(Op.ADD, ["s", "x"], ["a"], AddOptions()),
        Node(Op.SOFTMAX, ["a"], ["y"], SoftmaxOptions(1.0)),
    ]
    model = graph_model(tensors, nodes, ["y"])
    feeds = {"m": np.zeros((1, 4), np.int32), "x": np.zeros((1, 4), np.float32)}
    exported = export_onnx(model, float16=True)
    session = onnxruntime.InferenceSession(exported.SerializeToString())
    (got,) = session.run(None, feeds)
    np.testing.assert_allclose(got, 0.25, atol=1e-3)
