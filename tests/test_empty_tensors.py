"""Tensors without elements: results that no data comes into are known before the run."""

from __future__ import annotations

import struct

import numpy as np
import onnxruntime
import pytest

from tests.one_op import T, one_op_model, ours
from tests.ops.custom_op import custom_model
from tflite_ort import (
    AllocationError,
    BridgeError,
    BuiltinOpResolver,
    Interpreter,
    Registration,
    export_onnx,
)
from tflite_ort.schema import (
    AddOptions,
    BatchMatMulOptions,
    Conv3DOptions,
    GatherOptions,
    MulOptions,
    Op,
    Padding,
    ReducerOptions,
    SliceOptions,
    SoftmaxOptions,
    TensorType,
)

INT8, INT32 = TensorType.INT8, TensorType.INT32


def codes(*shape: int) -> T:
    return T(shape, INT8, scale=1 / 256, zero_point=-128)


AXIS = T.constant(np.array([1], np.int32))
# ONNX Runtime ends the process, or fails, on some of these.
MODELS = {
    "sum of codes": (Op.ADD, [codes(0, 3), codes(0, 3)], codes(0, 3), AddOptions()),
    "product of codes": (Op.MUL, [codes(2, 0), codes(1, 1)], codes(2, 0), MulOptions()),
    "softmax of codes": (Op.SOFTMAX, [codes(0, 3)], codes(0, 3), SoftmaxOptions(beta=1.0)),
    "no batch": (Op.BATCH_MATMUL, [T((0, 2, 3)), T((0, 3, 4))], T((0, 2, 4)), BatchMatMulOptions()),
    "sums of nothing": (Op.SUM, [T((2, 0)), AXIS], T((2,)), ReducerOptions()),
    "products of nothing": (Op.REDUCE_PROD, [T((2, 0)), AXIS], T((2,)), ReducerOptions()),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_result_is_a_constant(name: str) -> None:
    op, inputs, output, options = MODELS[name]
    model = one_op_model(op, inputs, [output], options)
    feeds = [
        np.zeros(t.shape, np.int8 if t.scale else np.float32) for t in inputs if not t.is_constant
    ]
    (want,), runners = ours(model, feeds)
    assert runners == {"constant"}
    proto = export_onnx(model)
    assert [node.op_type for node in proto.graph.node] == ["Identity"]
    two_threads = onnxruntime.SessionOptions()
    two_threads.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), two_threads, providers=["CPUExecutionProvider"]
    )
    names = [value.name for value in session.get_inputs()]
    (got,) = session.run(None, dict(zip(names, feeds, strict=True)))
    np.testing.assert_array_equal(got, want)


def test_the_sum_and_the_product_of_nothing() -> None:
    for name, value in (("sums of nothing", 0), ("products of nothing", 1)):
        op, inputs, output, options = MODELS[name]
        (got,), _ = ours(
            one_op_model(op, inputs, [output], options), [np.zeros((2, 0), np.float32)]
        )
        assert got.tolist() == [value, value]


CONV = Conv3DOptions(stride_d=1, stride_h=1, stride_w=1, padding=Padding.VALID)
POOL = struct.pack("<6i", 1, 2, 2, 2, 2, 0)  # padding, strides, sizes, activation
KERNELS = {
    "softmax of no numbers": one_op_model(
        Op.SOFTMAX, [T((2, 0))], [T((2, 0))], SoftmaxOptions(beta=1.0)
    ),
    "volumes of no batch": one_op_model(
        Op.CONV_3D, [T((0, 3, 3, 3, 2)), T((2, 2, 2, 2, 4))], [T((0, 2, 2, 2, 4))], CONV
    ),
    "positions of no batch": custom_model(
        "MaxPoolingWithArgmax2D", [T((0, 4, 4, 2))], [T((0, 2, 2, 2)), T((0, 2, 2, 2))], POOL
    ),
    "rotation of no rows": custom_model(
        "aeq.hadamard_rotation",
        [T((0, 8))],
        [T((0, 8))],
        {"hadamard_size": 8, "random_binary_vector": [1, -1]},
    ),
}


@pytest.mark.parametrize("name", KERNELS)
def test_a_numpy_kernel_of_nothing_makes_nothing(name: str) -> None:
    interpreter = Interpreter(model_content=KERNELS[name], providers=[])
    interpreter.allocate_tensors()
    interpreter.invoke()
    for detail in interpreter.get_output_details():
        got = interpreter.get_tensor(detail["index"])
        assert got.size == 0 and got.shape == tuple(detail["shape"])


def test_a_slice_whose_bounds_are_too_few_is_refused() -> None:
    """ONNX Runtime's graph failed to load, with a warning, and the kernel refused."""
    places = [T((1,), INT32), T((2,), INT32)]
    model = one_op_model(Op.SLICE, [T((4, 5)), *places], [T((2, 3))], SliceOptions())
    interpreter = Interpreter(model_content=model)
    with pytest.raises(AllocationError, match=r"begin of shape \(1,\) and size of shape \(2,\)"):
        interpreter.allocate_tensors()


def test_an_index_out_of_bounds_is_refused_all_the_same() -> None:
    model = one_op_model(Op.GATHER, [T((3, 0)), T((1,), INT32)], [T((1, 0))], GatherOptions())
    feeds = [np.zeros((3, 0), np.float32), np.array([7], np.int32)]
    for providers in (None, []):
        with pytest.raises(BridgeError, match=r"GATHER_0, .* 7\.\.7 in an axis of 3"):
            ours(model, feeds, providers)


def test_a_kernel_of_a_user_runs_at_every_invoke() -> None:
    seen: list[int] = []

    def add(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        seen.append(a.size)
        return a + b

    resolver = BuiltinOpResolver()
    resolver.add_builtin(Op.ADD, Registration(function=add))
    op, _, _, options = MODELS["sum of codes"]
    model = one_op_model(op, [T((0, 3)), T((0, 3))], [T((0, 3))], options)
    interpreter = Interpreter(model_content=model, resolver=resolver)
    interpreter.allocate_tensors()
    assert seen == []
    for _ in range(2):
        interpreter.invoke()
    assert seen == [0, 0]


@pytest.mark.parametrize("providers", [None, []])
def test_a_shape_without_elements_can_be_too_large_for_an_array(
    providers: list[str] | None,
) -> None:
    huge = T((2**30, 2**30, 2**30, 0))
    model = one_op_model(Op.ADD, [huge, huge], [huge], AddOptions())
    with pytest.raises(BridgeError, match=r"shape .* is too large"):
        Interpreter(model_content=model, providers=providers).allocate_tensors()
