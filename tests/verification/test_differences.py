"""How far two arrays are apart, in the unit of their kind."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tflite_ort.comparison.differences import Difference, Tolerance, difference, merged
from tflite_ort.schema.values.view import Quantization

CODES = Quantization(np.float32([0.5]), np.int64([3]))


def test_floats_are_relative_to_the_largest_value() -> None:
    found = difference(np.float32([1, 2.5, -9]), np.float32([1, 2, -10]))
    assert (found.elements, found.equal, found.quanta) == (3, 1, None)
    assert found.largest == 1 and found.relative == pytest.approx(0.1)
    assert found.mean == pytest.approx(0.5) and found.words == "0.1 of the largest value"


def test_nan_and_infinity_are_counted_apart() -> None:
    nan, inf = np.nan, np.inf
    found = difference(np.float32([nan, 1, inf, inf, 2]), np.float32([nan, nan, inf, -inf, 2]))
    assert (found.nan, found.infinite, found.equal) == (1, 1, 3)
    assert not found.within(Tolerance(relative=1e9)) and found.words == "1 NaN, 1 infinities"


def test_codes_are_compared_in_quanta() -> None:
    found = difference(np.int8([3, 5, -128]), np.int8([3, 4, -128]), CODES)
    assert (found.quanta, found.equal, found.largest) == (1, 2, 0.5)
    assert found.within(Tolerance()) and not found.within(Tolerance(quanta=0.5))


def test_real_numbers_are_compared_with_the_codes_that_they_round_to() -> None:
    found = difference(np.float32([0.1, 1.0]), np.int8([3, 4]), CODES)
    assert found.equal == 1 and found.quanta == pytest.approx(1)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_large_integers_are_the_same_or_not(dtype: type) -> None:
    want = np.array([2**60, 2**60, 5], dtype)
    found = difference(want + np.array([0, 1, 0], dtype), want)
    assert (found.equal, found.quanta) == (2, 1) and not found.exact
    assert difference(want, want).exact


def test_a_truth_value_that_differs_is_no_small_difference() -> None:
    found = difference(np.array([True, False]), np.array([False, False]))
    assert (found.equal, found.quanta) == (1, None) and not found.within(Tolerance())
    assert difference(np.array([True]), np.array([True])).exact


@pytest.mark.parametrize("got", [np.float32, np.int8])
def test_codes_of_no_channel_are_the_same(got: type) -> None:
    assert difference(np.zeros((2, 0), got), np.zeros((2, 0), np.int8), CODES).exact


def test_one_channel_that_differs_is_seen_among_many() -> None:
    want = np.zeros((1, 8, 8, 100), np.int8)
    got = want.copy()
    got[..., 7] = 1
    found = difference(got, want, CODES)
    assert found.changed == pytest.approx(0.01) and found.crowded == 1


def test_extended_floats_and_words_and_complex_numbers() -> None:
    half = np.array([1, 2], ml_dtypes.bfloat16)
    assert difference(half, half).exact
    assert difference(np.array(["a", "ä"], object), np.array([b"a", "ä".encode()], object)).exact
    assert difference(np.complex64([1j]), np.complex64([2j])).relative == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("got", "problem"),
    [(np.zeros(2, np.float32), r"shape \(2,\)"), (np.zeros(3, np.int32), "elements of int32")],
)
def test_what_cannot_be_compared_says_why(got: np.ndarray, problem: str) -> None:
    found = difference(got, np.zeros(3, np.float32))
    assert not found.exact and not found.within(Tolerance(relative=1e9))
    with pytest.raises(AssertionError, match=problem):
        raise AssertionError(found.words)


def test_samples_are_merged() -> None:
    both = merged([Difference(10, 10), Difference(30, 0, 4.0, 2.0, 0.5)])
    assert both == Difference(40, 10, 4.0, 1.5, 0.5)
    assert merged([]) is None
