"""Data movement, resizing and reduction of images that a convolution left channels-first."""

from __future__ import annotations

import pytest

from tests.one_op import Case
from tests.ops import (
    test_gather_scatter,
    test_image_resizing,
    test_reduction,
    test_reshaping,
    test_slicing,
)
from tests.ops.channels_first import check_channels_first
from tflite_ort.opmap.graph import Target

FAMILIES = (
    test_gather_scatter,
    test_image_resizing,
    test_reduction,
    test_reshaping,
    test_slicing,
)
CASES = [
    case
    for family in FAMILIES
    for case in family.CASES
    if case.runs_on == "ort" and any(len(t.shape) >= 3 for t in case.inputs if t is not None)
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    check_channels_first(case)


@pytest.mark.parametrize("case", test_image_resizing.CASES, ids=lambda case: case.name)
def test_resizing_for_the_cpu_provider(case: Case) -> None:
    if case.runs_on == "ort":
        check_channels_first(case, target=Target(ort_cpu=True))


@pytest.mark.parametrize("name", ["pad-4d", "concat-4d", "split-4d", "slice-4d", "gather-4d"])
def test_layout_is_kept(name: str) -> None:
    case = next(case for case in CASES if case.name == f"{name}-UINT8")
    assert check_channels_first(case) == 0
