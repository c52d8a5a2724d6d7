"""Every operator: a batch gives what its samples give alone."""

from __future__ import annotations

import numpy as np
import pytest

from tests.batching.single_runs import assert_batched
from tests.one_op import Case
from tests.ops import (
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
CASES = [
    pytest.param(case, id=f"{case.op.name}-{case.name}")
    for module in MODULES
    for case in module.CASES
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
