"""Cases of windows over images and volumes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.flex.cases import Case

Array = npt.NDArray[Any]
RNG = np.random.default_rng(11)


def image(*shape: int, dtype: npt.DTypeLike = np.float32) -> Array:
    """Numbers with a few equal ones; of integers with the edges of their type."""
    values = RNG.integers(-9, 10, shape)
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        whole = values.clip(info.min, info.max).astype(dtype)
        whole.reshape(-1)[::7], whole.reshape(-1)[3::11] = info.min, info.max
        return whole
    return (values / 4).astype(dtype)


def pool(name: str, x: Array, size: Any, step: Any, note: str = "", **more: Any) -> Case:
    """A pool whose attributes have one number for each axis."""
    exports, rtol = more.pop("exports", True), more.pop("rtol", 1e-6)
    attributes = {"ksize": (1, *size, 1), "strides": (1, *step, 1), "padding": "VALID", **more}
    return Case(name, [x], attributes, exports=exports, rtol=rtol, note=note)


X, V = image(2, 7, 9, 3), image(2, 4, 6, 5, 2)
LOW = np.full((1, 4, 4, 1), -np.inf, np.float32)
INTS = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64)
EXPLICIT: dict[str, Any] = {"padding": "EXPLICIT"}


def pool_v2(x: Array, size: Any, step: Any, padding: str, note: str) -> Case:
    inputs = [x, np.int32([1, *size, 1]), np.int32([1, *step, 1])]
    return Case("MaxPoolV2", inputs, {"padding": padding}, (1, 2), note=note)


def patches(x: Array, size: Any, step: Any, rate: Any, padding: str, exports: bool = True) -> Case:
    attributes = {
        "ksizes": (1, *size, 1),
        "strides": (1, *step, 1),
        "rates": (1, *rate, 1),
        "padding": padding,
    }
    note = f"{padding}-{size}-{step}-{rate}"
    return Case("ExtractImagePatches", [x], attributes, exports=exports, note=note)


def dilation(x: Array, filter: Array, step: Any, rate: Any, padding: str, **more: Any) -> Case:
    attributes = {"strides": (1, *step, 1), "rates": (1, *rate, 1), "padding": padding}
    return Case("Dilation2D", [x, filter], attributes, (1,), note=f"{padding}-{step}", **more)


def argmax(x: Array, size: Any, step: Any, padding: str, note: str = "", **more: Any) -> Case:
    return pool("MaxPoolWithArgmax", x, size, step, f"{padding}-{note}", padding=padding, **more)


# A mean of 16-bit floats has a larger tolerance: TensorFlow rounds each sum to 16 bits.
FILTER = image(3, 2, 3)
CASES = [
    pool("AvgPool", X, (2, 3), (2, 3), "valid"),
    pool("AvgPool", X, (3, 3), (2, 2), "same", padding="SAME"),
    pool("AvgPool", X, (5, 2), (1, 1), "same-1", padding="SAME"),
    pool("AvgPool", X.astype(np.float64), (3, 3), (2, 2), padding="SAME", exports=False),
    pool("AvgPool", X.astype(np.float16), (3, 3), (2, 2), padding="SAME", rtol=2e-3),
    pool("AvgPool3D", V, (2, 2, 2), (2, 2, 2), "valid"),
    pool("AvgPool3D", V, (3, 2, 3), (2, 1, 2), "same", padding="SAME"),
    pool("MaxPool", X, (2, 3), (2, 3), "valid"),
    pool("MaxPool", X, (3, 3), (2, 2), "same", padding="SAME"),
    pool("MaxPool", LOW, (2, 2), (1, 1), "lowest", padding="SAME"),
    pool(
        "MaxPool", X, (3, 3), (2, 2), "pads", explicit_paddings=(0, 0, 1, 2, 0, 1, 0, 0), **EXPLICIT
    ),
    pool("MaxPool", X.astype(np.float64), (3, 3), (2, 2), padding="SAME"),
    pool("MaxPool", X.astype(np.float16), (3, 3), (2, 2), padding="SAME"),
    *(
        pool(
            "MaxPool",
            image(1, 5, 5, 2, dtype=dtype),
            (3, 2),
            (2, 1),
            padding="SAME",
            exports=dtype is not np.int64,
        )
        for dtype in INTS
    ),
    pool("MaxPool3D", V, (2, 2, 2), (2, 2, 2), "valid"),
    pool("MaxPool3D", V, (3, 2, 3), (2, 1, 2), "same", padding="SAME"),
    pool_v2(X, (2, 3), (2, 2), "VALID", "valid"),
    pool_v2(X, (3, 3), (2, 1), "SAME", "same"),
    argmax(X, (2, 2), (2, 2), "VALID"),
    argmax(X, (3, 3), (2, 2), "SAME"),
    argmax(X, (3, 3), (1, 2), "SAME", "batch", include_batch_in_index=True),
    argmax(X, (2, 2), (2, 2), "SAME", "int32", Targmax="int32"),
    argmax(X.astype(np.float64), (2, 2), (2, 2), "SAME"),
    argmax(X.astype(np.float16), (2, 2), (2, 2), "SAME"),
    *(
        argmax(image(1, 5, 5, 2, dtype=dtype), (3, 2), (2, 1), "SAME", exports=dtype != np.int64)
        for dtype in INTS
    ),
    patches(X, (3, 3), (2, 2), (1, 1), "VALID"),
    patches(X, (3, 2), (2, 3), (1, 1), "SAME"),
    patches(X, (2, 3), (1, 2), (2, 2), "SAME"),
    patches(X.astype(np.float64), (2, 2), (1, 1), (1, 1), "VALID"),
    patches(X.astype(np.float16), (2, 2), (1, 1), (1, 1), "SAME"),
    patches((X + 1j * X).astype(np.complex64), (2, 2), (2, 2), (1, 1), "SAME", exports=False),
    *(patches(image(1, 4, 4, 2, dtype=d), (2, 2), (2, 2), (1, 1), "VALID") for d in INTS),
    dilation(X, FILTER, (1, 1), (1, 1), "VALID"),
    dilation(X, FILTER, (2, 1), (1, 1), "SAME"),
    dilation(X, FILTER, (1, 1), (2, 2), "SAME"),
    dilation(X.astype(np.float64), FILTER.astype(np.float64), (1, 2), (1, 1), "SAME"),
    dilation(X.astype(np.float16), FILTER.astype(np.float16), (1, 2), (1, 1), "SAME"),
    dilation(X.astype(np.int32), FILTER.astype(np.int32), (1, 2), (1, 1), "SAME", exports=False),
]
