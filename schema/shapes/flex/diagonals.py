"""Shape rules of TensorFlow's operators on diagonals, and where the elements of these are."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import Shape, Shapes, flex_rule, single
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.sizes import differ, is_known, unknown_shape, unknown_size
from tflite_ort.schema.values.view import OperatorView

View = OperatorView[Any]
Array = npt.NDArray[Any]
Band = tuple[int, int]


def band_of(k: Array) -> Band:
    """The lowest and the highest diagonal that `k` names; 0 is the main one."""
    values = k.reshape(-1).tolist()
    if len(values) not in (1, 2) or values[0] > values[-1]:
        raise ModelError(f"diagonals {values[:4]}, expected one or two in ascending order")
    return values[0], values[-1]


def _length(rows: int, columns: int, diagonal: int) -> int:
    return min(rows + min(diagonal, 0), columns - max(diagonal, 0))


def part_shape(rows: int, columns: int, band: Band) -> Shape:
    """[diagonals, length] of a matrix; [length] for a single diagonal."""
    low, high = band
    count = () if low == high else (high - low + 1,)
    if not is_known(rows, columns):
        return (*count, unknown_size())
    inside = all(-rows < each < columns or each == 0 for each in band)
    if not inside:
        raise ModelError(f"diagonals {low} to {high} of a matrix of {rows} x {columns}")
    return (*count, min(rows + min(high, 0), columns - max(low, 0)))


def places(rows: int, columns: int, band: Band, align: str) -> Array:
    """[diagonals, length]: the place of each element in the matrix as a line, from the highest
    diagonal to the lowest; -1 beside a shorter one.

    Args:
        align: such as ``RIGHT_LEFT``, where shorter diagonals above and below the main one are.
    """
    low, high = band
    length = part_shape(rows, columns, band)[-1]
    found = np.full((high - low + 1, length), -1, np.int64)
    above, _, below = align.partition("_")
    for row, diagonal in enumerate(range(high, low - 1, -1)):
        size = _length(rows, columns, diagonal)
        start = length - size if (above if diagonal > 0 else below) == "RIGHT" else 0
        first = max(-diagonal, 0) * columns + max(diagonal, 0)
        found[row, start : start + size] = first + np.arange(size) * (columns + 1)
    return found


def alignment(op: View) -> str:
    """Where shorter diagonals are; without the attribute, they are on the left."""
    node = node_of(op)
    return str(node["align"]) if "align" in node.attributes else "LEFT_LEFT"


def _band(op: View) -> Band | None:
    """None where only the data tells."""
    if "k" not in op.names:
        return 0, 0
    return None if op["k"].data is None else band_of(op["k"].data)


def _matrix(shape: Shape) -> Shape:
    if len(shape) < 2:
        raise ModelError(f"shape {shape} is no matrix")
    return shape


@flex_rule("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3", "BatchMatrixDiagPart")
def matrix_diag_part(op: View) -> Shapes | None:
    """[..., diagonals, length] of matrices."""
    *batch, rows, columns = _matrix(op["input"].shape)
    band = _band(op)
    return None if band is None else ((*batch, *part_shape(rows, columns, band)),)


def matrix_sizes(diagonals: Shape, band: Band, rows: int, columns: int) -> tuple[int, int]:
    """The rows and columns of matrices with these diagonals; -1 for as few as needed."""
    low, high = band
    count = () if low == high else (high - low + 1,)
    if not diagonals or (count and differ(diagonals[-2:-1], count)):
        raise ModelError(f"diagonals {low} to {high} of shape {diagonals}")
    length = diagonals[-1]
    if not is_known(length):
        return (
            rows if rows >= 0 else unknown_size(),
            columns if columns >= 0 else unknown_size(),
        )
    least = length - min(high, 0), length + max(low, 0)
    if rows < 0 and columns < 0:
        return (max(least),) * 2
    sizes = rows if rows >= 0 else least[0], columns if columns >= 0 else least[1]
    if part_shape(*sizes, band)[-1] != length:
        raise ModelError(f"{sizes[0]} x {sizes[1]} elements for diagonals of {length}")
    return sizes


@flex_rule("MatrixDiag", "MatrixDiagV2", "MatrixDiagV3", "BatchMatrixDiag")
def matrix_diag(op: View) -> Shapes | None:
    """[..., rows, columns] of diagonals."""
    shape, band = op["diagonal"].shape, _band(op)
    if band is None:
        return None
    sizes = [-1, -1]
    for place, name in enumerate(("num_rows", "num_cols")):
        if name in op.names:
            data = op[name].data
            sizes[place] = unknown_size() if data is None else single(data)
    batch = shape[:-1] if band[0] == band[1] else shape[:-2]
    if not is_known(*sizes):
        return ((*batch, *unknown_shape(2)),)
    return ((*batch, *matrix_sizes(shape, band, *sizes)),)


@flex_rule("MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3", "BatchMatrixSetDiag")
def matrix_set_diag(op: View) -> Shapes:
    """The matrices' shape."""
    *batch, rows, columns = _matrix(op["input"].shape)
    band, shape = _band(op), op["diagonal"].shape
    if band is not None:
        expected = (*batch, *part_shape(rows, columns, band))
        if len(shape) != len(expected) or differ(shape, expected):
            raise ModelError(f"{op.label}: diagonals of shape {shape}, expected {expected}")
    return (op["input"].shape,)


@flex_rule("Diag")
def diag(op: View) -> Shapes:
    """The shape twice."""
    if not op["diagonal"].rank:
        raise ModelError(f"{op.label}: a scalar is no diagonal")
    return (op["diagonal"].shape * 2,)


@flex_rule("DiagPart")
def diag_part(op: View) -> Shapes:
    """The first half of the sizes, which is as the second."""
    shape = op["input"].shape
    half = len(shape) // 2
    if len(shape) % 2 or not shape or differ(shape[:half], shape[half:]):
        raise ModelError(f"{op.label}: {shape} has no two equal halves")
    return (shape[:half],)


def sources(name: str, shapes: tuple[Shape, Shape], band: Band, align: str) -> Array:
    """For each element of a matrix, or of its diagonals, in a line, its place in what it is made
    of: the first input, then the second; -1 where there is padding.

    Args:
        shapes: of the last axes of a matrix, [rows, columns], and of its diagonals.
    """
    rows, columns = shapes[0]
    there = places(rows, columns, band, align)
    if "Part" in name:
        return there.reshape(-1)
    if there.size != prod(shapes[1]):
        raise ModelError(f"diagonals of shape {shapes[1]}, expected {there.shape}")
    count = rows * columns
    before = count if "Set" in name else 0
    found = np.arange(count) if before else np.full(count, -1, np.int64)
    valid = there >= 0
    found[there[valid]] = before + np.arange(there.size).reshape(there.shape)[valid]
    return found
