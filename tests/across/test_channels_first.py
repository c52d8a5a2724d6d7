"""Images that a convolution left channels-first: moved, resized, reduced, computed with."""

from __future__ import annotations

import pytest

from tests.across.channels_first import check_channels_first
from tests.one_op import Case
from tests.ops import (
    test_activation_gelu_log_softmax,
    test_comparison_order,
    test_elementwise_bucketize,
    test_elementwise_logic,
    test_elementwise_plain_numbers,
    test_gather_scatter,
    test_image_resizing,
    test_normalization,
    test_quantization_fake_quant,
    test_reduction,
    test_reduction_products,
    test_reshaping,
    test_reshaping_creation,
    test_slicing,
)
from tests.ops.versions import one_per_operator
from tflite_ort.opmap.graph import Target
from tflite_ort.schema import Op

FAMILIES = (
    test_reshaping_creation,
    test_elementwise_bucketize,
    test_quantization_fake_quant,
    test_gather_scatter,
    test_activation_gelu_log_softmax,
    test_image_resizing,
    test_comparison_order,
    test_elementwise_logic,
    test_normalization,
    test_elementwise_plain_numbers,
    test_reduction_products,
    test_reduction,
    test_reshaping,
    test_slicing,
)
CASES = [
    case
    for family in FAMILIES
    for case in family.CASES
    if case.runs_on == "ort"
    and any(len(t.shape) >= 3 for t in case.inputs if t is not None)
    and all(0 not in t.shape for t in case.outputs)
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case) -> None:
    check_channels_first(case)


@pytest.mark.parametrize("case", test_image_resizing.CASES, ids=lambda case: case.name)
def test_resizing_for_the_cpu_provider(case: Case) -> None:
    if case.runs_on == "ort":
        check_channels_first(case, target=Target(cpu_kernels=True))


@pytest.mark.parametrize("name", ["pad-4d", "concat-4d", "split-4d", "slice-4d", "gather-4d"])
def test_layout_is_kept(name: str) -> None:
    case = next(case for case in CASES if case.name == f"{name}-UINT8")
    assert check_channels_first(case) == 0


ALL_KEEP = (
    test_comparison_order,
    test_elementwise_bucketize,
    test_elementwise_logic,
    test_elementwise_plain_numbers,
    test_quantization_fake_quant,
)
KEEPING = {row.op for family in ALL_KEEP for row in family.CASES} | {
    Op.CUMSUM,
    Op.GELU,
    Op.L2_NORMALIZATION,
    Op.LOCAL_RESPONSE_NORMALIZATION,
}
KEPT = [
    case
    for case in one_per_operator(case for case in CASES if len(case.outputs[0].shape) == 4)
    if case.op in KEEPING
    and all(t is None or t.is_constant or len(t.shape) == 4 for t in case.inputs)
]


@pytest.mark.parametrize("case", KEPT, ids=lambda case: case.name)
def test_elements_keep_their_layout(case: Case) -> None:
    assert check_channels_first(case) == 0
