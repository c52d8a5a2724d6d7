"""A bias of any shape is a vector: TFLite counts its elements."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.one_op import Case, T, check
from tflite_ort.schema import (
    Conv2DOptions,
    FullyConnectedOptions,
    Op,
    Padding,
    TensorType,
)

# As many units as rows: a column would fit beside the sums too.
UNITS, DEPTH = 4, 3
SHAPES = [(UNITS, 1), (1, UNITS), (1, 1, 1, UNITS), (UNITS, 1, 1), (2, 2)]
LAYERS = {
    "fully connected": (
        Op.FULLY_CONNECTED,
        (UNITS, DEPTH),
        (UNITS, DEPTH),
        (UNITS, UNITS),
        FullyConnectedOptions(),
        4,
    ),
    "convolution": (
        Op.CONV_2D,
        (1, 4, 4, DEPTH),
        (UNITS, 2, 2, DEPTH),
        (1, 4, 4, UNITS),
        Conv2DOptions(padding=Padding.SAME, stride_w=1, stride_h=1),
        3,
    ),
}


def cases() -> Iterator[Case]:
    rng = np.random.default_rng(5)
    for name, (op, x, filter, y, options, version) in LAYERS.items():
        weights = rng.uniform(-1, 1, filter).astype(np.float32)
        codes = T.constant(rng.integers(-127, 128, filter).astype(np.int8), scale=0.01)
        for shape in SHAPES:
            bias = rng.uniform(-9, 9, shape).astype(np.float32)
            steps = T.constant(rng.integers(-9000, 9000, shape).astype(np.int32), scale=0.001)
            said, floats = f"{name}, {shape}", T.constant(weights)
            yield Case(said, op, [T(x), floats, T.constant(bias)], [T(y)], options)
            yield Case(f"{said}, computed", op, [T(x), floats, T(shape)], [T(y)], options)
            yield Case(
                f"{said}, codes",
                op,
                [T(x, TensorType.INT8, scale=0.1, zero_point=3), codes, steps],
                [T(y, TensorType.INT8, scale=0.2, zero_point=-5)],
                options,
                version,
            )


CASES = list(cases())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_bias_of_any_shape(case: Case) -> None:
    check(case)
