"""Scales far apart and codes at the ends of their types: the interpreter and numpy give the true
result, cut to the codes. An export gives it, or refuses.

LiteRT is no reference here: it ends the process or shifts all bits out.
"""

from __future__ import annotations

from zlib import crc32

import numpy as np
import pytest

from tests.across.far_scales import FUNCTIONS, INT16, LAYERS, Drawn, drawn, named
from tests.one_op import Array, ours
from tests.ops.operands import exported
from tflite_ort import BridgeError
from tflite_ort.schema import Op, TensorType

pytestmark = pytest.mark.usefixtures("unmeasured")

CASES = {
    f"{name}-{type.name}": (function, type)
    for name, function in zip(named(FUNCTIONS), FUNCTIONS, strict=True)
    for type in function.types
}
# Whose results wrap at 32 bits in TFLite, and in the numpy kernels.
WRAPPING = {(function.op, INT16) for function in LAYERS} | {(Op.BATCH_MATMUL, INT16)}
# Which an export computes in float32: ratios above 1 make quanta of its last bits.
IN_FLOATS = WRAPPING | {(Op.TRANSPOSE_CONV, TensorType.INT8)}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", CASES)
def test_far_scales(name: str, request: pytest.FixtureRequest) -> None:
    function, type = CASES[name]
    rng = np.random.default_rng(crc32(name.encode()))
    for _ in range(300 if request.config.getoption("--thorough") else 6):
        with np.errstate(all="ignore"):
            case = drawn(function, type, rng)
        for providers in (None, []):
            (got,), _ = ours(case.model, case.feeds, providers)
            if (function.op, type) in WRAPPING:
                got = np.where(np.abs(case.want) < 2**31, got, case.true_codes())
            assert case.distance(got) <= function.quanta, f"{providers}: {case.name}"
        for got in () if (function.op, type) in IN_FLOATS else _exported(case):
            assert case.distance(got) <= function.quanta, f"exported: {case.name}"


def _exported(case: Drawn) -> list[Array]:
    """The results of the exported file; none where the export refuses."""
    try:
        return exported(case.model, case.feeds)
    except BridgeError:
        return []
