"""The slopes that LiteRT's default gives a LEAKY_RELU of 8-bit codes."""

from __future__ import annotations

import numpy as np

# The slopes from codes to codes, which LiteRT holds in 256ths, have to be within these.
_PARTS = 256
_LEAST, _MOST, _STEEPEST_FALL = 1 / _PARTS, 128.0, 1 / _PARTS - 128
# Moves halves up, and no other number past a half: results are multiples of 1/256.
_MOVE = 2.0**-18


def leaky_slopes(ratio: np.float32, alpha: np.float32) -> tuple[float, float] | None:
    """The unit to read the codes in, and the slope below 0, for results as LiteRT's default has.

    With these, rounding halves to even gives what LiteRT's rounding of halves upwards gives.
    There are none where LiteRT does not use XNNPACK.

    Args:
        ratio: the scale of the input in units of the output's.
        alpha: the slope below 0, of reals.
    """
    fall = ratio * alpha
    if not (_LEAST <= ratio <= _MOST and _STEEPEST_FALL <= fall <= _MOST and abs(fall) >= _LEAST):
        return None
    above, below = (float(np.rint(slope * np.float32(_PARTS))) / _PARTS for slope in (ratio, fall))
    above, below = above * (1 + _MOVE), below - abs(below) * _MOVE
    return float(ratio) / above, below / above
