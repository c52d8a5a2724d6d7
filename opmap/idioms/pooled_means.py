"""Means of codes over windows, as TFLite rounds them."""

from __future__ import annotations

import numpy as np

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.idioms.movement import moved_domain
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import OperatorView, Pool2DOptions, TensorType
from tflite_ort.schema.values.semantics import quantized_range
from tflite_ort.schema.values.sizes import may_differ

View = OperatorView[Pool2DOptions]

# Of 16 bits, for windows of up to 127 cells.
_AWAY = 1 + 2.0**-22


def step_of_codes(op: View, cells: int) -> float:
    """What an 8-bit code is read as, so that halves of means over so many cells are rounded away
    from zero and nothing else moves past a half: such a mean is a multiple of 1 / cells."""
    if op["input"].type is TensorType.INT16:
        return 1.0
    largest = max(map(abs, quantized_range(op["input"].type)))
    return 1 + 1 / (4 * largest * cells)


def moved_away(g: Graph, op: View, means: ir.Value) -> ir.Value:
    """Means of 16-bit codes, of which halves are moved away from zero. That is after the sum, which
    float32 holds: codes that are read too large lose as much where large ones cancel."""
    if op["input"].type is not TensorType.INT16:
        return means
    return g.op("Mul", means, g.constant(_AWAY, np.float32))


def write_means(op: View, g: Graph, codes: ir.Value) -> None:
    """Record carried codes of the input, channels first, as the output."""
    input, output = op["input"], op.output
    domain, activation = moved_domain(input, output), op.options.fused_activation_function
    codes = g.filed(codes, input) if domain is Domain.FILE else codes
    g.write(output, codes, layout=Layout.FIRST, domain=domain, activation=activation)


def is_global(op: View) -> bool:
    """Whether a single window holds the whole image, and there is no other one."""
    window = op.options.filter_height, op.options.filter_width
    whole = not may_differ(window, op["input"].shape[1:3])
    return whole and not may_differ(op.output.shape[1:3], (1, 1))
