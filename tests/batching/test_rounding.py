"""Rounding of a sample is the same in a batch: halves are common among means of codes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.batching.single_runs import assert_batched
from tests.one_op import Node, T, graph_model
from tflite_ort.schema import Op, ReducerOptions, TensorType

SAMPLES = 5
TYPES = {
    TensorType.UINT8: (0.1, 7),
    TensorType.INT8: (0.1, -20),
}


@pytest.mark.parametrize("op", [Op.MEAN, Op.SUM])
@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("axes", [(1, 2), (1,), (3,)])
def test_sums_of_codes_do_not_depend_on_the_number_of_rows(
    op: Op, type: TensorType, axes: tuple[int, ...]
) -> None:
    scale, zero_point = TYPES[type]
    shape = (1, 8, 16, 4)
    result = tuple(size for axis, size in enumerate(shape) if axis not in axes)
    tensors = {
        "x": T(shape, type, scale, zero_point),
        "axes": T.constant(np.array(axes, np.int32)),
        "y": T(result, type, scale if op is Op.MEAN else 16 * scale, zero_point),
    }
    model = graph_model(tensors, [Node(op, ["x", "axes"], ["y"], ReducerOptions())], ["y"])
    rng = np.random.default_rng(0)
    samples = [[tensors["x"].random(rng)] for _ in range(SAMPLES)]
    assert_batched(model, samples, providers=None)
