"""Operators over shapes that depend on data: LiteRT, ONNX Runtime and numpy agree.

Most cases are those of the operators' own tests, with the sizes hidden behind a computed RESHAPE,
or with their lists (axes, shapes, paddings) computed.
"""

from __future__ import annotations

import pytest

from tests.across.veiled import check_model, emptied, veiled, with_computed_lists
from tests.one_op import Array, Case, assert_close, ours
from tests.ops import (
    test_activation,
    test_activation_gelu_log_softmax,
    test_comparison,
    test_comparison_order,
    test_convolution,
    test_elementwise,
    test_elementwise_bucketize,
    test_elementwise_logic,
    test_elementwise_plain_numbers,
    test_gather_scatter,
    test_gather_scatter_scattering,
    test_image_resizing,
    test_linear,
    test_normalization,
    test_pooling,
    test_quantization,
    test_quantization_fake_quant,
    test_reduction,
    test_reduction_products,
    test_reshaping,
    test_reshaping_creation,
    test_slicing,
    test_tiling,
)
from tests.ops.versions import one_per_operator
from tflite_ort.providers.session import ORT_RELEASE
from tflite_ort.schema import BridgeError, Op

FAMILIES = (
    test_activation,
    test_comparison,
    test_reshaping_creation,
    test_elementwise_bucketize,
    test_quantization_fake_quant,
    test_elementwise,
    test_gather_scatter,
    test_activation_gelu_log_softmax,
    test_image_resizing,
    test_comparison_order,
    test_elementwise_logic,
    test_normalization,
    test_elementwise_plain_numbers,
    test_reduction_products,
    test_quantization,
    test_reduction,
    test_reshaping,
    test_gather_scatter_scattering,
    test_slicing,
    test_tiling,
)
CASES = one_per_operator(
    case
    for family in FAMILIES
    for case in family.CASES
    if case.runs_on == "ort" and all(t is None or 0 not in t.shape for t in case.inputs)
)

# MatMul of ONNX Runtime before 1.32 does not stretch one matrix to none.
EMPTY_IS_REFUSED = {
    f"batch_matmul-{types}-(3, 1, 5, 16)-(2, 16, 7)-adjoint xy-constant0"
    for types in ("float", "int8")
}
# What it drops is known only at run time.
RANK_UNKNOWN = {Op.SQUEEZE}


def runner(op: Op, in_numpy: set[Op]) -> str:
    return "numpy" if op in in_numpy else "ort"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.op.name)
def test_no_size_is_known(case: Case) -> None:
    model, feeds = veiled(case)
    where = check_model(case, model, feeds)
    assert where == runner(case.op, RANK_UNKNOWN)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.op.name)
def test_the_batch_is_not_known(case: Case) -> None:
    model, feeds = veiled(case, open=(0,))
    assert check_model(case, model, feeds) == runner(case.op, RANK_UNKNOWN)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.op.name)
def test_lists_are_computed(case: Case) -> None:
    model, feeds = with_computed_lists(case)
    assert check_model(case, model, feeds) == "ort"


LAYERS = [
    *[
        test_convolution.conv(scheme, multiplier=multiplier, **test_convolution.ROWS[row])
        for scheme in ("float", "uint8", "int8_channels", "int16")
        for multiplier in (0, 2)
        for row in ("same", "valid strided", "even kernel", "few channels")
    ],
    *[
        test_convolution.transposed(scheme, **test_convolution.TRANSPOSED_ROWS[row])
        for scheme in ("float", "int8_channels")
        for row in ("same", "valid", "same, odd size")
    ],
    *[
        test_pooling.pool(op, type, **test_pooling.ROWS[row])
        for op, type in test_pooling.TYPED
        for row in ("same", "wide", "valid")
    ],
    *[
        test_linear.dense(scheme, **test_linear.ROWS[row])
        for scheme in ("float", "int8")
        for row in ("rows", "image", "keep dimensions")
    ],
    *[
        test_linear.product(types, **test_linear.PRODUCT_ROWS[row])
        for types in ("float", "int8")
        for row in ("matrices", "both transposed, broadcast", "constant")
    ],
]


@pytest.mark.parametrize("case", LAYERS, ids=lambda case: case.name)
def test_layers_of_an_unknown_batch(case: Case) -> None:
    model, feeds = veiled(case, open=(0,))
    assert check_model(case, model, feeds) == "ort"


@pytest.mark.parametrize("case", LAYERS, ids=lambda case: case.name)
def test_layers_over_images_of_unknown_size(case: Case) -> None:
    model, feeds = veiled(case, open=(0, 1, 2))
    assert check_model(case, model, feeds) == "ort"


@pytest.mark.parametrize("case", [*CASES, *LAYERS], ids=lambda case: case.name)
def test_an_empty_batch(case: Case) -> None:
    """LiteRT has no arrays of such results: ONNX Runtime and numpy agree, or both refuse it."""
    model, feeds = veiled(case, open=(0,))
    results = [outcome(model, emptied(model, feeds), providers) for providers in (None, [])]
    if case.name in EMPTY_IS_REFUSED and ORT_RELEASE < (1, 32):
        assert results[0] is None
        return
    by_ort, by_numpy = results
    assert (by_ort is None) is (by_numpy is None)
    for got, want in zip(by_ort or (), by_numpy or (), strict=True):
        assert_close(got, want, 0, 1e-5, case.name)


def outcome(model: bytes, feeds: list[Array], providers: list[str] | None) -> list[Array] | None:
    try:
        return ours(model, feeds, providers)[0]
    except BridgeError:
        return None
