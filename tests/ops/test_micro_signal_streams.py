"""TFLite Micro's signal operators that keep samples between invokes, against plain numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.one_op import T
from tests.ops.custom_op import custom_model, interpreter_of, invoked
from tests.ops.test_micro_signal import drawn, seeds
from tflite_ort import ModelError
from tflite_ort.schema import TensorType

BOOL, INT16 = TensorType.BOOL, TensorType.INT16


@given(seeds, st.integers(1, 6), st.integers(0, 9), st.integers(1, 4), st.booleans())
def test_framer(seed: int, step: int, more: int, frames: int, prefill: bool) -> None:
    size = step + more
    options = {"frame_size": size, "frame_step": step, "prefill": prefill}
    outputs = [T((2, frames, size), INT16), T((), BOOL)]
    model = custom_model("SignalFramer", [T((2, frames * step), INT16)], outputs, options)
    stream = drawn(seed, -99, 99, (2, 6 * frames * step), "int16")
    whole = np.pad(stream, [(0, 0), (more if prefill else 0, 0)])
    interpreter, missing = interpreter_of(model), 0 if prefill else -(-more // step)
    for part in np.split(stream, 6, axis=1):
        got, present = invoked(interpreter, [part])
        assert bool(present) == (missing == 0)
        late = min(missing, frames)
        missing -= late
        assert not got[:, :late].any()
        for i in range(late, frames):
            np.testing.assert_array_equal(got[:, i], whole[:, :size])
            whole = whole[:, step:]


@given(seeds, st.integers(1, 4), st.integers(0, 3), st.integers(0, 3), st.data())
def test_stacker(seed: int, channels: int, left: int, right: int, data: st.DataObject) -> None:
    step, frames = data.draw(st.integers(1, left + right + 1)), left + right + 1
    options = {
        "num_channels": channels,
        "stacker_left_context": left,
        "stacker_right_context": right,
        "stacker_step": step,
    }
    outputs = [T((channels * frames,), INT16), T((), BOOL)]
    model = custom_model("SignalStacker", [T((channels,), INT16)], outputs, options)
    stream = drawn(seed, -99, 99, (12, channels), "int16")
    interpreter, waiting = interpreter_of(model), [stream[0]] * left
    for frame in stream:
        waiting.append(frame)
        stack, present = invoked(interpreter, [frame])
        assert bool(present) == (len(waiting) >= frames)
        if present:
            np.testing.assert_array_equal(stack, np.concatenate(waiting[:frames]))
            waiting = waiting[step:]


@given(seeds, st.integers(1, 9), st.integers(0, 20))
def test_delay(seed: int, size: int, delay: int) -> None:
    model = custom_model(
        "SignalDelay", [T((2, size), INT16)], [T((2, size), INT16)], {"delay_length": delay}
    )
    stream = drawn(seed, -99, 99, (2, 5 * size), "int16")
    interpreter = interpreter_of(model)
    parts = [invoked(interpreter, [part])[0] for part in np.split(stream, 5, axis=1)]
    late = np.pad(stream, [(0, 0), (delay, 0)])[:, : 5 * size]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), late)


@pytest.mark.parametrize("dtype", ["int16", "float32"])
@given(seed=seeds, step=st.integers(1, 5), more=st.integers(0, 6))
def test_overlap_add(dtype: str, seed: int, step: int, more: int) -> None:
    size, type = step + more, TensorType[dtype.upper()]
    model = custom_model(
        "SignalOverlapAdd",
        [T((2, 3, size), type)],
        [T((2, 3 * step), type)],
        {"T": int(type), "frame_step": step},
    )
    frames = drawn(seed, -(2**15), 2**15, (4, 2, 3, size), dtype)
    interpreter, sums = interpreter_of(model), np.zeros((2, 12 * step + size))
    for i, invocation in enumerate(frames):
        (got,) = invoked(interpreter, [invocation])
        for j in range(3):
            at = (3 * i + j) * step
            sums[:, at : at + size] += invocation[:, j]
            if dtype == "int16":
                sums = sums.clip(-(2**15), 2**15 - 1)
        want = sums[:, 3 * i * step : 3 * (i + 1) * step]
        np.testing.assert_array_equal(got, want.astype(dtype))


@pytest.mark.parametrize(
    ("name", "options", "shape", "reason"),
    [
        ("SignalFramer", {"frame_size": 3, "frame_step": 4}, (8,), "8 samples in frames of 3"),
        ("SignalFramer", {"frame_size": 9, "frame_step": 5}, (8,), "8 samples in frames of 9"),
        ("SignalStacker", {"num_channels": 8, "stacker_step": 2}, (8,), "every 2 frames"),
        ("SignalOverlapAdd", {"frame_step": 9}, (2, 8), "frames of 8 every 9"),
        ("SignalOverlapAdd", {"frame_step": 1}, (8,), "rank 1, expected at least 2"),
    ],
)
def test_streams_that_do_not_fit_are_refused(
    name: str, options: dict[str, int], shape: tuple[int, ...], reason: str
) -> None:
    count = 1 if name == "SignalOverlapAdd" else 2
    outputs = [T((8,), INT16), T((), BOOL)][:count]
    with pytest.raises(ModelError, match=reason):
        interpreter_of(custom_model(name, [T(shape, INT16)], outputs, options))
