"""Random values for a model's inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.schema import Budgets

Array = npt.NDArray[Any]
# What get_input_details says of one tensor.
Details = Mapping[str, Any]

# Integers that are not quantized are mostly indices or token numbers: small ones fit most tables.
_SMALL_INTEGERS = 10


def random_input(
    details: Details,
    generator: np.random.Generator,
    real: tuple[float, float] = (-1.0, 1.0),
    below: int | None = None,
) -> Array:
    """Values for one input: floats in the range `real`, quantized ones and bytes over their whole
    range, other integers from 0 to 9; all integers less than `below`."""
    dtype, shape = np.dtype(details["dtype"]), tuple(int(size) for size in details["shape"])
    if dtype.kind in "OS":
        words = np.array([b"word%d" % number for number in range(_SMALL_INTEGERS)], object)
        return np.asarray(words[generator.integers(0, _SMALL_INTEGERS, shape)], object)
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        low, high = _drawn_range(dtype, details, below)
        return generator.integers(low, high, shape, endpoint=True).astype(dtype)
    values = generator.uniform(*real, shape)
    if dtype.kind == "c":
        return (values + 1j * generator.uniform(*real, shape)).astype(dtype)
    return values.astype(dtype)


def random_inputs(
    details: Sequence[Details],
    seed: int,
    ranges: Mapping[int, tuple[float, float]] | None = None,
    limits: Mapping[int, int] | None = None,
    budgets: Budgets | None = None,
) -> dict[int, Array]:
    """`random_input` of each, by tensor index; one seed always gives the same values.

    Args:
        ranges: of float inputs, by tensor index; [-1, 1) where there is none.
        limits: what integers stay below, by tensor index, such as `index_limits` tells.
        budgets: of the model; default `Budgets`.

    Raises:
        BudgetExceeded: all inputs together take more than ``tensor_bytes``. A file of a few bytes
            may declare any size.
    """
    sizes = (prod(map(int, each["shape"])) * np.dtype(each["dtype"]).itemsize for each in details)
    (budgets or Budgets()).check("tensor_bytes", sum(sizes), "a draw of random inputs")
    generator, ranges, limits = np.random.default_rng(seed), ranges or {}, limits or {}
    return {
        index: random_input(
            each,
            generator,
            ranges.get(index, (-1.0, 1.0)),
            limits.get(index),
        )
        for index, each in ((int(each["index"]), each) for each in details)
    }


def _drawn_range(dtype: np.dtype[Any], details: Details, below: int | None) -> tuple[int, int]:
    """The least and the greatest value of integers. Codes of fewer bits than `dtype` reach as far
    below 0 as above; numbers of rows do not."""
    quantized = np.asarray(details["quantization_parameters"]["scales"]).size > 0
    limits = np.iinfo(dtype)
    if dtype.itemsize == 1 or quantized:
        if below is None:
            return int(limits.min), int(limits.max)
        low = -below if quantized else 0
        return max(low, int(limits.min)), min(below - 1, int(limits.max))
    return 0, min(below or _SMALL_INTEGERS, _SMALL_INTEGERS) - 1
