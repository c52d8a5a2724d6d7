"""TensorFlow's operators on diagonals: Gather of the places of a matrix in a line."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.flex.elementwise import (
    FLOATS,
    INTEGERS,
    computed_type,
    read_computed,
    write_computed,
)
from tflite_ort.opmap.graph import Graph, Layout
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import flex_translator
from tflite_ort.schema import OperatorView, TensorType, TensorView, Untranslatable
from tflite_ort.schema.shapes.flex.diagonals import alignment, band_of, sources
from tflite_ort.schema.values.sizes import has_zero, is_known

View = OperatorView[Any]
Array = npt.NDArray[Any]
_TYPES = FLOATS | INTEGERS | {TensorType.BOOL}


def _read(g: Graph, tensor: TensorView) -> ir.Value:
    return read_computed(g, tensor, _TYPES, Layout.LAST)


def _write_taken(op: View, g: Graph, flat: ir.Value, places: Array) -> None:
    """The elements of `flat` [..., N] at `places`; padding where they are -1."""
    value = g.op("Gather", flat, g.ints(np.maximum(places, 0)), axis=-1)
    if (places < 0).any():
        if "padding_value" in op.names:
            padding = g.reshape(_read(g, op["padding_value"]), ())
        else:
            padding = g.constant(0, computed_type(op.output.type))
        value = g.op("Where", g.constant(places >= 0), value, padding)
    write_computed(g, op.output, g.reshape(value, op.output.shape), Layout.LAST)


def _sizes(op: View, matrix: Sequence[int]) -> tuple[int, int]:
    rows, columns = matrix[-2:]
    if not is_known(rows, columns) or has_zero(*op.output.shape, *op.present_inputs()[0].shape):
        raise Untranslatable("matrices without elements, or of sizes that are not known")
    return rows, columns


def _band(op: View) -> tuple[int, int]:
    if "k" not in op.names:
        return 0, 0
    if op["k"].data is None:
        raise Untranslatable("diagonals that the file does not tell")
    return band_of(op["k"].data)


@flex_translator("MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3", "BatchMatrixDiagPart")
def matrix_diag_part(op: View, g: Graph) -> None:
    """Gather of the places of the diagonals."""
    shape = op["input"].shape
    sizes, band = _sizes(op, shape), _band(op)
    taken = sources(op.name, (sizes, ()), band, alignment(op))
    flat = g.reshape(_read(g, op["input"]), (*shape[:-2], prod(sizes)))
    _write_taken(op, g, flat, taken)


@flex_translator("MatrixDiag", "MatrixDiagV2", "MatrixDiagV3", "BatchMatrixDiag")
def matrix_diag(op: View, g: Graph) -> None:
    """Gather of a place of the diagonals for every place of the matrix."""
    shape, band = op["diagonal"].shape, _band(op)
    sizes = _sizes(op, op.output.shape)
    axes = 1 if band[0] == band[1] else 2
    last = shape[-axes:]
    taken = sources(op.name, (sizes, last), band, alignment(op))
    flat = g.reshape(_read(g, op["diagonal"]), (*shape[:-axes], prod(last)))
    _write_taken(op, g, flat, taken)


@flex_translator("MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3", "BatchMatrixSetDiag")
def matrix_set_diag(op: View, g: Graph) -> None:
    """Gather of the places of the matrix and of the diagonals."""
    shape, diagonal = op["input"].shape, op["diagonal"].shape
    sizes, band = _sizes(op, shape), _band(op)
    batch = shape[:-2]
    last = diagonal[len(batch) :]
    taken = sources(op.name, (sizes, last), band, alignment(op))
    parts = (
        g.reshape(_read(g, op["input"]), (*batch, prod(sizes))),
        g.reshape(_read(g, op["diagonal"]), (*batch, prod(last))),
    )
    _write_taken(op, g, g.op("Concat", *parts, axis=-1), taken)


@flex_translator("Diag", "DiagPart")
def diag(op: View, g: Graph) -> None:
    """As of one matrix."""
    small = op.output if op.name == "FlexDiagPart" else op.present_inputs()[0]
    if not is_known(*small.shape) or has_zero(*small.shape):
        raise Untranslatable("no elements, or sizes that are not known")
    count = prod(small.shape)
    name = "MatrixDiagPart" if op.name == "FlexDiagPart" else "MatrixDiag"
    taken = sources(name, ((count, count), (count,)), (0, 0), "LEFT_LEFT")
    _write_taken(op, g, g.reshape(_read(g, op.present_inputs()[0]), (-1,)), taken)
