"""Cases of layers of neural networks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.flex.cases import Case

Array = npt.NDArray[Any]
RNG = np.random.default_rng(19)
X = np.float32([-100, -20, -2.5, -0.5, 0, 0.25, 3, 20, 100, np.inf, -np.inf])
FINITE = X[:9]
ROWS = RNG.uniform(-5, 5, (4, 7)).astype(np.float32)
LABELS = RNG.dirichlet(np.ones(7), 4).astype(np.float32)
# 16 bits have an epsilon of 1e-3; TensorFlow rounds between the steps of rows.
HALF, WIDE = np.float16, np.float64
INTS = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64, np.uint32, np.uint64)
IMAGE = RNG.uniform(-2, 2, (2, 3, 4, 5)).astype(np.float32)
GAMMA, BETA, MEAN = (RNG.uniform(-1, 1, 5).astype(np.float32) for _ in range(3))
VARIANCE = RNG.uniform(0.5, 2, 5).astype(np.float32)
NONE = np.zeros(0, np.float32)
TARGETS = np.int32([0, 3, 6, 7])
BROKEN = ROWS.copy()
BROKEN[0, 2], BROKEN[1, 1], BROKEN[2, 0] = np.inf, np.nan, -np.inf


def edges(dtype: npt.DTypeLike) -> Array:
    info = np.iinfo(dtype)
    return np.array([info.min, info.max, 0, 1, 5, 6, 7, 1, 100, 6, 3, 100], dtype)


def norm(name: str, x: Array = IMAGE, note: str = "", **attributes: Any) -> Case:
    rtol = attributes.pop("rtol", 2e-6)
    moments = (MEAN, VARIANCE)
    if attributes.get("is_training", True) and attributes.get("exponential_avg_factor", 1) == 1:
        moments = (NONE, NONE)
    return Case(name, [x, GAMMA, BETA, *moments], attributes, rtol=rtol, note=note)


def top(x: Array, count: int, note: str = "", exports: bool = True, **more: Any) -> Case:
    inputs = [x.reshape(2, -1), np.array(count, np.int32)]
    return Case("TopKV2", inputs, more, (1,), exports=exports, note=note)


FLOATS = ("Elu", "LeakyRelu", "Selu", "Sigmoid", "Softsign", "Softplus", "Relu", "Relu6")
NO_DOUBLE = ("Elu", "LeakyRelu", "Selu", "Softplus")
# TensorFlow leaves other results than the first unwritten where moments are given: see
# test_batch_norm.py.
NORMS = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")

CASES = [
    Case("Softplus", [X]),
    *(Case(name, [FINITE]) for name in FLOATS if name != "Softplus"),
    *(Case(name, [FINITE.astype(WIDE)], exports=name not in NO_DOUBLE) for name in FLOATS),
    *(Case(name, [FINITE.astype(HALF)], rtol=1e-3) for name in FLOATS),
    Case("LeakyRelu", [FINITE], {"alpha": 0.5}, note="alpha"),
    *(Case(n, [edges(d)], exports=d is not np.uint64) for n in ("Relu", "Relu6") for d in INTS),
    *(Case(name, [ROWS]) for name in ("Softmax", "LogSoftmax")),
    *(Case(name, [ROWS.astype(WIDE)]) for name in ("Softmax", "LogSoftmax")),
    *(Case(name, [ROWS.astype(HALF)], rtol=2e-3) for name in ("Softmax", "LogSoftmax")),
    Case("SoftmaxCrossEntropyWithLogits", [ROWS, LABELS]),
    Case("SoftmaxCrossEntropyWithLogits", [ROWS[:1], LABELS], note="repeated"),
    Case("SoftmaxCrossEntropyWithLogits", [ROWS.astype(WIDE), LABELS.astype(WIDE)]),
    Case("BiasAdd", [IMAGE, GAMMA]),
    Case("BiasAdd", [IMAGE, GAMMA[:3]], {"data_format": "NCHW"}, note="first"),
    Case("BiasAdd", [ROWS, ROWS[0]], note="rows"),
    Case("BiasAddV1", [IMAGE, GAMMA]),
    Case("BiasAdd", [IMAGE.astype(WIDE), GAMMA.astype(WIDE)]),
    Case("BiasAdd", [IMAGE.astype(HALF), GAMMA.astype(HALF)], rtol=1e-3),
    *(Case("BiasAdd", [edges(d).reshape(3, 4), edges(d)[:4]]) for d in INTS),
    *(norm(name, note="training") for name in NORMS),
    norm("FusedBatchNormV3", IMAGE[:, None].repeat(2, 1), "volume", data_format="NDHWC"),
    norm("FusedBatchNormV3", note="average", exponential_avg_factor=0.25),
    norm("FusedBatchNormV3", IMAGE.astype(HALF), "half", rtol=2e-3),
    Case("LRN", [IMAGE], {"depth_radius": 1, "bias": 2, "alpha": 0.5, "beta": 0.75}),
    Case("LRN", [IMAGE]),
    Case("InTopK", [ROWS, TARGETS], {"k": 3}),
    Case("InTopK", [BROKEN, TARGETS.astype(np.int64)], {"k": 3}, note="infinite"),
    Case("InTopKV2", [ROWS, TARGETS, np.array(2, np.int32)]),
    top(ROWS, 4),
    top(ROWS.astype(WIDE), 4),
    top(ROWS.astype(HALF), 4),
    *(top(edges(d), 5, exports=d is not np.uint64) for d in INTS),
    top(ROWS, 3, "wide", index_type="int64"),
    Case("DataFormatDimMap", [np.int32([0, 1, 2, 3, -1, -4])]),
    Case("DataFormatDimMap", [np.int64([1])], {"src_format": "NCHW", "dst_format": "NHWC"}),
    Case("DataFormatVecPermute", [np.int32([10, 20, 30, 40])]),
    Case("DataFormatVecPermute", [np.int64([[1, 2], [3, 4], [5, 6], [7, 8]])]),
]
