"""BUCKETIZE against LiteRT."""

from __future__ import annotations

import numpy as np
import pytest

from tests.one_op import Case, T, check, ours
from tests.ops.moved import FLOAT32, INT32, INT64
from tests.ops.versions import check_versions
from tests.oracle import litert
from tflite_ort.schema import BridgeError, BucketizeOptions, Op, TensorType

FLOAT64 = TensorType.FLOAT64
Shape = tuple[int, ...]
BOUNDARIES = (-2.0, -0.5, 0.0, 0.0, 1.0, 3.0)


def bucketize(type: TensorType, shape: Shape, boundaries: tuple[float, ...]) -> Case:
    return Case(
        f"BUCKETIZE-{type.name}-{shape}-{len(boundaries)}",
        Op.BUCKETIZE,
        [T(shape, type)],
        [T(shape, INT32)],
        BucketizeOptions(boundaries=boundaries),
    )


CASES = [
    *[
        bucketize(type, shape, BOUNDARIES)
        for type in (FLOAT32, FLOAT64, INT32, INT64)
        for shape in ((2, 5, 4, 3), (7,), (), (0, 3))
    ],
    bucketize(FLOAT32, (7,), (0.5,)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_against_litert(case: Case) -> None:
    check(case)


def test_versions_are_those_of_litert() -> None:
    check_versions(CASES[0])


def test_a_number_that_is_none_is_past_every_boundary() -> None:
    values = np.array([np.nan, np.inf, -np.inf, -2.0, 0.0, -0.0, 3.0], np.float32)
    case = bucketize(FLOAT32, values.shape, BOUNDARIES)
    check(Case("special", case.op, case.inputs, case.outputs, case.options, feeds=[values]))


def test_integers_meet_boundaries_as_float32() -> None:
    values = np.array([2**24 + 1, 2**24 + 2, 2**24], np.int64)
    case = bucketize(INT64, values.shape, (2.0**24, 2.0**24 + 2))
    check(Case("large", case.op, case.inputs, case.outputs, case.options, feeds=[values]))


def test_boundaries_that_do_not_ascend_are_refused() -> None:
    model = bucketize(FLOAT32, (2,), (1, 0)).model()
    feeds = [np.ones(2, np.float32)]
    with pytest.raises(BridgeError, match="ascending"):
        ours(model, feeds)
    with pytest.raises((RuntimeError, ValueError)):
        litert(model, feeds, "reference")
