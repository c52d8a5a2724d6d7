"""Cases of gradients of convolutions, pools and dilations."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.flex.cases import Case

Array = npt.NDArray[Any]
RNG = np.random.default_rng(43)


def drawn(*shape: int, dtype: npt.DTypeLike = np.float32) -> Array:
    return RNG.uniform(-2, 2, shape).astype(dtype)


def sizes(*shape: int) -> Array:
    return np.int32(shape)


def outer(values: Sequence[int], first: bool) -> list[int]:
    return [1, 1, *values] if first else [1, *values, 1]


def windows(size: int, kernel: int, stride: int, padding: str, dilation: int = 1) -> int:
    reach = (kernel - 1) * dilation + 1
    return -(-size // stride) if padding == "SAME" else (size - reach) // stride + 1


# How the windows of a convolution lie: strides, dilations and padding.
FORMS: list[tuple[tuple[int, int], tuple[int, int], str]] = [
    ((1, 1), (1, 1), "SAME"),
    ((2, 2), (1, 1), "VALID"),
    ((3, 2), (1, 1), "SAME"),
]


def convolution(
    kind: str,
    form: tuple[tuple[int, int], tuple[int, int], str],
    dtype: npt.DTypeLike = np.float32,
    first: bool = False,
    **more: Any,
) -> list[Case]:
    """Both gradients of a convolution of images of 7 by 6; TensorFlow's interpreter has none with
    dilations or groups, see `test_gradients.py`."""
    strides, dilations, padding = form
    depthwise = kind == "DepthwiseConv2dNative"
    filter = (3, 2, 3, 2)
    outputs = 6 if depthwise else 2
    columns = zip((7, 6), filter[:2], strides, dilations, strict=True)
    spatial = [windows(*each, padding, rate) for *each, rate in columns]
    given = (2, outputs, *spatial) if first else (2, *spatial, outputs)
    images = (2, 3, 7, 6) if first else (2, 7, 6, 3)
    attributes = {
        "strides": outer(strides, first),
        "dilations": outer(dilations, first),
        "padding": padding,
        "data_format": "NCHW" if first else "NHWC",
    }
    x, w, d = drawn(*images, dtype=dtype), drawn(*filter, dtype=dtype), drawn(*given, dtype=dtype)
    note = f"{padding}-{strides[0]}{dilations[0]}"
    return [
        Case(f"{kind}BackpropInput", [sizes(*images), w, d], attributes, (0,), note=note, **more),
        Case(f"{kind}BackpropFilter", [x, sizes(*filter), d], attributes, (1,), note=note, **more),
    ]


def explicit() -> list[Case]:
    attributes = {
        "strides": [1, 2, 1, 1],
        "padding": "EXPLICIT",
        "explicit_paddings": [0, 0, 1, 2, 0, 1, 0, 0],
    }
    x, w, d = drawn(1, 6, 5, 2), drawn(3, 3, 2, 4), drawn(1, 4, 4, 4)
    return [
        Case("Conv2DBackpropInput", [sizes(1, 6, 5, 2), w, d], attributes, (0,), note="explicit"),
        Case("Conv2DBackpropFilter", [x, sizes(3, 3, 2, 4), d], attributes, (1,), note="explicit"),
    ]


def integers() -> Case:
    """The gradient of images of integers."""
    w, d = (RNG.integers(-9, 10, n).astype(np.int32) for n in ((3, 2, 2, 3), (1, 3, 4, 3)))
    attributes = {"strides": [1, 2, 1, 1], "padding": "SAME"}
    return Case("Conv2DBackpropInput", [sizes(1, 5, 4, 2), w, d], attributes, (0,), exports=False)


def volumes(padding: str) -> list[Case]:
    """Both gradients of a convolution of volumes."""
    attributes = {"strides": [1, 2, 1, 2, 1], "padding": padding}
    counts = [windows(n, 2, s, padding) for n, s in ((4, 2), (3, 1), (5, 2))]
    x, w, d = drawn(2, 4, 3, 5, 2), drawn(2, 2, 2, 2, 3), drawn(2, *counts, 3)
    return [
        Case("Conv3DBackpropInputV2", [sizes(*x.shape), w, d], attributes, (0,), note=padding),
        Case("Conv3DBackpropFilterV2", [x, sizes(*w.shape), d], attributes, (1,), note=padding),
    ]


# Whole numbers, among which equal ones are.
EVEN = RNG.integers(-3, 4, (2, 5, 6, 2)).astype(np.float32)
CUBE = RNG.integers(-3, 4, (1, 4, 4, 3, 2)).astype(np.float32)


def pooled(x: Array, kernel: Sequence[int], strides: Sequence[int], padding: str) -> Array:
    """The greatest of each window."""
    columns = list(zip(x.shape[1:-1], kernel, strides, strict=True))
    counts = [windows(*each, padding) for each in columns]
    result = np.empty((len(x), *counts, x.shape[-1]), x.dtype)
    for place in itertools.product(*map(range, counts)):
        cells = [slice(None)]
        for at, (n, k, s), count in zip(place, columns, counts, strict=True):
            before = max((count - 1) * s + k - n, 0) // 2 if padding == "SAME" else 0
            cells.append(slice(max(at * s - before, 0), at * s - before + k))
        axes = tuple(range(1, x.ndim - 1))
        result[(slice(None), *place)] = x[tuple(cells)].max(axis=axes)
    return result


def pool(x: Array, padding: str, dtype: npt.DTypeLike = np.float32, **more: Any) -> list[Case]:
    """The gradients of pools of images."""
    kernel, strides = (3, 2), (2, 2)
    x = x.astype(dtype)
    found = pooled(x, kernel, strides, padding)
    around = {"ksize": outer(kernel, False), "strides": outer(strides, False), "padding": padding}
    tail = [sizes(1, *kernel, 1), sizes(1, *strides, 1)]
    given, second = drawn(*found.shape, dtype=dtype), drawn(*x.shape, dtype=dtype)
    last = {"padding": padding}
    return [
        Case("MaxPoolGrad", [x, found, given], around, note=padding, **more),
        Case("MaxPoolGradV2", [x, found, given, *tail], last, (3, 4), note=padding, **more),
        Case("MaxPoolGradGrad", [x, found, second], around, note=padding, **more),
        Case("MaxPoolGradGradV2", [x, found, second, *tail], last, (3, 4), note=padding, **more),
    ]


def average(padding: str, dtype: npt.DTypeLike = np.float32, **more: Any) -> list[Case]:
    flat = [windows(n, k, 2, padding) for n, k in ((5, 3), (6, 2))]
    deep = [windows(n, 2, 2, padding) for n in (4, 4, 3)]
    return [
        Case(
            "AvgPoolGrad",
            [sizes(2, 5, 6, 2), drawn(2, *flat, 2, dtype=dtype)],
            {"ksize": [1, 3, 2, 1], "strides": [1, 2, 2, 1], "padding": padding},
            (0,),
            note=padding,
            **more,
        ),
        Case(
            "AvgPool3DGrad",
            [sizes(1, 4, 4, 3, 2), drawn(1, *deep, 2, dtype=dtype)],
            {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 2, 2, 1], "padding": padding},
            (0,),
            note=padding,
            **more,
        ),
    ]


def volume_pool(padding: str) -> list[Case]:
    found = pooled(CUBE, (2, 2, 2), (2, 1, 2), padding)
    around = {"ksize": [1, 2, 2, 2, 1], "strides": [1, 2, 1, 2, 1], "padding": padding}
    given = drawn(*found.shape)
    return [
        Case("MaxPool3DGrad", [CUBE, found, given], around, exports=False, note=padding),
        Case("MaxPool3DGradGrad", [CUBE, found, drawn(*CUBE.shape)], around, note=padding),
    ]


def dilation(padding: str, dtype: npt.DTypeLike = np.float32, **more: Any) -> list[Case]:
    x = RNG.integers(-3, 4, (1, 5, 6, 2)).astype(dtype)
    w = RNG.integers(-2, 3, (2, 3, 2)).astype(dtype)
    counts = [windows(*each, padding, 2) for each in ((5, 2, 1), (6, 3, 2))]
    given = RNG.integers(0, 9, (1, *counts, 2)).astype(dtype)
    attributes = {"strides": [1, 1, 2, 1], "rates": [1, 2, 2, 1], "padding": padding}
    return [
        Case(f"Dilation2DBackprop{name}", [x, w, given], attributes, exports=False, note=padding)
        for name in ("Input", "Filter")
    ]


PLACES = np.int64([0, 3, 3, 7, 1, 0]).reshape(1, 1, 3, 2)


def at_places(include: bool) -> Case:
    x = drawn(2, 2, 3, 2)
    places = np.concatenate([PLACES, PLACES + 2 + (12 if include else 0)])
    attributes = {
        "ksize": [1, 2, 1, 1],
        "strides": [1, 2, 1, 1],
        "padding": "VALID",
        "include_batch_in_index": include,
    }
    inputs = [x, drawn(2, 1, 3, 2), places]
    return Case("MaxPoolGradWithArgmax", inputs, attributes, note=str(include))


CASES = [
    *(case for form in FORMS for case in convolution("Conv2D", form)),
    *(case for form in FORMS[:2] for case in convolution("DepthwiseConv2dNative", form)),
    *convolution("Conv2D", FORMS[1], np.float64, exports=False),
    *convolution("Conv2D", FORMS[0], np.float16, rtol=2e-3),
    *explicit(),
    integers(),
    *(case for padding in ("SAME", "VALID") for case in volumes(padding)),
    *(case for padding in ("SAME", "VALID") for case in pool(EVEN, padding)),
    *pool(EVEN, "SAME", np.float64),
    *pool(EVEN, "VALID", np.float16, rtol=2e-3),
    *pool(EVEN, "VALID", np.int32, exports=False),
    *(case for padding in ("SAME", "VALID") for case in average(padding)),
    average("SAME", np.float64, exports=False)[0],
    *(case for padding in ("SAME", "VALID") for case in volume_pool(padding)),
    *(case for padding in ("SAME", "VALID") for case in dilation(padding)),
    *dilation("SAME", np.int32),
    at_places(False),
    at_places(True),
]
