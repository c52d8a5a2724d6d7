"""Random numbers: the Philox stream of the seeds in the options, number by number TFLite's.

The state of a node is its stream: it goes on from invoke to invoke and starts anew at allocation.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tflite_ort.fallback_kernels.counters import philox
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, kernel
from tflite_ort.schema import KernelError, Op, OperatorView, RandomOptions

_LANES = 4  # 32-bit numbers that one value of the counter gives
_MANTISSA = 23
_SKIPPED = 2 * 256  # what MULTINOMIAL leaves unused for each number it draws


@dataclass(slots=True)
class Stream:
    """A key, and the counter (128 bits) of the block that comes next."""

    key: int
    counter: int

    @classmethod
    def of(cls, op: OperatorView[RandomOptions]) -> Stream:
        """The stream of the seeds, of which TFLite keeps 32 bits; two zeros: drawn here."""
        seed, seed2 = _int32(op.options.seed), _int32(op.options.seed2)
        if seed == seed2 == 0:
            seed, seed2 = secrets.randbits(64), secrets.randbits(64)
        return cls(seed % 2**64, (seed2 % 2**64) << 64)

    def take(self, count: int) -> npt.NDArray[np.uint32]:
        """The next `count` numbers; what is left of the last block is lost."""
        blocks = -(-count // _LANES)
        start, above = np.uint64(self.counter % 2**64), np.uint64(self.counter >> 64)
        low = np.arange(blocks, dtype=np.uint64) + start
        self.skip(blocks)
        return philox(self.key, low, above + (low < start)).reshape(-1)[:count]

    def skip(self, blocks: int) -> None:
        self.counter = (self.counter + blocks) % 2**128


@kernel(Op.RANDOM_UNIFORM, versions=(1, 1), inputs=("shape",), state=Stream.of)
def random_uniform(op: OperatorView[RandomOptions], inputs: Inputs, state: State) -> Outputs:
    """Uniform in [0, 1); float32 of the shape given."""
    shape = _shape(inputs[0])
    return (_unit(state.take(int(np.prod(shape, dtype=np.int64)))).reshape(shape),)


@kernel(Op.RANDOM_STANDARD_NORMAL, versions=(1, 1), inputs=("shape",), state=Stream.of)
def random_standard_normal(
    op: OperatorView[RandomOptions], inputs: Inputs, state: State
) -> Outputs:
    """Box-Muller pairs sqrt(-2 log u) * (sin, cos)(2 pi v); float32 of the shape given."""
    shape = _shape(inputs[0])
    count = int(np.prod(shape, dtype=np.int64))
    unit = _unit(state.take(count + count % 2))
    radius = np.sqrt(np.float32(-2) * np.log(np.maximum(unit[::2], np.float32(1e-7))))
    angle = (2 * np.pi * unit[1::2].astype(np.float64)).astype(np.float32)
    pairs = np.stack([np.sin(angle) * radius, np.cos(angle) * radius], axis=-1)
    return (pairs.reshape(-1)[:count].reshape(shape),)


@kernel(Op.MULTINOMIAL, versions=(1, 1), inputs=("logits", "num_samples"), state=Stream.of)
def multinomial(op: OperatorView[RandomOptions], inputs: Inputs, state: State) -> Outputs:
    """Classes of [batch, classes] logits, drawn by their softmax: [batch, num_samples]."""
    logits, samples = inputs[0], int(inputs[1].reshape(-1)[0])
    if logits.ndim != 2 or logits.shape[1] == 0:
        raise KernelError(f"logits have shape {logits.shape}, expected [batch, classes]")
    if samples < 0:
        raise KernelError(f"num_samples is {samples}, expected at least 0")
    start = state.counter
    places = _unit_double(state.take(2 * logits.shape[0] * samples))
    state.counter = start
    state.skip(logits.shape[0] * (-(-samples // _LANES) * _LANES) * _SKIPPED)
    rows = zip(_cumulated(logits), places.reshape(logits.shape[0], samples), strict=True)
    drawn = [np.searchsorted(odds, row * odds[-1], side="right") for odds, row in rows]
    return (np.asarray(drawn, op.output.dtype).reshape(logits.shape[0], samples),)


def _cumulated(logits: Array) -> Array:
    """The running sums of exp(logit - greatest) along a row; what is not finite has no weight."""
    finite = np.isfinite(logits)
    lowest = np.finfo(np.float32).min
    greatest = np.where(finite, logits, lowest).max(axis=1, keepdims=True).astype(np.float64)
    return np.asarray(np.cumsum(np.where(finite, np.exp(logits - greatest), 0.0), axis=1))


def _int32(number: int) -> int:
    return (number + 2**31) % 2**32 - 2**31


def _shape(shape: Array) -> tuple[int, ...]:
    if shape.ndim != 1 or (shape < 0).any():
        raise KernelError(f"shape is {shape.tolist()}, expected a list of sizes")
    return tuple(shape.tolist())


def _unit(numbers: npt.NDArray[np.uint32]) -> npt.NDArray[np.float32]:
    """The low 23 bits as the mantissa of a float32 in [1, 2), less 1."""
    mantissa = numbers & np.uint32((1 << _MANTISSA) - 1)
    one = np.uint32(127 << _MANTISSA)
    return (mantissa | one).view(np.float32) - np.float32(1)


def _unit_double(numbers: npt.NDArray[np.uint32]) -> npt.NDArray[np.float64]:
    """Pairs of numbers as the mantissa of a float64 in [1, 2), less 1; the first one is high."""
    high, low = numbers[::2].astype(np.uint64), numbers[1::2].astype(np.uint64)
    mantissa = (high & np.uint64(0xFFFFF)) << np.uint64(32) | low
    return (mantissa | np.uint64(1023 << 52)).view(np.float64) - 1.0
