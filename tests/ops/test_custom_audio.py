"""AudioSpectrogram, Mfcc, NumericVerify and the rotation, which LiteRT runs unasked, against it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.one_op import T, assert_close
from tests.ops.custom_op import by_exported, by_numpy, by_ort, custom_model, interpreter_of
from tests.oracle import litert
from tflite_ort import Interpreter, KernelError, ModelError
from tflite_ort.schema import TensorType

Array = npt.NDArray[Any]
FILE_FIXTURE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def check(model: bytes, feeds: list[Array], folder: Path, rtol: float = 1e-5) -> None:
    """numpy, ONNX Runtime and the exported file against LiteRT."""
    (want,) = litert(model, feeds)
    found = (by_numpy(model, feeds), by_ort(model, feeds), by_exported(model, feeds, folder))
    for where, (got,) in zip(("numpy", "ort", "exported"), found, strict=True):
        assert_close(got, want, 0, rtol, where)


@FILE_FIXTURE
@given(
    seed=st.integers(0, 2**32 - 1),
    samples=st.integers(40, 200),
    channels=st.integers(1, 3),
    window=st.integers(2, 40),
    stride=st.integers(1, 30),
    squared=st.booleans(),
)
def test_audio_spectrogram(
    seed: int,
    samples: int,
    channels: int,
    window: int,
    stride: int,
    squared: bool,
    tmp_path: Path,
) -> None:
    options = {"window_size": window, "stride": stride, "magnitude_squared": squared}
    model = custom_model("AudioSpectrogram", [T((samples, channels))], [T((1, 1, 1))], options)
    waves = np.random.default_rng(seed).uniform(-1, 1, (samples, channels)).astype(np.float32)
    check(model, [waves], tmp_path)


def test_samples_for_no_window_give_none() -> None:
    options = {"window_size": 32, "stride": 8, "magnitude_squared": True}
    model = custom_model("AudioSpectrogram", [T((20, 2))], [T((1, 1, 1))], options)
    (got,) = by_numpy(model, [np.ones((20, 2), np.float32)])
    assert got.shape == (2, 0, 17)


@FILE_FIXTURE
@given(
    seed=st.integers(0, 2**32 - 1),
    bins=st.sampled_from([33, 65, 129, 257]),
    rate=st.sampled_from([8000, 16000, 44100]),
    lower=st.integers(0, 300),
    upper=st.integers(1000, 4000),
    filters=st.integers(1, 40),
    data=st.data(),
)
def test_mfcc(
    seed: int,
    bins: int,
    rate: int,
    lower: int,
    upper: int,
    filters: int,
    data: st.DataObject,
    tmp_path: Path,
) -> None:
    options = {
        "upper_frequency_limit": upper,
        "lower_frequency_limit": lower,
        "filterbank_channel_count": filters,
        "dct_coefficient_count": data.draw(st.integers(1, filters)),
    }
    inputs = [T((2, 3, bins)), T.constant(np.array([rate], np.int32))]
    model = custom_model("Mfcc", inputs, [T((1, 1, 1))], options)
    squares = np.random.default_rng(seed).uniform(0, 100, (2, 3, bins)).astype(np.float32)
    check(model, [squares], tmp_path)


def test_mfcc_of_silence_and_of_a_rate_that_is_computed() -> None:
    options = {
        "upper_frequency_limit": 4000,
        "lower_frequency_limit": 20,
        "filterbank_channel_count": 40,
        "dct_coefficient_count": 13,
    }
    inputs = [T((1, 4, 257)), T((1,), TensorType.INT32)]
    model = custom_model("Mfcc", inputs, [T((1, 1, 1))], options)
    feeds = [np.zeros((1, 4, 257), np.float32), np.array([16000], np.int32)]
    (want,), (got,) = litert(model, feeds), by_numpy(model, feeds)
    assert_close(got, want, 0, 1e-5, "numpy")
    reasons = [row.reason for row in interpreter_of(model).delegation()]
    assert reasons == ["input 'sample_rate' is not a constant"]


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("Mfcc", {"dct_coefficient_count": 0}, "0 coefficients of 0 filters"),
        ("AudioSpectrogram", {"window_size": 1, "stride": 1}, "windows of 1 samples every 1"),
        ("AudioSpectrogram", {"window_size": 8, "stride": 0}, "windows of 8 samples every 0"),
    ],
)
def test_options_that_mean_nothing_are_refused(
    name: str, options: dict[str, int], reason: str
) -> None:
    shape = (1, 4, 33) if name == "Mfcc" else (99, 1)
    model = custom_model(name, [T(shape)], [T((1, 1, 1))], options)
    with pytest.raises(ModelError, match=reason):
        interpreter_of(model)


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
    check(model, [codes.random(rng), rng.uniform(-9, 9, (3, 5)).astype(np.float32)], tmp_path)


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
    check(model, [x], tmp_path)
