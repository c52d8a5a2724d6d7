"""Which channels differ, and how verdicts are shown."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.one_op import T, one_op_model
from tests.test_cli import call
from tflite_ort import export_onnx
from tflite_ort.command.terminal import coloured
from tflite_ort.comparison.differences import difference, merged
from tflite_ort.schema import Conv2DOptions, Op
from tflite_ort.schema.values.view import Quantization

CHANNELS = 16


def test_differences_in_few_channels_are_named() -> None:
    rng = np.random.default_rng(0)
    want = rng.normal(size=(1, 200, 300, CHANNELS)).astype(np.float32)  # several blocks
    off = want + rng.normal(size=want.shape).astype(np.float32) * np.float32(1e-6)
    off[..., 3] *= 1.5
    found = difference(off, want)
    assert (found.channels, found.of_channels) == ((3,), CHANNELS)
    assert found.words.endswith(f"of the largest value, in channel 3 of {CHANNELS}")
    off[..., 9] = np.nan
    both = difference(off, want)
    assert both.channels == (3, 9)
    assert both.words.endswith(f"in channels 3 and 9 of {CHANNELS}")
    exact = difference(want, want)
    for several, channels in (([found, exact, found], (3,)), ([found, both], ())):
        together = merged(several)
        assert together is not None
        assert together.channels == channels


def test_differences_in_many_channels_are_not() -> None:
    rng = np.random.default_rng(1)
    want = rng.normal(size=(8, 9, CHANNELS)).astype(np.float32)
    everywhere = want + rng.normal(size=want.shape).astype(np.float32)
    one = want.copy()
    one[0, 0, 5] += 1  # one element says nothing of its channel
    for got in (everywhere, one, want):
        assert difference(got, want).channels == ()
    vector = want[:1, :1].copy()
    vector[..., 2] += 1
    assert difference(vector, want[:1, :1]).channels == ()  # of a channel there is one element


@pytest.mark.parametrize("per_channel", [False, True])
def test_channels_of_codes(per_channel: bool) -> None:
    rng = np.random.default_rng(2)
    want = rng.integers(-100, 100, (4, 5, CHANNELS)).astype(np.int8)
    got = want.copy()
    got[..., 7] += 5
    count = CHANNELS if per_channel else 1
    scales, points = np.full(count, 0.1, np.float32), np.zeros(count, np.int64)
    found = difference(got, want, Quantization(scales, points, 2))
    assert found.words == f"5 quanta in 6.25% of the elements, in channel 7 of {CHANNELS}"


@pytest.fixture
def changed(tmp_path: Path) -> tuple[Path, Path]:
    """A convolution, and its export with a channel that is wrong."""
    rng = np.random.default_rng(3)
    weights = rng.normal(size=(CHANNELS, 3, 3, 4)).astype(np.float32)
    options = Conv2DOptions(stride_h=1, stride_w=1)
    inputs = [T((1, 8, 8, 4)), T.constant(weights), T.constant(np.zeros(CHANNELS, np.float32))]
    model, file = tmp_path / "conv.tflite", tmp_path / "conv.onnx"
    model.write_bytes(one_op_model(Op.CONV_2D, inputs, [T((1, 6, 6, CHANNELS))], options))
    proto = export_onnx(model)
    (held,) = (
        each
        for each in proto.graph.initializer
        if onnx.numpy_helper.to_array(each).size == weights.size
    )
    values = onnx.numpy_helper.to_array(held).copy()
    assert values.shape[0] == CHANNELS
    values[11] *= 2
    held.CopyFrom(onnx.numpy_helper.from_array(values, held.name))
    onnx.save(proto, file)
    return model, file


def test_verify_names_the_channel(changed: tuple[Path, Path]) -> None:
    model, file = changed
    outcome = call("verify", model, "--onnx", file, "--runtime", "kernels")
    assert outcome.exit_code == 4, outcome.output
    assert f"in channel 11 of {CHANNELS}" in outcome.output
    assert "last bits" not in outcome.output


def test_verdicts_have_colours_on_a_terminal() -> None:
    text = coloured("export: off. Output 'y' \x1b[2J", "off", "bold red")
    assert text.plain == "export: off. Output 'y' \\x1b[2J"
    assert [(span.start, span.end, span.style) for span in text.spans] == [(8, 11, "bold red")]
