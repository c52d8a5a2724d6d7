"""Codes with a scale for each channel are moved and compared as they stand, in exports too."""

from __future__ import annotations

import numpy as np
import pytest

from tests.one_op import T, one_op_model, ours
from tests.ops.operands import exported
from tests.oracle import litert
from tests.samples import SAMPLES, Tensor
from tflite_ort.schema import Op, TensorType
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.versioning.known import known_versions

MOVED = (
    "AVERAGE_POOL_2D BATCH_TO_SPACE_ND BROADCAST_TO CONCATENATION DEPTH_TO_SPACE "
    "DYNAMIC_UPDATE_SLICE GATHER GATHER_ND MAXIMUM MAX_POOL_2D MINIMUM MIRROR_PAD NEG PACK PAD "
    "RESIZE_NEAREST_NEIGHBOR REVERSE_V2 SELECT SELECT_V2 SLICE SPACE_TO_BATCH_ND SPACE_TO_DEPTH "
    "SPARSE_TO_DENSE SPLIT SPLIT_V STRIDED_SLICE TILE TOPK_V2 TRANSPOSE UNPACK"
)


# LiteRT has no kernel that negates uint8.
CASES = [
    (Op[name], type)
    for name in MOVED.split()
    for type in (TensorType.INT8, TensorType.UINT8)
    if (name, type) != ("NEG", TensorType.UINT8)
]


def _scaled(tensor: Tensor, type: TensorType, zero: int) -> T:
    if isinstance(tensor, T):
        return tensor
    data = None
    if tensor.values is not None:
        data = np.full(tensor.shape, tensor.values).astype(NUMPY_DTYPE[type])
    *_, channels = (1, *tensor.shape)
    if channels == 1:
        return T(tensor.shape, type, 0.05, zero, data=data)
    scales, axis = np.linspace(0.05, 0.2, channels).tolist(), len(tensor.shape) - 1
    zeros = [zero + channel for channel in range(channels)] if zero else [0] * channels
    return T(tensor.shape, type, scales, zeros, axis, data)


@pytest.mark.parametrize("zero", [0, 5])
@pytest.mark.parametrize(("op", "type"), CASES, ids=lambda each: each.name)
def test_codes_of_several_scales(op: Op, type: TensorType, zero: int) -> None:
    """TFLite pads with the code 0, whatever the zero points are."""
    inputs, outputs, options = SAMPLES[op]
    given, made = ([_scaled(each, type, zero) for each in side] for side in (inputs, outputs))
    model = one_op_model(op, given, made, options, max(known_versions(op)))
    rng = np.random.default_rng(0)
    fed = [t for t in given if not t.is_constant]
    feeds = [
        rng.integers(*((0, 2) if t.type is TensorType.BOOL else (1, 100)), t.shape) for t in fed
    ]
    feeds = [codes.astype(NUMPY_DTYPE[t.type]) for codes, t in zip(feeds, fed, strict=True)]
    want = litert(model, feeds)
    ran = [ours(model, feeds, providers)[0] for providers in (None, [])]
    for results in (*ran, exported(model, feeds)):
        for got, expected in zip(results, want, strict=True):
            np.testing.assert_array_equal(got, expected)
