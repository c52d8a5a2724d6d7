"""CONV_3D and CONV_3D_TRANSPOSE against LiteRT."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.one_op import Case, T, check, ours
from tests.ops.versions import check_versions
from tflite_ort import AllocationError, ModelError
from tflite_ort.schema import ActivationFunctionType, Conv3DOptions, Op, Padding
from tflite_ort.schema.values.semantics import conv_output_size

SAME, VALID = Padding.SAME, Padding.VALID
Sizes = tuple[int, int, int]


def conv_3d(
    volume: Sizes = (5, 6, 7),
    kernel: Sizes = (3, 3, 3),
    stride: Sizes = (1, 1, 1),
    dilation: Sizes = (1, 1, 1),
    padding: Padding = SAME,
    activation: ActivationFunctionType = ActivationFunctionType.NONE,
    *,
    bias: bool = True,
    constant: bool = True,
    transposed: bool = False,
) -> Case:
    """Two volumes of 3 channels, and 4 after the convolution; of a transposed one it is what comes
    out that has `volume` cells, and 3 channels come from 4."""
    windows = zip(volume, kernel, stride, dilation, strict=True)
    counts = tuple(conv_output_size(padding, *window) for window in windows)
    image, result = T((2, *volume, 3)), T((2, *counts, 4))
    rng = np.random.default_rng(7)
    weights = T((*kernel, 3, 4))
    if constant:
        weights = T.constant(weights.random(rng).astype(np.float32))
    options = Conv3DOptions(
        padding=padding,
        **{f"stride_{axis}": size for axis, size in zip("dhw", stride, strict=True)},
        **{f"dilation_{axis}_factor": size for axis, size in zip("dhw", dilation, strict=True)},
        fused_activation_function=activation,
    )
    last = [T.constant(rng.normal(size=3 if transposed else 4).astype(np.float32))] if bias else []
    name = f"{volume}-{kernel}-{stride}-{dilation}-{padding.name}"
    if transposed:
        shape = T.constant(np.array(image.shape, np.int32))
        inputs = [shape, weights, result, *last]
        return Case(f"transpose-{name}", Op.CONV_3D_TRANSPOSE, inputs, [image], options)
    return Case(name, Op.CONV_3D, [image, weights, *last], [result], options)


ROWS: dict[str, dict[str, Any]] = {
    "same": {},
    "valid, strided": {
        "stride": (2, 1, 3),
        "padding": VALID,
        "activation": ActivationFunctionType.RELU,
    },
    "same, strided": {"stride": (2, 3, 2), "activation": ActivationFunctionType.RELU6},
    "dilated": {"dilation": (1, 2, 3), "kernel": (2, 3, 2)},
    "dilated, valid": {"dilation": (2, 1, 2), "kernel": (2, 3, 2), "padding": VALID},
    "no bias": {"bias": False},
    "computed filter": {"constant": False, "kernel": (1, 2, 3)},
    "stride beyond kernel": {"kernel": (1, 2, 1), "stride": (2, 3, 2), "padding": VALID},
    "bounded": {"kernel": (1, 1, 1), "activation": ActivationFunctionType.RELU_N1_TO_1},
}


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("transposed", [False, True])
def test_volumes(row: str, transposed: bool) -> None:
    check(conv_3d(**ROWS[row], transposed=transposed))


def test_another_volume() -> None:
    volume = np.random.default_rng(3).normal(size=(1, 4, 9, 5, 3)).astype(np.float32)
    check(replace(conv_3d(), feeds=[volume]))


@pytest.mark.parametrize("transposed", [False, True])
def test_versions(transposed: bool) -> None:
    check_versions(conv_3d(transposed=transposed))


@pytest.mark.parametrize("row", ROWS)
def test_output_shape_computed_at_run_time(row: str) -> None:
    case = conv_3d(**ROWS[row], transposed=True)
    shape, weights, image, *bias = case.inputs
    assert shape is not None and shape.data is not None and image is not None
    assert weights is not None
    given = [t.random(np.random.default_rng(1)) for t in (weights, image) if not t.is_constant]
    inputs = [replace(shape, data=None), weights, image, *bias]
    check(replace(case, inputs=inputs, feeds=[shape.data, *given]))


def test_channels_that_do_not_fit_are_refused() -> None:
    case = conv_3d()
    feeds = [np.zeros((1, 4, 4, 4, 2), np.float32)]
    with pytest.raises(ModelError, match="does not fit an input of"):
        ours(case.model(), feeds)


def test_an_output_shape_that_does_not_convolve_to_the_input_is_refused() -> None:
    case = conv_3d(transposed=True)
    assert case.inputs[0] is not None
    wrong = [T.constant(np.array([2, 9, 9, 9, 3], np.int32)), *case.inputs[1:]]
    feeds = case.arrays(np.random.default_rng(0))
    for providers in (None, []):
        with pytest.raises(AllocationError, match="does not convolve to"):
            ours(replace(case, inputs=wrong).model(), feeds, providers=providers)


@given(st.data())
def test_drawn_volumes(data: st.DataObject) -> None:
    def three(low: int, high: int) -> Sizes:
        return data.draw(st.tuples(*[st.integers(low, high)] * 3))

    case = conv_3d(
        three(5, 8),
        three(1, 3),
        three(1, 3),
        three(1, 2),
        data.draw(st.sampled_from([SAME, VALID])),
        bias=data.draw(st.booleans()),
        transposed=data.draw(st.booleans()),
    )
    check(case, seed=data.draw(st.integers(0, 2**31)))
