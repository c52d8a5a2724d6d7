"""AudioSpectrogram and Mfcc, which LiteRT runs unasked, against it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.one_op import T, assert_close
from tests.ops.custom_op import (
    by_exported,
    by_numpy,
    check_custom,
    custom_model,
    interpreter_of,
    invoked,
)
from tests.oracle import litert
from tflite_ort import ModelError
from tflite_ort.schema import TensorType

Array = npt.NDArray[Any]
FILE_FIXTURE = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


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
    check_custom(model, [waves], tmp_path)


@pytest.mark.parametrize("squared", [True, False])
@pytest.mark.parametrize("window", [513, 1024, 1 << 17])
def test_long_windows(window: int, squared: bool, tmp_path: Path) -> None:
    """In numpy, and as DFT: the cosines of the longest would take 69 GB."""
    options = {"window_size": window, "stride": 400, "magnitude_squared": squared}
    model = custom_model("AudioSpectrogram", [T((window + 500, 2))], [T((1, 1, 1))], options)
    waves = np.random.default_rng(window).uniform(-1, 1, (window + 500, 2)).astype(np.float32)
    (want,) = litert(model, [waves])
    interpreter = interpreter_of(model)
    assert {row.runs_on for row in interpreter.delegation()} == {"numpy"}
    found = (invoked(interpreter, [waves]), by_exported(model, [waves], tmp_path))
    for place, (got,) in zip(("numpy", "exported"), found, strict=True):
        assert_close(got, want, 0, 1e-5, place)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("AudioSpectrogram", {"window_size": 1 << 30, "stride": 1, "magnitude_squared": True}),
        (
            "Mfcc",
            {
                "upper_frequency_limit": 4000,
                "lower_frequency_limit": 20,
                "filterbank_channel_count": 1 << 30,
                "dct_coefficient_count": 1,
            },
        ),
    ],
)
def test_options_that_ask_for_gigabytes_are_refused(name: str, options: dict[str, Any]) -> None:
    rate = [T.constant(np.array(16000, np.int32))] if name == "Mfcc" else []
    input = T((1, 2, 65)) if name == "Mfcc" else T((20, 1))
    with pytest.raises(ModelError, match="1073741824"):
        interpreter_of(custom_model(name, [input, *rate], [T((1, 1, 1))], options))


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
    check_custom(model, [squares], tmp_path)


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


def test_bins_that_no_filter_reads_may_hold_anything(tmp_path: Path) -> None:
    """A bin beyond the limits is not multiplied by 0: NaN and roots of negative numbers stay out.
    At a rate so high no bin is read at all."""
    options = {
        "upper_frequency_limit": 4000,
        "lower_frequency_limit": 20,
        "filterbank_channel_count": 8,
        "dct_coefficient_count": 5,
    }
    squares = np.full((1, 2, 257), 3, np.float32)
    squares[..., 0], squares[..., 200:] = np.inf, np.nan
    for rate, fed in ((16000, squares), (2**31 - 1, -squares)):
        inputs = [T((1, 2, 257)), T.constant(np.array([rate], np.int32))]
        check_custom(custom_model("Mfcc", inputs, [T((1, 1, 1))], options), [fed], tmp_path)


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
    inputs = [T((99, 1))]
    if name == "Mfcc":
        inputs = [T((1, 4, 33)), T.constant(np.array([16000], np.int32))]
    model = custom_model(name, inputs, [T((1, 1, 1))], options)
    with pytest.raises(ModelError, match=reason):
        interpreter_of(model)
