"""Every operator: a batch gives what its samples give alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.batching.single_runs import assert_batched
from tests.one_op import Case
from tests.ops import (
    test_activation,
    test_activation_gelu_log_softmax,
    test_comparison,
    test_convolution,
    test_convolution_3d,
    test_elementwise,
    test_elementwise_bucketize,
    test_elementwise_logic,
    test_gather_scatter,
    test_gather_scatter_scattering,
    test_image_resizing,
    test_linear,
    test_lookup,
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
from tflite_ort import Unbatchable

MODULES = (
    test_activation,
    test_activation_gelu_log_softmax,
    test_comparison,
    test_elementwise,
    test_elementwise_bucketize,
    test_elementwise_logic,
    test_gather_scatter,
    test_gather_scatter_scattering,
    test_image_resizing,
    test_lookup,
    test_normalization,
    test_quantization,
    test_quantization_fake_quant,
    test_reduction,
    test_reduction_products,
    test_reshaping,
    test_reshaping_creation,
    test_slicing,
    test_tiling,
)
SCHEMES = ("float", "int8_channels")


def windows() -> Iterator[Case]:
    """Convolutions and pools, of one image and of two."""
    for scheme in SCHEMES:
        for row in test_convolution.ROWS.values():
            for images in (1, 2):
                given = {**row, "image": (images, *row.get("image", (2, 9, 11, 6))[1:])}
                yield test_convolution.conv(scheme, **given)
                yield test_convolution.conv(scheme, multiplier=2, **given)
        for row in test_convolution.TRANSPOSED_ROWS.values():
            yield test_convolution.transposed(scheme, **row)
    for op, type in test_pooling.TYPED:
        for row in test_pooling.ROWS.values():
            yield test_pooling.pool(op, type, **row)
    for row in test_convolution_3d.ROWS.values():
        for is_transposed in (False, True):
            yield test_convolution_3d.conv_3d(**row, transposed=is_transposed)


def products() -> Iterator[Case]:
    """FULLY_CONNECTED and BATCH_MATMUL, of one row and of several."""
    for scheme in SCHEMES:
        for row in (*test_linear.ROWS.values(), {"input": (1, 64)}, {"input": (1, 3, 2, 32)}):
            yield test_linear.dense(scheme, **row)
    single = {"x": (1, 5, 16), "y": (1, 16, 7)}
    for types in test_linear.PRODUCTS:
        if types != "hybrid":  # its rounding is another for one row than for many
            for row in (*test_linear.PRODUCT_ROWS.values(), single):
                yield test_linear.product(types, **row)


LISTED = [case for module in MODULES for case in module.CASES]
CASES = [
    pytest.param(case, id=f"{case.op.name}-{case.name}")
    for case in (*LISTED, *windows(), *products())
]


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize("case", CASES)
def test_a_batch_of_an_operator(case: Case) -> None:
    rng = np.random.default_rng(len(case.name))
    samples = [case.arrays(rng) for _ in range(3)]
    if not samples[0]:
        pytest.skip("no input")
    try:
        assert_batched(case.model(), samples, rtol=case.rtol)
    except Unbatchable as error:
        print("REFUSED", error)
        raise
