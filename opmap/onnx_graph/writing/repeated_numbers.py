"""Constants of few numbers that are there often. A file has each number once, and its places."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.table_nodes import TableNodes

Array = npt.NDArray[Any]

# A run has so many equal numbers at least, and a constant so many numbers at most.
_LEAST, _MOST = 4, 1 << 12
_WIDE = 8  # bytes of a number; those of fewer, such as biases, readers look for as constants
# Matrices of less numbers take about as much room as the places of their waves; larger ones are not
# written.
_WAVES, _MOST_WAVES = 1 << 14, 1 << 24
_PAIR = 2


class Runs(NamedTuple):
    """Runs of one length, each of one number; multipliers of gates are such constants."""

    numbers: Array
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """The room that it takes; the places are there once for all constants of these runs."""
        return self.numbers.nbytes

    @property
    def nodes(self) -> int:
        """How many nodes make it."""
        return 1

    def make(self, nodes: TableNodes, name: str, output: ir.Value) -> None:
        """Add the node that makes the constant."""
        count, size = len(self.numbers), int(np.prod(self.shape))
        places = np.repeat(np.arange(count, dtype=np.int32), size // count).reshape(self.shape)
        sizes = "x".join(map(str, self.shape))
        held = nodes.constant(f"c/runs{count}of{sizes}", places)
        nodes.add("Gather", nodes.constant(f"{name}_runs", self.numbers), held, output=output)


def runs_of(array: Array) -> Runs | None:
    """The fewest runs that a constant of 64-bit numbers consists of; None where it has no long
    ones."""
    flat = array.reshape(-1)
    if not _LEAST <= flat.size <= _MOST or flat.itemsize != _WIDE or flat.dtype.kind not in "iuf":
        return None
    bits = flat.view(f"u{flat.itemsize}")  # -0.0 is not 0.0, and a NaN is itself
    changes = np.flatnonzero(bits[1:] != bits[:-1]) + 1
    length = int(np.gcd.reduce(np.append(changes, flat.size)))
    return Runs(flat[::length], array.shape) if length >= _LEAST else None


class Waves(NamedTuple):
    """The matrix of a Fourier transform: element [n, 2 * k + p] is that of the pair n * k, modulo
    the length of the transform."""

    pairs: Array
    shape: tuple[int, int]

    @property
    def nbytes(self) -> int:
        """The room that it takes."""
        rows, columns = self.shape
        return self.pairs.nbytes + _PAIR * 4 * (rows + columns)

    @property
    def nodes(self) -> int:
        """How many nodes make it."""
        return 3

    def make(self, nodes: TableNodes, name: str, output: ir.Value) -> None:
        """Add the nodes that make the constant: places are products of two columns and two rows."""
        rows, columns = _factors(self.shape)
        places = nodes.add(
            "MatMul",
            nodes.constant(f"{name}_rows", rows),
            nodes.constant(f"{name}_columns", columns),
        )
        places = nodes.add("Mod", places, nodes.number(self.pairs.size))
        pairs = nodes.constant(f"{name}_pairs", self.pairs.reshape(-1))
        nodes.add("Gather", pairs, places, output=output)


def waves_of(array: Array) -> Waves | None:
    """The waves that `array` consists of; None where it is no such matrix."""
    if array.ndim != 2 or array.dtype.kind != "f" or not _WAVES <= array.size < _MOST_WAVES:
        return None
    rows, columns = array.shape
    kept = columns // _PAIR
    if columns % _PAIR or kept < _PAIR:
        return None
    matrix = array.reshape(rows, kept, _PAIR)
    if not (_all_equal(matrix[0]) and _all_equal(matrix[:, 0])):
        return None
    for length in (kept, 2 * kept - 2, 2 * kept - 1):
        places = np.outer(np.arange(rows), np.arange(kept)) % length
        pairs = np.zeros((length, _PAIR), array.dtype)
        pairs[places] = matrix
        if pairs[places].tobytes() == array.tobytes():
            return Waves(pairs, (rows, columns))
    return None


def _all_equal(pairs: Array) -> bool:
    return bool((pairs == pairs[0]).all())


def _factors(shape: tuple[int, int]) -> tuple[Array, Array]:
    """Two columns and two rows whose product is 2 * n * k + p, the place of a number of a pair."""
    rows, columns = shape
    left = np.stack([np.arange(rows), np.ones(rows)], axis=1)
    ks, parts = np.divmod(np.arange(columns), _PAIR)
    return left.astype(np.int32), np.stack([_PAIR * ks, parts]).astype(np.int32)
