"""Where a region's pixels are read: against OpenCV's definition, in exact fractions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tflite_ort.decode import warp
from tflite_ort.decode.warp import places

Array = npt.NDArray[Any]


def region(*numbers: float) -> Array:
    return np.array(numbers, np.float32)


def test_a_whole_picture() -> None:
    at = places(region(0.5, 0.5, 1, 1, 0), (512, 384), (128, 96), False)
    rows, columns = np.mgrid[:96, :128]
    np.testing.assert_array_equal(at, [128 * columns.ravel(), 128 * rows.ravel()])


def test_a_letterbox_and_a_quarter_turn() -> None:
    at = places(region(0.5, 0.5, 1, 1, 0), (200, 100), (50, 50), True).reshape(2, 50, 50)
    assert at[:, 0, 0].tolist() == [0, -50 * 32]
    assert at[:, 10, 20].tolist() == [20 * 4 * 32, (10 * 4 - 50) * 32]
    turned = places(region(0.5, 0.5, 1, 1, np.pi / 2), (100, 100), (50, 50), False)
    x, y = turned.reshape(2, 50, 50)
    assert (x[0, 0], y[0, 0]) == (3200, 0), "the upper left corner is the picture's upper right one"
    assert (x[0, 49], y[0, 49]) == (3200, 49 * 2 * 32)


def exact(corners: list[tuple[float, float]], side: int, column: int, row: int) -> list[Fraction]:
    """The place of an element, by the projective map of a square to four corners, in fractions."""
    (x3, y3), (x0, y0), (x1, y1), (x2, y2) = ((Fraction(x), Fraction(y)) for x, y in corners)
    across, down = (x1 - x2, y1 - y2), (x3 - x2, y3 - y2)
    skew = (x0 - x1 + x2 - x3, y0 - y1 + y2 - y3)
    area = across[0] * down[1] - down[0] * across[1]
    g = (skew[0] * down[1] - down[0] * skew[1]) / area
    h = (across[0] * skew[1] - skew[0] * across[1]) / area
    u, v = Fraction(column, side), Fraction(row, side)
    divisor = g * u + h * v + 1
    x = ((x1 - x0 + g * x1) * u + (x3 - x0 + h * x3) * v + x0) / divisor
    y = ((y1 - y0 + g * y1) * u + (y3 - y0 + h * y3) * v + y0) / divisor
    return [32 * x, 32 * y]


@pytest.mark.parametrize("turn", [0.0, 0.3, -2.0, 3.1415927])
@pytest.mark.parametrize("side", [96, 100, 224])
def test_places_are_the_nearest_32nds(turn: float, side: int) -> None:
    roi, picture = region(0.47, 0.55, 0.31, 0.29, turn), (641, 479)
    at = places(roi, picture, (side, side), False).reshape(2, side, side)
    corners = warp._corners(roi, picture, (side, side), False)
    for row, column in ((0, 0), (1, 70), (side - 1, side - 1), (side // 2, 3), (7, side - 2)):
        for found, wanted in zip(
            at[:, row, column], exact(corners, side, column, row), strict=True
        ):
            assert abs(Fraction(float(found)) - wanted) <= Fraction(1, 2) + Fraction(1, 10**6)


def test_both_ways_agree() -> None:
    """That by blocks and that by products, where no place lies in the middle between two."""
    rng = np.random.default_rng(22)
    for _ in range(20):
        roi = region(*rng.uniform(0.3, 0.7, 2), *rng.uniform(0.2, 1, 2), rng.uniform(0.1, 1.4))
        size = int(rng.integers(50, 1300)), int(rng.integers(50, 1300))
        corners = warp._corners(roi, size, (96, 96), False)
        matrix = warp._inverse(warp._perspective(corners, 96.0, 96.0))
        one = warp._in_blocks(matrix, 96, 96)
        other = warp._by_products(warp._to_picture(corners, 96, 96), 96, 96)
        np.testing.assert_allclose(other, one, rtol=0, atol=1e-6)


def test_equations_are_solved_with_the_largest_pivot_first() -> None:
    rng = np.random.default_rng(7)
    matrix, wanted = rng.normal(size=(8, 8)), rng.normal(size=8)
    rows = np.column_stack([matrix, matrix @ wanted]).tolist()
    np.testing.assert_allclose(warp._solved(rows), wanted, rtol=1e-9)


@pytest.mark.parametrize(
    "roi", [(0.5, 0.5, 1e-30, 1e-30, 0.2), (0.5, 0.5, 1e30, 1e30, 0.2), (1e38, 0.5, 0.1, 0.1, 0)]
)
def test_a_region_that_is_none(roi: tuple[float, ...]) -> None:
    assert not places(region(*roi), (640, 480), (64, 64), True).any()
