"""FAKE_QUANT against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.one_op import Case, T, check, one_op_model, ours
from tests.ops.versions import check_versions
from tests.oracle import litert
from tflite_ort.schema import BridgeError, FakeQuantOptions, Op

Shape = tuple[int, ...]


def fake_quant(shape: Shape, low: float, high: float, bits: int) -> Case:
    return Case(
        f"FAKE_QUANT-{shape}-{low}-{high}-{bits}",
        Op.FAKE_QUANT,
        [T(shape)],
        [T(shape)],
        FakeQuantOptions(min=low, max=high, num_bits=bits),
        low=-9,
        high=9,
    )


CASES = [
    *[
        fake_quant(shape, low, high, bits)
        for shape in ((2, 5, 4, 3), (7,), ())
        for low, high, bits in ((-4.0, 4.0, 8), (0.0, 6.0, 8), (-3.0, 0.1, 4), (-1.0, 1.0, 16))
    ],
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_against_litert(case: Case) -> None:
    check(case)


def test_versions_are_those_of_litert() -> None:
    check_versions(CASES[0])


@given(
    low=st.floats(-9, 0),
    high=st.floats(0.1, 9),
    bits=st.integers(2, 16),
    seed=st.integers(0, 2**31),
)
def test_any_fake_range(low: float, high: float, bits: int, seed: int) -> None:
    case = fake_quant((40,), float(np.float32(low)), float(np.float32(high)), bits)
    check(case, seed)


def test_fake_quant_rounds_halves_up() -> None:
    """And the largest float below a half down, which a sum with 1/2 would not."""
    below = np.nextafter(np.float32(0.5), np.float32(0))
    values = np.array([np.nan, np.inf, -np.inf, 0.5, below, 1.5, 2.5, 254.5, 255.5], np.float32)
    case = fake_quant(values.shape, 0.0, 255.0, 8)
    check(Case("halves", case.op, case.inputs, case.outputs, case.options, feeds=[values]))


def test_a_narrow_range_is_refused() -> None:
    options = FakeQuantOptions(min=-1, max=1, num_bits=8, narrow_range=True)
    model = one_op_model(Op.FAKE_QUANT, [T((2,))], [T((2,))], options)
    feeds = [np.ones(2, np.float32)]
    with pytest.raises(BridgeError, match="narrow range True"):
        ours(model, feeds)
    with pytest.raises((RuntimeError, ValueError)):
        litert(model, feeds, "reference")


def test_a_range_without_numbers_is_refused() -> None:
    """LiteRT divides by 0."""
    with pytest.raises(BridgeError, match="range from"):
        ours(fake_quant((2,), 1, 1, 8).model(), [np.ones(2, np.float32)])
