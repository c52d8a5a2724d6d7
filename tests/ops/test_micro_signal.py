"""TFLite Micro's signal operators: against readings of each in plain Python, and its own numbers.

`signal_goldens.json` holds what TFLite Micro computes, which is no dependency of the tests.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models import model_path
from tests.one_op import T
from tests.ops.custom_op import by_numpy, custom_model, interpreter_of, invoked
from tflite_ort import KernelError, ModelError
from tflite_ort.schema import TensorType

Array = npt.NDArray[Any]

GOLDENS = json.loads(Path(__file__).with_name("signal_goldens.json").read_text(encoding="utf-8"))
INT16, INT32, UINT32, UINT64 = (
    *(TensorType.INT16, TensorType.INT32),
    *(TensorType.UINT32, TensorType.UINT64),
)
BOOL, FLOAT32 = TensorType.BOOL, TensorType.FLOAT32
seeds = st.integers(0, 2**32 - 1)


def drawn(seed: int, low: int, high: int, shape: tuple[int, ...], dtype: str) -> Array:
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


def wrapped(value: int, bits: int, signed: bool = True) -> int:
    value %= 1 << bits
    return value - (1 << bits) if signed and value >> (bits - 1) else value


# Transforms --------------------------------------------------------------------------------------


def transform_model(name: str, length: int, dtype: str) -> bytes:
    type = TensorType[dtype.upper()]
    sizes = (length, length + 2) if name == "SignalRfft" else (length + 2, length)
    options = {"T": int(type), "fft_length": length}
    return custom_model(name, [T(sizes[:1], type)], [T(sizes[1:], type)], options)


def samples(name: str, length: int, dtype: str) -> Array:
    """Loud and quiet ones by a congruential generator."""
    size, state, values = length + 2 * (name == "SignalIrfft"), length, []
    for i in range(size):
        state = (1103515245 * state + 12345) % 2**31
        values.append((state - 2**30) >> (15 if dtype == "int16" else i % 4))
    return np.array(values).astype(dtype)


@pytest.mark.parametrize(
    "row", GOLDENS["transforms"], ids=lambda row: f"{row['name']} {row['dtype']} {row['length']}"
)
def test_transform_is_that_of_tflite_micro(row: dict[str, Any]) -> None:
    name, length, dtype = row["name"], row["length"], row["dtype"]
    (got,) = by_numpy(transform_model(name, length, dtype), [samples(name, length, dtype)])
    assert (got.dtype, got.tolist()) == (np.dtype(dtype), row["output"])


@given(seeds, st.sampled_from([4, 6, 10, 64, 120, 512, 960]), st.sampled_from(["int16", "int32"]))
def test_transform_is_near_the_exact_one(seed: int, length: int, dtype: str) -> None:
    """Each pass rounds: half a unit and a little of the loudest sample. Louder ones may wrap."""
    limits = np.iinfo(np.dtype(dtype))
    x = drawn(seed, limits.min // 2, limits.max // 2, (2, length), dtype)
    type = TensorType[dtype.upper()]
    options = {"T": int(type), "fft_length": length}
    model = custom_model("SignalRfft", [T(x.shape, type)], [T((2, length + 2), type)], options)
    (got,) = by_numpy(model, [x])
    exact = np.fft.rfft(x.astype(np.float64)) / length
    parts = got[:, ::2] + 1j * got[:, 1::2]
    assert np.abs(parts - exact).max() <= 8 + 1e-4 * float(limits.max)


@given(seeds, st.sampled_from([8, 60, 512]))
def test_float_transforms_are_inverse(seed: int, length: int) -> None:
    x = np.random.default_rng(seed).normal(size=length - 3).astype(np.float32)
    options = {"T": int(FLOAT32), "fft_length": length}
    shapes = [T((length - 3,)), T((length + 2,)), T((length,))]
    (parts,) = by_numpy(custom_model("SignalRfft", shapes[:1], shapes[1:2], options), [x])
    (back,) = by_numpy(custom_model("SignalIrfft", shapes[1:2], shapes[2:], options), [parts])
    np.testing.assert_allclose(back, [*x, 0, 0, 0], atol=1e-5)
    np.testing.assert_allclose(parts[::2], np.fft.rfft(x, length).real, atol=1e-4)


@pytest.mark.parametrize("length", [0, 2, 7, 14, 22, -4])
def test_lengths_without_a_transform_are_refused(length: int) -> None:
    options = {"T": int(INT16), "fft_length": length}
    with pytest.raises(ModelError, match=f"fft_length is {length}"):
        interpreter_of(custom_model("SignalRfft", [T((2,), INT16)], [T((4,), INT16)], options))


# From samples to features ------------------------------------------------------------------------


@given(seeds, st.integers(0, 15))
def test_window(seed: int, shift: int) -> None:
    x, weights = drawn(seed, -(2**15), 2**15, (3, 7), "int16"), drawn(seed, 0, 2**15, (7,), "int16")
    inputs = [T((3, 7), INT16), T.constant(weights)]
    model = custom_model("SignalWindow", inputs, [T((3, 7), INT16)], {"shift": shift})
    products = [[int(a) * int(w) >> shift for a, w in zip(row, weights, strict=True)] for row in x]
    want = [[min(max(p, -(2**15)), 2**15 - 1) for p in row] for row in products]
    assert by_numpy(model, [x])[0].tolist() == want


def auto_scale(x: list[int]) -> tuple[list[int], int]:
    largest = 0
    for value in x:
        if value > largest:
            largest = value
        elif -value > largest:
            largest = wrapped(-value, 16)
    word = wrapped(largest, 32, signed=False)
    bits = max(0, 16 - (word.bit_length() if word else 32) - 1)
    return [wrapped(value << bits, 16) for value in x], bits


@given(
    st.lists(
        st.integers(-(2**15), 2**15 - 1) | st.integers(-9, 9) | st.just(-(2**15)),
        min_size=1,
        max_size=20,
    )
)
def test_fft_auto_scale(x: list[int]) -> None:
    size = (len(x),)
    model = custom_model("SignalFftAutoScale", [T(size, INT16)], [T(size, INT16), T((), INT32)])
    scaled, bits = by_numpy(model, [np.array(x, np.int16)])
    assert (scaled.tolist(), int(bits)) == auto_scale(x)


@given(seeds, st.integers(0, 9), st.integers(0, 9))
def test_energy(seed: int, one: int, other: int) -> None:
    start, end = sorted((one, other))
    x = drawn(seed, -(2**15), 2**15, (18,), "int16")
    x[:2] = -(2**15)
    options = {"start_index": start, "end_index": end}
    model = custom_model("SignalEnergy", [T((18,), INT16)], [T((9,), UINT32)], options)
    squares = [int(x[2 * i]) ** 2 + int(x[2 * i + 1]) ** 2 for i in range(9)]
    want = [square if start <= i < end else 0 for i, square in enumerate(squares)]
    assert by_numpy(model, [x])[0].tolist() == want


@given(seeds)
def test_filter_bank(seed: int) -> None:
    rng = np.random.default_rng(seed)
    channels, widths = 4, rng.integers(0, 5, 5).astype(np.int16)
    starts = rng.integers(0, 16, 5).astype(np.int16)
    firsts = (np.cumsum(widths) - widths).astype(np.int16)
    weights, rest = rng.integers(-(2**15), 2**15, (2, int(widths.sum()) + 1)).astype(np.int16)
    energy = rng.integers(0, 2**32, 20).astype(np.uint32)
    constants = [T.constant(array) for array in (weights, rest, starts, firsts, widths)]
    inputs, outputs = [T((20,), UINT32), *constants], [T((channels,), UINT64)]
    model = custom_model("SignalFilterBank", inputs, outputs, {"num_channels": channels})
    sums = [0] * 6
    for band in range(5):
        for j in range(int(widths[band])):
            value = int(energy[starts[band] + j])
            sums[band] += int(weights[firsts[band] + j]) * value
            sums[band + 1] += int(rest[firsts[band] + j]) * value
    assert by_numpy(model, [energy])[0].tolist() == [total % 2**64 for total in sums[1:5]]


def test_a_band_outside_the_spectrum_is_an_error() -> None:
    arrays = ([1, 1], [1, 1], [0, 9], [0, 1], [1, 1])
    constants = [T.constant(np.array(array, np.int16)) for array in arrays]
    inputs, outputs = [T((9,), UINT32), *constants], [T((1,), UINT64)]
    model = custom_model("SignalFilterBank", inputs, outputs, {"num_channels": 1})
    with pytest.raises(KernelError, match="a band of 1 from 9"):
        by_numpy(model, [np.ones(9, np.uint32)])


def nearest_root(value: int) -> int:
    """By bisection; the tie between two roots is no integer."""
    low, high = 0, 2**32
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle * middle <= value else (low, middle)
    rounded = low + (value > low * low + low)
    return min(rounded, 2**16 - 1 if value < 2**32 else 2**32 - 1)


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 2**33), min_size=3, max_size=3))
def test_filter_bank_square_root(values: list[int]) -> None:
    values += [0, 1, 2, 3, 2**32 - 1, 2**32, 2**64 - 1, (2**16 - 1) ** 2 + 2**16 - 1]
    size = (len(values),)
    inputs = [T(size, UINT64), T((), INT32)]
    model = custom_model("SignalFilterBankSquareRoot", inputs, [T(size, UINT32)])
    for bits in (0, 3, 31):
        (got,) = by_numpy(model, [np.array(values, np.uint64), np.array(bits, np.int32)])
        assert got.tolist() == [nearest_root(value) >> bits for value in values]


@given(seeds, st.booleans())
def test_spectral_subtraction_keeps_its_estimate(seed: int, clamping: bool) -> None:
    options = {
        "smoothing": 655,
        "one_minus_smoothing": 15729,
        "alternate_smoothing": 1311,
        "alternate_one_minus_smoothing": 15073,
        "smoothing_bits": 10,
        "spectral_subtraction_bits": 14,
        "min_signal_remaining": 819,
        "num_channels": 5,
        "clamping": clamping,
    }
    inputs, outputs = [T((5,), UINT32)], [T((5,), UINT32), T((5,), UINT32)]
    model = custom_model("SignalFilterBankSpectralSubtraction", inputs, outputs, options)
    interpreter, estimate = interpreter_of(model), [0] * 5
    rng = np.random.default_rng(seed)
    for _ in range(4):
        x = rng.integers(0, 2 ** int(rng.integers(3, 33)), 5).astype(np.uint32)
        want = []
        for i, value in enumerate(map(int, x)):
            share, rest = (655, 15729) if i % 2 == 0 else (1311, 15073)
            scaled = value << 10 & 0xFFFFFFFF
            estimate[i] = (scaled * share + estimate[i] * rest >> 14) & 0xFFFFFFFF
            removed = min(estimate[i], scaled)
            estimate[i] = removed if clamping else estimate[i]
            want.append(max(scaled - removed >> 10, value * 819 >> 14))
        left, noise = invoked(interpreter, [x])
        assert (left.tolist(), noise.tolist()) == (want, estimate)
    interpreter.allocate_tensors()


def pcan(value: int, noise: int, table: list[int], shift: int) -> int:
    if noise <= 2:
        gain = table[noise]
    else:
        bits = noise.bit_length()
        part = table[4 * bits - 6 :]
        share = (noise << 11 - bits if bits < 11 else noise >> bits - 11) & 0x3FF
        curve = (part[2] * share >> 5) + (part[1] << 5)
        gain = wrapped((wrapped(curve * share, 32) + 2**14 >> 15) + part[0], 16)
    ratio = (value * (gain % 2**32) % 2**64 >> shift) % 2**32
    if ratio < 2 << 12:
        return ratio * ratio % 2**32 >> 20
    return (ratio >> 6) - 64


@given(seeds, st.integers(0, 20))
def test_pcan(seed: int, shift: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 2 ** rng.integers(1, 33, 9)).astype(np.uint32)
    noise = rng.integers(0, 2 ** rng.integers(1, 33, 9)).astype(np.uint32)
    table = rng.integers(0, 2**13, 125).astype(np.int16)
    inputs = [T((9,), UINT32), T((9,), UINT32), T.constant(table)]
    model = custom_model("SignalPCAN", inputs, [T((9,), UINT32)], {"snr_shift": shift})
    pairs = zip(values.tolist(), noise.tolist(), strict=True)
    want = [pcan(value, around, table.tolist(), shift) for value, around in pairs]
    assert by_numpy(model, [values, noise])[0].tolist() == want


LOG = {"input_correction_bits": 3, "output_scale": 1600}


def log_model(count: int) -> bytes:
    inputs, outputs = [T((count,), UINT32)], [T((count,), INT16)]
    return custom_model("SignalFilterBankLog", inputs, outputs, LOG)


def log_inputs() -> Array:
    """Powers of two and what is near them, and products of three."""
    values = {2**i + j for i in range(1, 30) for j in (-1, 0, 1)} | {3**i for i in range(19)}
    return np.array(sorted(values), np.uint32)


def test_filter_bank_log_is_that_of_tflite_micro() -> None:
    values = log_inputs()
    assert by_numpy(log_model(values.size), [values])[0].tolist() == GOLDENS["log"][0]


@given(st.lists(st.integers(0, 2**29 - 1) | st.integers(0, 9), min_size=9, max_size=9))
def test_filter_bank_log_is_near_the_logarithm(values: list[int]) -> None:
    (got,) = by_numpy(log_model(9), [np.array(values, np.uint32)])
    want = [1600 * np.log(8.0 * value) if value else 0 for value in values]
    assert np.abs(got - np.minimum(want, 2**15 - 1)).max() <= 4


# Models ------------------------------------------------------------------------------------------


def tones() -> list[Array]:
    """Sawtooths, a click, silence, and the loudest there is."""
    at = np.arange(480)
    saws = [(at * pitch % 2**16 - 2**15) // loud for pitch, loud in ((700, 1), (2500, 40), (9, 3))]
    ends = [at * 0 - 2**15, np.where(at == 99, 2**15 - 1, 0), at * 0]
    return [np.array([wave], np.int16) for wave in (*saws, *ends)]


def preprocessed(kind: str) -> list[Array]:
    content = model_path(f"tflm__audio_preprocessor_{kind}.tflite").read_bytes()
    interpreter = interpreter_of(content)
    return [invoked(interpreter, [tone])[0] for tone in tones()]


@pytest.mark.parametrize("kind", ["int8", "float"])
def test_audio_preprocessor_is_that_of_tflite_micro(kind: str) -> None:
    """Invoke by invoke: the noise estimate goes on from tone to tone."""
    for got, want in zip(preprocessed(kind), GOLDENS[kind], strict=True):
        assert got.tolist() == want
