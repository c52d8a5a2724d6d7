"""Results of codes are LiteRT's, those that are a function of one for every code: `every_code`."""

from __future__ import annotations

import pytest

from tests.across.every_code import Count, Swept, counted, swept
from tests.across.far_scales import INT16
from tflite_ort.schema import Op

pytestmark = pytest.mark.usefixtures("unmeasured")

# Of which ONNX Runtime rounds some codes otherwise, next to halves, and the most of a thousand that
# it does: BATCH_MATMUL rounds once, and LiteRT twice. DIV is left out, whose shifts wrap in LiteRT.
PER_MILLE = {Op.ADD: 1, Op.MUL: 1, Op.BATCH_MATMUL: 5}
# LiteRT's 16-bit products wrap at 32 bits.
LEFT_OUT = {(Op.MUL, INT16)}
CASES = {
    case.name: case
    for case in swept()
    if case.function.op is not Op.DIV and (case.function.op, case.source) not in LEFT_OUT
}


@pytest.mark.parametrize("name", CASES)
def test_every_code(name: str, request: pytest.FixtureRequest) -> None:
    case = CASES[name]
    draws = 100 if request.config.getoption("--thorough") else 6
    count = counted(case, draws if case.source is not INT16 else max(draws // 8, 1))
    print(f"{name}: {count}")
    assert count.off.get("numpy", 0) == 0
    _check_share(case, count)


def _check_share(case: Swept, count: Count) -> None:
    allowed = PER_MILLE.get(case.function.op, 0) * count.all / 1000
    assert count.off.get("interpreter", 0) <= allowed, count.example
    assert count.off.get("export", 0) <= allowed, count.example
