"""Real networks, end to end: LiteRT's numbers, nothing in numpy, and an export that agrees."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest

from tests.models import model_path
from tests.one_op import ours
from tests.oracle import litert, litert_interpreter
from tests.subgraph_models import invoked
from tflite_ort import Interpreter, export_onnx

Array = npt.NDArray[Any]

FLOAT = [
    "tflite-support__mobilenet_v1_0.25_224_1_default_1.tflite",
    "tflite-support__deeplabv3.tflite",
    "mlperf-tiny__vww_96_float.tflite",
    "pypi-mediapipe__face_detection_short_range.tflite",
    "pypi-mediapipe__face_detection_full_range_sparse.tflite",
    "pypi-mediapipe__face_landmark.tflite",
    "pypi-mediapipe__hand_landmark_lite.tflite",
    "npm-mediapipe-holistic__pose_landmark_lite.tflite",
    "litert__torchaudio_conformer.tflite",
    "tflite-support__movie_review.tflite",
]
MOBILENET_V2 = "tflite-support__mobilenet_v2_1.0_224_quant.tflite"
MOBILENET_V2_INT8 = "coral__tf2_mobilenet_v2_1.0_224_ptq.tflite"
QUANTIZED = [
    MOBILENET_V2,
    MOBILENET_V2_INT8,
    "mlperf-tiny__vww_96_int8.tflite",
    "mlperf-tiny__kws_ref_model.tflite",
    "mlperf-tiny__pretrainedResnet_quant.tflite",
    "coral__movenet_single_pose_lightning_ptq.tflite",
]
ROUNDS = 10


def random_inputs(name: str, seed: int) -> list[Array]:
    """Inputs of a network: images in [-1, 1], codes over their whole range, word numbers."""
    rng = np.random.default_rng(seed)
    print(f"{name}: seed {seed}")
    arrays = []
    for detail in input_details(name):
        shape, dtype = tuple(detail["shape"]), np.dtype(detail["dtype"])
        if dtype.kind == "f":
            arrays.append(rng.uniform(-1, 1, shape).astype(dtype))
        elif dtype.itemsize == 1 and dtype.kind in "iu":
            info = np.iinfo(dtype)
            arrays.append(rng.integers(info.min, info.max + 1, shape).astype(dtype))
        else:
            arrays.append(rng.integers(0, 2 if dtype.kind == "b" else 100, shape).astype(dtype))
    return arrays


@cache
def input_details(name: str) -> list[dict[str, Any]]:
    return Interpreter(model_path(name)).get_input_details()


@cache
def content(name: str) -> bytes:
    return Path(model_path(name)).read_bytes()


def quanta(got: Sequence[Array], want: Sequence[Array]) -> float:
    """Mean absolute difference over all outputs; float outputs count in 1/255 of their range."""
    total, count = 0.0, 0
    for a, b in zip(got, want, strict=True):
        step = float(np.ptp(b)) / 255 or 1.0 if b.dtype.kind == "f" else 1.0
        total += float(np.abs(a.astype(np.float64) - b.astype(np.float64)).sum()) / step
        count += a.size
    return total / count


@pytest.mark.parametrize("name", FLOAT)
def test_float_network_agrees_with_litert(name: str) -> None:
    inputs = random_inputs(name, 0)
    got, runners = ours(content(name), inputs)
    assert runners <= {"ort", "constant"}
    assert_close_to_litert(name, inputs, got, litert(content(name), inputs))


def assert_close_to_litert(
    name: str, inputs: Sequence[Array], got: Sequence[Array], wanted: Sequence[Array]
) -> None:
    """Per output within 1e-4 of the largest magnitude, or 1.5 times what LiteRT is from itself.

    The second is for the pose network's segmentation and score: fed with noise, they are sums of
    terms 1e4 times as large, and LiteRT's kernels differ by up to 9e-4 from each other.
    """
    for i, (result, want) in enumerate(zip(got, wanted, strict=True)):
        assert result.shape == want.shape
        distance = np.abs(result - want).max()
        if not distance <= 1e-4 * np.abs(want).max():
            default, *others = (
                litert(content(name), inputs, kernels)[i]
                for kernels in ("default", "optimized", "reference")
            )
            assert distance <= max(1.5 * np.abs(other - default).max() for other in others)


@pytest.mark.parametrize("name", QUANTIZED)
def test_quantized_network_is_as_close_as_litert_to_itself(name: str) -> None:
    mine = reference = 0.0
    network = Interpreter(model_content=content(name), num_threads=1)
    theirs = [litert_interpreter(content(name), kernels) for kernels in ("default", "reference")]
    for interpreter in (network, *theirs):
        interpreter.allocate_tensors()
    for seed in range(ROUNDS):
        inputs = random_inputs(name, seed)
        got, default, other = (invoked(each, inputs) for each in (network, *theirs))
        mine += quanta(got, default)
        reference += quanta(other, default)
        if name == MOBILENET_V2:
            np.testing.assert_array_equal(got[0], default[0])
    assert {row.runs_on for row in network.delegation()} <= {"ort", "constant"}
    assert mine <= reference


@pytest.mark.parametrize("name", [*FLOAT, *QUANTIZED])
def test_export_runs_and_agrees(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    export_onnx(model_path(name), path, state_defaults=True)
    onnx.checker.check_model(str(path), full_check=True)
    inputs = random_inputs(name, 1)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    feeds = {value.name: array for value, array in zip(session.get_inputs(), inputs, strict=True)}
    expected, _ = ours(content(name), inputs)
    details = Interpreter(model_path(name)).get_output_details()
    assert [value.name for value in session.get_outputs()] == [d["name"] for d in details]
    exported = session.run(None, feeds)
    if name in FLOAT:
        # The interpreter's graph adds up the first convolution in another order.
        assert_close_to_litert(name, inputs, exported, expected)
    else:
        for got, want in zip(exported, expected, strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", [MOBILENET_V2, MOBILENET_V2_INT8])
def test_exported_mobilenet_has_one_transpose(name: str) -> None:
    nodes = [node.op_type for node in export_onnx(model_path(name)).graph.node]
    assert nodes.count("Transpose") <= 1
