"""Where the pixels of a resized image come from, in TFLite's integers and floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.schema.file.layer_options import ResizeBilinearOptions
from tflite_ort.schema.values.semantics import resize_ratio

Indices = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
# Per output index: the two input indices, and how far the point is past the first.
Positions = tuple[Indices, Indices, npt.NDArray[Any]]
POSITION_BITS = 10


def integer_positions(
    old: int, new: int, options: ResizeBilinearOptions
) -> tuple[Indices, Indices, Indices]:
    """Per output index: the two input indices, and how far the point is past the first in units of
    2**-POSITION_BITS; divisions cut towards zero as in C."""
    aligned = options.align_corners and new > 1
    steps, over = (old - 1, new - 1) if aligned else (old, new)
    one = 1 << POSITION_BITS
    ratio = (one * steps + over // 2) // over
    source = np.arange(new, dtype=np.int64) * ratio
    if options.half_pixel_centers:
        source += ratio // 2 - one // 2
    lower = np.maximum(source >> POSITION_BITS, 0)
    upper = np.minimum(-(-source >> POSITION_BITS), old - 1)
    return lower, upper, source - (lower << POSITION_BITS)


def float_positions(
    old: int, new: int, options: ResizeBilinearOptions
) -> tuple[Indices, Indices, Floats]:
    """Per output index: the two input indices, and how far the point is past the first, in the
    float32 steps that TFLite takes."""
    ratio = resize_ratio(old, new, options.align_corners)
    half = np.float32(0.5 if options.half_pixel_centers else 0)
    source = (np.arange(new, dtype=np.float32) + half) * ratio - half
    lower = np.maximum(np.floor(source), 0).astype(np.int64)
    upper = np.minimum(np.ceil(source), old - 1).astype(np.int64)
    return lower, upper, source - lower.astype(np.float32)


def places_differ(old: int, new: int, options: ResizeBilinearOptions) -> float:
    """How far ONNX Runtime's places are from TFLite's at most, in pixels of the input."""
    if old == new or not old or not new:
        return 0.0
    lower, _, past = float_positions(old, new, options)
    theirs = np.clip(_divided(old, new, options), 0, old - 1)
    return float(np.abs(np.clip(lower + past, 0, old - 1) - theirs).max())


def _divided(old: int, new: int, options: ResizeBilinearOptions) -> Floats:
    """The places in the float32 steps of ONNX Runtime's Resize."""
    places = np.arange(new, dtype=np.float32)
    if options.align_corners:
        return places * np.float32(old - 1) / np.float32(max(new - 1, 1))
    half = np.float32(0.5 if options.half_pixel_centers else 0)
    return (places + half) / (np.float32(new) / np.float32(old)) - half
