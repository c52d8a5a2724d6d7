"""Random numbers of the Philox stream of the seeds in the options, equal to those of TFLite.

The position in the stream is a variable. The stream continues from invoke to invoke, and restarts
after a resize. An operator without seeds has no position, and a new stream at every invoke.
"""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.fallback_kernels.idioms.counters import philox
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, kernel
from tflite_ort.schema import KernelError, Op, OperatorView, RandomOptions
from tflite_ort.schema.arithmetic.generators import (
    HIGH_MANTISSA,
    LEAST,
    MANTISSA,
    PHILOX_LANES,
    SKIPPED,
    random_seeds,
)
from tflite_ort.schema.shapes.registry import shown

Words = npt.NDArray[np.uint32]

_HIGH_BITS = np.uint64((1 << HIGH_MANTISSA) - 1)


def _no_state(op: OperatorView[Any]) -> None:
    """An empty state: a kernel with a state runs at every invoke, and is never folded."""


@kernel(Op.RANDOM_UNIFORM, versions=(1, 1), state=_no_state)
def random_uniform(op: OperatorView[RandomOptions], inputs: Inputs, state: State) -> Outputs:
    """Uniform in [0, 1); float32 of the shape given."""
    shape = shape_of(inputs[0])
    numbers, after = _taken(op, inputs, int(np.prod(shape, dtype=np.int64)))
    return (_unit(numbers).reshape(shape), *after)


@kernel(Op.RANDOM_STANDARD_NORMAL, versions=(1, 1), state=_no_state)
def random_standard_normal(
    op: OperatorView[RandomOptions], inputs: Inputs, state: State
) -> Outputs:
    """Box-Muller pairs sqrt(-2 log u) * (sin, cos)(2 pi v); float32 of the shape given."""
    shape = shape_of(inputs[0])
    count = int(np.prod(shape, dtype=np.int64))
    numbers, after = _taken(op, inputs, count + count % 2)
    unit = _unit(numbers)
    radius = np.sqrt(np.float32(-2) * np.log(np.maximum(unit[::2], np.float32(LEAST))))
    angle = (2 * np.pi * unit[1::2].astype(np.float64)).astype(np.float32)
    pairs = np.stack([np.sin(angle) * radius, np.cos(angle) * radius], axis=-1)
    return (pairs.reshape(-1)[:count].reshape(shape), *after)


@kernel(Op.MULTINOMIAL, versions=(1, 1), state=_no_state)
def multinomial(op: OperatorView[RandomOptions], inputs: Inputs, state: State) -> Outputs:
    """Classes of [batch, classes] logits, drawn by their softmax: [batch, num_samples]."""
    logits, samples = inputs[0], int(inputs[1].reshape(-1)[0])
    if logits.ndim != 2 or logits.shape[1] == 0:
        raise KernelError(f"logits have shape {logits.shape}, expected [batch, classes]")
    if samples < 0:
        raise KernelError(f"num_samples is {samples}, expected at least 0")
    batch = logits.shape[0]
    left = batch * (-(-samples // PHILOX_LANES) * PHILOX_LANES) * SKIPPED
    numbers, after = _taken(op, inputs, 2 * batch * samples, left)
    rows = zip(_cumulated(logits), _unit_double(numbers).reshape(batch, samples), strict=True)
    drawn = [np.searchsorted(odds, row * odds[-1], side="right") for odds, row in rows]
    return (np.asarray(drawn, op.output.dtype).reshape(batch, samples), *after)


def _taken(
    op: OperatorView[RandomOptions], inputs: Inputs, count: int, blocks: int | None = None
) -> tuple[Words, Outputs]:
    """The next `count` numbers of the stream, and its position after them if it has one.

    Args:
        blocks: by how many blocks the stream advances; None for those of the numbers, where the
            rest of the last block is dropped.
    """
    used, seeds = -(-count // PHILOX_LANES), random_seeds(op.options)
    key, upper = seeds or (secrets.randbits(64), secrets.randbits(64))
    position = int(inputs[-1]) if seeds else 0
    low = np.arange(used, dtype=np.uint64) + np.uint64(position)
    numbers = philox(key, low, np.full(used, upper, np.uint64)).reshape(-1)[:count]
    after = np.array(position + (used if blocks is None else blocks), np.int64)
    return numbers, (after,) if seeds else ()


def _cumulated(logits: Array) -> Array:
    """The running sums of exp(logit - greatest) along a row; a non-finite logit has weight 0."""
    finite = np.isfinite(logits)
    lowest = np.finfo(np.float32).min
    greatest = np.where(finite, logits, lowest).max(axis=1, keepdims=True).astype(np.float64)
    return np.asarray(np.cumsum(np.where(finite, np.exp(logits - greatest), 0.0), axis=1))


def shape_of(shape: Array) -> tuple[int, ...]:
    """The sizes that an input lists."""
    if shape.ndim != 1 or (shape < 0).any():
        raise KernelError(f"shape is {shown(shape)}, expected a list of sizes")
    return tuple(shape.tolist())


def _unit(numbers: Words) -> npt.NDArray[np.float32]:
    """The low 23 bits as the mantissa of a float32 in [1, 2), less 1."""
    mantissa = numbers & np.uint32((1 << MANTISSA) - 1)
    one = np.uint32(127 << MANTISSA)
    return (mantissa | one).view(np.float32) - np.float32(1)


def _unit_double(numbers: Words) -> npt.NDArray[np.float64]:
    """Pairs of numbers as the mantissa of a float64 in [1, 2), less 1; the first one is high."""
    high, low = numbers[::2].astype(np.uint64), numbers[1::2].astype(np.uint64)
    mantissa = (high & _HIGH_BITS) << np.uint64(32) | low
    return (mantissa | np.uint64(1023 << 52)).view(np.float64) - 1.0
