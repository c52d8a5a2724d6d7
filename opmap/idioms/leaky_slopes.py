"""The slopes that LiteRT's default gives a LEAKY_RELU of 8-bit codes."""

from __future__ import annotations

import numpy as np

# From codes to codes, in 256ths, if they are within these.
_PARTS = 256
_LEAST, _MOST, _STEEPEST_FALL = 1 / _PARTS, 128.0, 1 / _PARTS - 128
# Brings halves to one side, and nothing else over a half: results come in 256ths.
_MOVE = 2.0**-18


def leaky_slopes(ratio: np.float32, alpha: np.float32) -> tuple[float, float]:
    """The unit to read the codes in, and the slope below 0, such that halves go up where they are
    rounded to even; 1 and `alpha` where LiteRT leaves the operator to its own kernel.

    Args:
        ratio: the scale of the input in units of the output's.
        alpha: the slope below 0, of reals.
    """
    fall = ratio * alpha
    if not (_LEAST <= ratio <= _MOST and _STEEPEST_FALL <= fall <= _MOST and abs(fall) >= _LEAST):
        return 1.0, float(alpha)
    above, below = (float(np.rint(slope * np.float32(_PARTS))) / _PARTS for slope in (ratio, fall))
    above, below = above * (1 + _MOVE), below - abs(below) * _MOVE
    return float(ratio) / above, below / above
