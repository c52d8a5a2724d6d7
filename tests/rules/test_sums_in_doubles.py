"""Sums of 16-bit activations by one product of doubles: the codes that digits give, and LiteRT."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from tests.one_op import T, one_op_model
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.trees import answers
from tflite_ort.opmap.rules.rule import without
from tflite_ort.schema import (
    ActivationFunctionType,
    Conv2DOptions,
    FullyConnectedOptions,
    Op,
    Padding,
    TensorType,
)

SEED = 3
RULES = ("rows in doubles", "cells in doubles")
INT16, INT8 = TensorType.INT16, TensorType.INT8
RELU = ActivationFunctionType.RELU


def layer(
    op: Op, input: tuple[int, ...], filter: tuple[int, ...], output: tuple[int, ...], options: Any
) -> tuple[bytes, T]:
    """A layer of 16-bit codes, and its input. Bias and scales reach the ends of the codes."""
    rng = np.random.default_rng(SEED)
    print(f"seed {SEED}")
    codes = rng.integers(-127, 128, filter).astype(np.int8)
    scales = rng.uniform(0.005, 0.02, filter[0]).tolist()
    x = T(input, INT16, scale=0.001)
    bias = rng.integers(-(2**29), 2**29, filter[0], np.int64)
    bias_scales = [0.001 * scale for scale in scales]
    tensors = [
        x,
        T.constant(codes, INT8, scale=scales, axis=0),
        T.constant(bias, TensorType.INT64, scale=bias_scales, axis=0),
    ]
    made = T(output, INT16, scale=0.07)
    return one_op_model(op, tensors, [made], options, 9 if op is Op.FULLY_CONNECTED else 4), x


def check(content: bytes, x: T) -> Counter[str]:
    """The nodes, once the codes are LiteRT's."""
    codes = x.random(np.random.default_rng(SEED))
    edges = np.array([-32768, 32767, 0, 1, -1], np.int16)
    codes.reshape(-1)[: edges.size] = edges[: codes.size]
    (got,) = answers(content, [codes])
    with without(*RULES):
        (digits,) = answers(content, [codes])
    np.testing.assert_array_equal(got, digits)
    np.testing.assert_array_equal(got, litert(content, [codes])[0])
    assert np.unique(got).size > 1
    return optimised_nodes(content)


@pytest.mark.parametrize(
    ("input", "units"), [((1, 40), 16), ((3, 300), 5), ((2, 3, 40), 16), ((16, 512), 96)]
)
@pytest.mark.parametrize("activation", [ActivationFunctionType.NONE, RELU])
def test_rows(input: tuple[int, ...], units: int, activation: ActivationFunctionType) -> None:
    options = FullyConnectedOptions(
        fused_activation_function=activation, keep_num_dims=len(input) > 2
    )
    output = (*input[:-1], units)
    made = check(*layer(Op.FULLY_CONNECTED, input, (units, input[-1]), output, options))
    assert (made["Gemm"], made["Split"]) == (1, 0)


@pytest.mark.parametrize("input", [(1, 6, 5, 24), (2, 3, 4, 40), (3, 1, 1, 32), (1, 7, 1, 8)])
def test_cells(input: tuple[int, ...]) -> None:
    options = Conv2DOptions(Padding.SAME, 1, 1, fused_activation_function=RELU)
    filter = 12, 1, 1, input[3]
    made = check(*layer(Op.CONV_2D, input, filter, (*input[:3], 12), options))
    assert (made["Conv"], made["Split"]) == (0, 0)


DIGITS: dict[str, tuple[Any, ...]] = {
    "a window": ((1, 6, 5, 8), (4, 3, 3, 8), (1, 6, 5, 4), 1),
    "strides": ((1, 6, 4, 8), (4, 1, 1, 8), (1, 3, 2, 4), 2),
    "many weights, few cells": ((1, 1, 1, 512), (96, 1, 1, 512), (1, 1, 1, 96), 1),
}


@pytest.mark.parametrize("name", DIGITS)
def test_digits_stay(name: str) -> None:
    input, filter, output, stride = DIGITS[name]
    options = Conv2DOptions(Padding.SAME, stride, stride)
    made = check(*layer(Op.CONV_2D, input, filter, output, options))
    assert made["Conv"] == made["Split"] == 1
