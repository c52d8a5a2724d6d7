"""NumericVerify and the rotation, which LiteRT runs unasked, against it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.one_op import T
from tests.ops.custom_op import by_numpy, check_custom, custom_model
from tests.oracle import litert
from tflite_ort import AllocationError, Interpreter, KernelError, WellKnownOpResolver, export_onnx
from tflite_ort.providers.onnx_file import OnnxSession
from tflite_ort.schema import DelegateError, TensorType

INT8 = TensorType.INT8

CODES = [
    (TensorType.INT8, 0.05, -3),
    (TensorType.UINT8, 0.1, 100),
    (TensorType.INT16, 0.001, 0),
    (TensorType.FLOAT16, None, 0),
]


@pytest.mark.parametrize("options", [{"tolerance": 5.0, "log_if_failed": False}, {}])
@pytest.mark.parametrize(("type", "scale", "zero_point"), CODES)
def test_numeric_verify(
    type: TensorType, scale: float, zero_point: int, options: dict[str, Any], tmp_path: Path
) -> None:
    codes = T((3, 5), type, scale=scale, zero_point=zero_point)
    model = custom_model("NumericVerify", [codes, T((3, 5))], [T((3, 5))], options)
    rng = np.random.default_rng(0)
    check_custom(
        model, [codes.random(rng), rng.uniform(-9, 9, (3, 5)).astype(np.float32)], tmp_path
    )


def test_numeric_verify_refuses_other_shapes() -> None:
    """LiteRT reads beyond a smaller reference."""
    model = custom_model("NumericVerify", [T((4,), INT8, 0.5), T((4,))], [T((4,))], {})
    interpreter = Interpreter(model_content=model)
    interpreter.resize_tensor_input(1, (3,))
    with pytest.raises(AllocationError, match=r"shapes \(4,\) and \(3,\) differ"):
        interpreter.allocate_tensors()
    opened = {"in0": ("n",), "in1": ("m",)}
    proto = export_onnx(model, resolver=WellKnownOpResolver(), input_shapes=opened)
    session = OnnxSession(proto)
    codes = np.ones(3, np.int8)
    (same,) = session.run({"in0": codes, "in1": np.ones(3, np.float32)})
    assert same.tolist() == [-0.5] * 3
    with pytest.raises(DelegateError):
        session.run({"in0": codes, "in1": np.ones(1, np.float32)})


def test_numeric_verify_fails_above_the_tolerance() -> None:
    codes = T((4,), TensorType.INT8, scale=0.5)
    options = {"tolerance": 1.5, "log_if_failed": True}
    model = custom_model("NumericVerify", [codes, T((4,))], [T((4,))], options)
    near = [np.array([1, 2, 3, 4], np.int8), np.array([0, 1, 2, 2.5], np.float32)]
    (want,), (got,) = litert(model, near), by_numpy(model, near)
    np.testing.assert_array_equal(got, want)
    far = [near[0], np.array([0, 1, 2, 1], np.float32)]
    with pytest.raises(RuntimeError):
        litert(model, far)
    with pytest.raises(KernelError, match=r"off by 1\.0, 0\.75 is the tolerance"):
        by_numpy(model, far)
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    assert [row.runs_on for row in interpreter.delegation()] == ["numpy"]


@pytest.mark.parametrize("size", [1, 2, 8, 64, 128])
@pytest.mark.parametrize("shape", [(3, 128), (2, 3, 256)])
def test_hadamard_rotation(size: int, shape: tuple[int, ...], tmp_path: Path) -> None:
    options = {"hadamard_size": size, "random_binary_vector": [1, -1]}
    model = custom_model("aeq.hadamard_rotation", [T(shape)], [T(shape)], options)
    x = np.random.default_rng(size).normal(0, 1, shape).astype(np.float32)
    check_custom(model, [x], tmp_path)


@pytest.mark.parametrize("size", [512, 1024, 1 << 17])
def test_long_hadamard_rotations(size: int, tmp_path: Path) -> None:
    """The whole matrix of the longest has 17 billion numbers."""
    model = custom_model(
        "aeq.hadamard_rotation", [T((2, size))], [T((2, size))], {"hadamard_size": size}
    )
    x = np.random.default_rng(size).normal(0, 1, (2, size)).astype(np.float32)
    check_custom(model, [x], tmp_path)
