"""Where the pixels of a resized image of codes come from, in TFLite's integers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tflite_ort.schema.file.layer_options import ResizeBilinearOptions

Indices = npt.NDArray[np.int64]
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
