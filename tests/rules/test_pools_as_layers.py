"""Means over windows of floats as depthwise convolutions: within the order of sums."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.one_op import T, one_op_model
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.trees import answers
from tflite_ort.opmap.rules.rule import without
from tflite_ort.schema import ActivationFunctionType, Op, Padding, Pool2DOptions
from tflite_ort.schema.values.semantics import explicit_padding

SEED = 12
SAME, VALID = Padding.SAME, Padding.VALID


def model(
    shape: tuple[int, ...],
    kernel: tuple[int, int],
    strides: tuple[int, int],
    padding: Padding,
    activation: ActivationFunctionType = ActivationFunctionType.NONE,
) -> bytes:
    sizes = []
    for size, window, stride in zip(shape[1:3], kernel, strides, strict=True):
        pads = sum(explicit_padding(padding, size, window, stride, 1))
        sizes.append((size + pads - window) // stride + 1)
    options = Pool2DOptions(
        padding=padding,
        stride_h=strides[0],
        stride_w=strides[1],
        filter_height=kernel[0],
        filter_width=kernel[1],
        fused_activation_function=activation,
    )
    output = T((shape[0], *sizes, shape[3]))
    return one_op_model(Op.AVERAGE_POOL_2D, [T(shape)], [output], options)


CASES: dict[str, tuple[Any, ...]] = {
    "same": ((1, 12, 12, 44), (3, 3), (1, 1), SAME),
    "valid": ((2, 13, 11, 22), (3, 3), (2, 2), VALID),
    "strides": ((1, 25, 24, 11), (3, 3), (2, 2), SAME),
    "uneven": ((1, 17, 30, 5), (2, 5), (1, 3), SAME),
    "one row": ((1, 1, 64, 20), (1, 4), (1, 2), SAME),
    "relu": ((1, 12, 12, 44), (3, 3), (1, 1), SAME, ActivationFunctionType.RELU),
}


@pytest.mark.parametrize("name", CASES)
def test_same_means(name: str) -> None:
    content = model(*CASES[name])
    rng = np.random.default_rng(SEED)
    print(f"seed {SEED}")
    image = (rng.standard_normal(CASES[name][0]) * 100).astype(np.float32)
    assert optimised_nodes(content)["AveragePool"] == 0
    (got,) = answers(content, [image])
    with without("means as layers"):
        assert optimised_nodes(content)["AveragePool"] == 1
        (plain,) = answers(content, [image])
    bound = 1e-6 * np.abs(image).max()  # the order of sums, and one more rounding
    np.testing.assert_allclose(got, plain, rtol=0, atol=bound)
    np.testing.assert_allclose(got, litert(content, [image])[0], rtol=0, atol=bound)


@pytest.mark.parametrize(
    "case",
    [
        ((1, 12, 12, 32), (3, 3), (1, 1), SAME),  # blocks
        ((1, 12, 12, 44), (12, 12), (1, 1), VALID),  # all cells
        ((1, 20, 20, 44), (9, 9), (1, 1), SAME),  # large windows
        ((1, 4, 4, 3), (3, 3), (1, 1), SAME),  # few numbers
    ],
)
def test_what_stays_a_pool(case: tuple[Any, ...]) -> None:
    nodes = optimised_nodes(model(*case))
    assert nodes["AveragePool"] + nodes["GlobalAveragePool"] == 1
