"""SUB of 8-bit codes as QLinearAdd: the codes of LiteRT, halves among them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.one_op import T, one_op_model, ours
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tflite_ort.schema import ActivationFunctionType, AddOptions, Op, SubOptions, TensorType

PAIRS = np.meshgrid(np.arange(256), np.arange(256), indexing="ij")
SCALES = {
    "unlike": (0.1, 0.0271, 0.0643),
    "equal": (0.1, 0.1, 0.1),
    "finer result": (0.25, 0.5, 0.125),
    "halves": (0.1, 0.1, 0.2),
    "quarters": (0.5, 0.125, 0.5),
    "far apart": (1e9, 0.1, 0.1),
}
WITH_SUB = ("halves", "quarters", "far apart")


def differences(
    scales: Sequence[float],
    zeros: Sequence[int],
    type: TensorType = TensorType.INT8,
    activation: ActivationFunctionType = ActivationFunctionType.NONE,
) -> bytes:
    """Of two images of 256 x 256 codes."""
    a, b, made = (
        T((256, 256), type, scale=scale, zero_point=zero)
        for scale, zero in zip(scales, zeros, strict=True)
    )
    return one_op_model(Op.SUB, [a, b], [made], SubOptions(fused_activation_function=activation))


@pytest.mark.parametrize("name", SCALES)
def test_which_are_one_node(name: str) -> None:
    nodes = optimised_nodes(differences(SCALES[name], (3, -7, 20)))
    assert nodes["QLinearAdd"] == (name not in WITH_SUB)
    assert nodes["Sub"] == (name in WITH_SUB)


@pytest.mark.parametrize("type", [TensorType.INT8, TensorType.UINT8])
@pytest.mark.parametrize("activation", [ActivationFunctionType.NONE, ActivationFunctionType.RELU])
@pytest.mark.parametrize("name", [name for name in SCALES if name != "far apart"])
def test_every_pair_of_codes(
    name: str, type: TensorType, activation: ActivationFunctionType
) -> None:
    """LiteRT's multipliers have 21 bits: it rounds a few pairs next to a half otherwise."""
    low = -128 * (type is TensorType.INT8)
    zeros = [128 + low + zero for zero in (3, -7, 20)]
    model = differences(SCALES[name], zeros, type, activation)
    feeds = [(codes + low).astype(type.name.lower()) for codes in PAIRS]
    (got,), _ = ours(model, feeds)
    off = np.abs(got.astype(int) - litert(model, feeds)[0])
    assert off.max() <= 1
    assert np.count_nonzero(off) <= 8


def test_one_operand_is_a_constant() -> None:
    image = T((2, 5, 4, 3), TensorType.INT8, scale=0.1, zero_point=3)
    mean = T.constant(np.int8([5, -90, 77]), scale=0.0271, zero_point=-7)
    made = T((2, 5, 4, 3), TensorType.INT8, scale=0.0643, zero_point=20)
    codes = image.random(np.random.default_rng(0))
    for operands in ([image, mean], [mean, image]):
        model = one_op_model(Op.SUB, operands, [made], SubOptions())
        assert optimised_nodes(model)["QLinearAdd"] == 1
        np.testing.assert_array_equal(ours(model, [codes])[0][0], litert(model, [codes])[0])


@pytest.mark.parametrize("op", [Op.ADD, Op.SUB])
@pytest.mark.parametrize("ratio", [2.0**10, 2.0**17, 2.0**20])
def test_scales_far_apart_are_within_a_code(op: Op, ratio: float) -> None:
    """QLinearAdd adds what stands for the zero points in float32, and was off by 20 codes."""
    scales, zeros = (0.0081 * ratio, 0.0073, 0.0078), (127, 3, -9)
    given = [
        T((256, 256), TensorType.INT8, scale=scale, zero_point=zero)
        for scale, zero in zip(scales, zeros, strict=True)
    ]
    options = AddOptions() if op is Op.ADD else SubOptions()
    codes = [(each - 128).astype(np.int8) for each in PAIRS]
    ((got,), runners) = ours(one_op_model(op, given[:2], given[2:], options), codes)
    assert runners == {"ort"}
    first, second, unit = (float(np.float32(scale)) for scale in scales)
    a, b = (PAIRS[0] - 128.0 - zeros[0]) * first, (PAIRS[1] - 128.0 - zeros[1]) * second
    want = np.clip((a + b if op is Op.ADD else a - b) / unit + zeros[2], -128, 127)
    assert np.abs(got - want).max() < 0.6
