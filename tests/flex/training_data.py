"""What the models of `training/` are trained with, in any Python that has numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
STEPS = 50

# Tensors of many types, and names that sort otherwise than they stand here.
TENSORS: dict[str, Array] = {
    "b/kernel": np.arange(6, dtype=np.float32).reshape(2, 3),
    "a": np.int32([1, -2]),
    "scalar": np.array(3.5, np.float64),
    "texts": np.array([b"hello", "\u00e9".encode(), b""], object),
    "half": np.float16([1, -2, np.inf]),
    "empty": np.zeros((0, 3), np.float32),
    "long": np.int64([-5, 2**40]),
    "bytes": np.uint8([255, 0]),
    "small": np.int8([-128, 127]),
    "complex": np.complex64([1 + 2j]),
    "whether": np.array([True, False]),
}
SLICES: dict[str, Array] = {
    "4 3 0,2:-": np.ones((2, 3), np.float32),
    "4 3 2,2:-": np.full((2, 3), 2, np.float32),
}


def batch(step: int) -> tuple[Array, Array]:
    """Images and their labels: which of three stripes is the brightest."""
    draw = np.random.default_rng(step)
    images = draw.normal(size=(12, 8, 8, 1)).astype(np.float32)
    stripes = [images[:, :, at : at + 3].mean(axis=(1, 2, 3)) for at in (0, 3, 5)]
    return images, np.argmax(stripes, axis=0).astype(np.int32)
