"""Scales far apart and codes at the ends of their types: the interpreter and numpy give the true
result, cut to the codes. An export gives it, or refuses.

LiteRT is no reference here: it ends the process or shifts all bits out.
"""

from __future__ import annotations

from zlib import crc32

import numpy as np
import pytest

from tests.across.far_scales import FUNCTIONS, INT16, LAYERS, Drawn, Function, drawn
from tests.one_op import Array, ours
from tests.ops.operands import exported
from tflite_ort import BridgeError
from tflite_ort.schema import Op, TensorType

pytestmark = pytest.mark.usefixtures("unmeasured")

CASES = [(function, type) for function in FUNCTIONS for type in function.types]
# Whose results wrap at 32 bits in TFLite, and in the numpy kernels.
WRAPPING = {(function.op, INT16) for function in LAYERS} | {(Op.BATCH_MATMUL, INT16)}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("function", "type"), CASES, ids=[f"{function.op.name}-{type.name}" for function, type in CASES]
)
def test_far_scales(function: Function, type: TensorType, request: pytest.FixtureRequest) -> None:
    rng = np.random.default_rng(crc32(f"{function.op.name} {type.name}".encode()))
    for _ in range(300 if request.config.getoption("--thorough") else 6):
        with np.errstate(all="ignore"):
            case = drawn(function, type, rng)
        assert case.distance(ours(case.model, case.feeds)[0][0]) <= function.quanta, case.name
        by_numpy = ours(case.model, case.feeds, [])[0][0]
        if (function.op, type) in WRAPPING:
            by_numpy = np.where(np.abs(case.want) < 2**31, by_numpy, case.true_codes())
        assert case.distance(by_numpy) <= function.quanta, f"numpy: {case.name}"
        for got in _exported(case):
            assert case.distance(got) <= function.quanta, f"exported: {case.name}"


def _exported(case: Drawn) -> list[Array]:
    """The results of the exported file; none where the export refuses."""
    try:
        return exported(case.model, case.feeds)
    except BridgeError:
        return []
