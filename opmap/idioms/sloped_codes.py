"""PRELU of 8-bit codes, as TFLite's fixed point rounds it.

Codes below the zero point are multiplied by those of the slopes, and have a multiplier of their
own. Both are rounded as `rescaled_codes` says. Floats do it in one step: `rounded_twice` of
`fixed_point` says why.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.idioms.by_code import every_code
from tflite_ort.opmap.idioms.fixed_point import centred_codes
from tflite_ort.opmap.idioms.rescaled_codes import Codes
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import OperatorView
from tflite_ort.schema.arithmetic.fixed_point import quantize_multiplier, rescale

Array = npt.NDArray[Any]

# By these a multiplier is moved, so that halves go up or down.
_MOVES = (1.0, *(1 + sign * 2.0**-bits for bits in (23, 22, 21, 20) for sign in (1, -1)))


class _Multipliers(NamedTuple):
    """The multipliers of codes from the zero point on, and of products of lower codes and slopes.

    Args:
        near: by so much numbers are moved away from 0 before they are rounded, those that are
            nearer to 0 by themselves.
    """

    above: float
    below: float
    near: tuple[float, float]

    @classmethod
    def of(cls, source: Codes, slopes: Codes, target: Codes) -> _Multipliers:
        """As TFLite has them, in float32."""
        first, second, made = (np.float32(each.scale) for each in (source, slopes, target))
        pair = float(first / made), float(first * second / made)
        shifts = (max(-int(quantize_multiplier(each)[1]), 0) for each in pair)
        above, below = (2.0 ** -(shift + 1) if shift else 0.0 for shift in shifts)
        return cls(*pair, (above, below))

    def moved(self, up: float, down: float) -> _Multipliers:
        return self._replace(above=self.above * up, below=self.below * down)

    def of_all(self, steps: Array, slopes: Array) -> Array:
        """What the nodes of `write_sloped` make of steps and of steps of slopes [N, 1]."""
        above, below = steps * np.float32(self.above), steps * (slopes * np.float32(self.below))
        near = (np.float32(each) for each in self.near)
        above, below = (
            x + np.clip(x, -each, each) for x, each in zip((above, below), near, strict=True)
        )
        return np.asarray(np.rint(np.where(steps < 0, below, above)))


def rounds_as_reals(op: OperatorView[Any]) -> bool:
    """Whether reals that QuantizeLinear rounds give the codes of TFLite."""
    source, slopes, target = (Codes.of(each) for each in (op["input"], op["alpha"], op.output))
    return _rounds_as_reals(source, slopes, target, _slope_codes(op).tobytes())


@lru_cache(maxsize=256)
def _rounds_as_reals(source: Codes, slopes: Codes, target: Codes, codes: bytes) -> bool:
    steps, factors = source.steps(), _factors(slopes, codes)
    with np.errstate(over="ignore", invalid="ignore"):
        x = steps * np.float32(source.scale)
        x = np.where(x < 0, x * (factors * np.float32(slopes.scale)), x)
        made = target.filed(np.rint(x / np.float32(target.scale)))
    return np.array_equal(made, _wanted(source, slopes, target, codes))


def write_sloped(op: OperatorView[Any], g: Graph, layout: Layout) -> None:
    """Write the output of PRELU by floats in units of the output's scale."""
    input, alpha = op["input"], op["alpha"]
    source, slopes, target = (Codes.of(each) for each in (input, alpha, op.output))
    units = _best_multipliers(source, slopes, target, _slope_codes(op).tobytes())
    steps = g.read_steps(input, layout=layout)
    below = g.read_steps(alpha, units.below, layout=layout, rank=input.rank)
    above = g.constant(units.above, np.float32)
    above, below = (
        _moved(g, g.op("Mul", steps, factor), near)
        for factor, near in zip((above, below), units.near, strict=True)
    )
    x = g.op("Where", g.op("Less", steps, g.constant(0, np.float32)), below, above)
    g.write(op.output, centred_codes(g, x, op.output), layout=layout, domain=Domain.STORED)


def _moved(g: Graph, x: ir.Value, near: float) -> ir.Value:
    """Numbers moved away from 0, by so much at most."""
    if not near:
        return x
    low, high = (g.constant(bound, np.float32) for bound in (-near, near))
    return g.op("Add", x, g.op("Clip", x, low, high))


@lru_cache(maxsize=256)
def _best_multipliers(source: Codes, slopes: Codes, target: Codes, codes: bytes) -> _Multipliers:
    """The multipliers with the fewest codes unlike TFLite's: none, if float32 holds the numbers."""
    steps, factors = source.steps(), _factors(slopes, codes)
    wanted = _wanted(source, slopes, target, codes)
    plain = _Multipliers.of(source, slopes, target)

    def misses(move: float, is_above: bool) -> int:
        tried = plain.moved(move, move)
        with np.errstate(over="ignore", invalid="ignore"):
            made = target.filed(tried.of_all(steps, factors))
        return int(np.count_nonzero((made != wanted) & ((steps >= 0) == is_above)))

    up, down = (min(_MOVES, key=partial(misses, is_above=side)) for side in (True, False))
    return plain.moved(up, down)


def _slope_codes(op: OperatorView[Any]) -> Array:
    """The codes that slopes may have, each once."""
    alpha = op["alpha"]
    return every_code(alpha.type) if alpha.data is None else np.unique(alpha.data)


def _factors(slopes: Codes, codes: bytes) -> Array:
    """Slopes [N, 1] less their zero point, in float32."""
    held = np.frombuffer(codes, every_code(slopes.type).dtype)
    return held.astype(np.float32)[:, np.newaxis] - np.float32(slopes.zero_point)


def _wanted(source: Codes, slopes: Codes, target: Codes, codes: bytes) -> Array:
    """TFLite's code for every slope [N, 1] and every code of the input."""
    plain = _Multipliers.of(source, slopes, target)
    steps, factors = source.steps().astype(np.int32), _factors(slopes, codes).astype(np.int32)
    below = rescale(steps * factors, plain.below)
    return target.filed(np.where(steps >= 0, rescale(steps, plain.above), below))
