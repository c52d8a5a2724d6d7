"""MEAN and SUM of 16-bit codes as products with equal weights: within a quantum of LiteRT's."""

from __future__ import annotations

import numpy as np
import pytest

from tests.npu_graphs import for_npu
from tests.one_op import Node, T, graph_model, ours
from tests.oracle import litert
from tflite_ort.schema import Op, ReducerOptions, TensorType

SEED = 5


@pytest.mark.parametrize("op", [Op.MEAN, Op.SUM])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [((4, 32), (1,)), ((2, 5, 7, 3), (1, 2)), ((3, 4), (0, 1)), ((2, 3, 9), (-2,))],
)
def test_sums_are_within_a_quantum(
    monkeypatch: pytest.MonkeyPatch,
    op: Op,
    keep: bool,
    shape: tuple[int, ...],
    axes: tuple[int, ...],
) -> None:
    result = np.empty(shape, bool).any(axis=axes, keepdims=keep)
    terms = np.empty(shape).size // result.size
    scale = 1e-4 if op is Op.MEAN else 1e-4 * terms
    tensors = {
        "x": T(shape, TensorType.INT16, scale=1e-4),
        "axes": T.constant(np.int32(axes)),
        "y": T(result.shape, TensorType.INT16, scale=scale / 3),
    }
    model = graph_model(tensors, [Node(op, ["x", "axes"], ["y"], ReducerOptions(keep))], ["y"])
    print(f"seed {SEED}")
    rng = np.random.default_rng(SEED)
    codes = rng.integers(-32768, 32767, shape, endpoint=True).astype(np.int16)
    codes[0] = 32767  # what a sum of 16 bits does not hold
    (wanted,) = litert(model, [codes])
    for_npu(monkeypatch)
    (got,), places = ours(model, [codes])
    assert places == {"ort"}
    assert np.abs(got.astype(np.int32) - wanted.astype(np.int32)).max() <= 1
    assert np.abs(wanted.astype(np.int32)).max() > 100
