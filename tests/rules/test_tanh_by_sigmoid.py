"""TANH of 8-bit codes as a sigmoid of twice the input: the same codes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.one_op import T, one_op_model
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.trees import answers
from tflite_ort.opmap.rules.rule import without
from tflite_ort.schema import Op, TensorType

RULE = "TANH by a sigmoid"
SEED = 2
TYPES = {TensorType.INT8: 0, TensorType.UINT8: 128}


def model(type: TensorType, scale: float, zero: int, unit: float = 1 / 128) -> bytes:
    x = T((1, 4, 16, 4), type, scale=scale, zero_point=zero)
    return one_op_model(Op.TANH, [x], [T(x.shape, type, scale=unit, zero_point=TYPES[type])])


@pytest.mark.parametrize("type", TYPES, ids=lambda type: str(type.name))
def test_every_code(type: TensorType) -> None:
    print(f"seed {SEED}")
    rng = np.random.default_rng(SEED)
    low = -128 if type is TensorType.INT8 else 0
    codes = np.arange(low, low + 256).astype(type.name.lower()).reshape(1, 4, 16, 4)
    shorter = 0
    for scale in np.exp2(rng.uniform(-12, 0, 40)).astype(np.float32):
        content = model(type, float(scale), int(rng.integers(low, low + 256)))
        with without(RULE):
            (single,) = answers(content, [codes])
        (ours,) = answers(content, [codes])
        np.testing.assert_array_equal(ours, single)
        np.testing.assert_array_equal(ours, litert(content, [codes])[0])
        shorter += optimised_nodes(content)["QLinearSigmoid"]
    assert shorter >= 38, "most units have no code near a half"


def test_a_unit_without_such_a_sigmoid_stays() -> None:
    content = model(TensorType.INT8, 0.05, 3, unit=1 / 100)
    assert not optimised_nodes(content)["QLinearSigmoid"]
