"""Functions of one quantized operand as a table with the result of every code."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.graph.forms import carried_codes, carried_type
from tflite_ort.opmap.idioms.indices import failing
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import Op, OperatorView, TensorType, TensorView, Untranslatable
from tflite_ort.schema.arithmetic import function_table
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.schema.values.semantics import quantized_range
from tflite_ort.schema.values.sizes import is_known

Array = npt.NDArray[Any]

# More codes take as long as three nodes of reals.
_SHORT = 1024


def every_code(type_: TensorType) -> Array:
    """All codes of a quantized type, ascending."""
    low, high = quantized_range(type_)
    return np.arange(low, high + 1).astype(NUMPY_DTYPE[type_])


def by_code(
    op: OperatorView[Any],
    g: Graph,
    results: Array,
    check: Callable[[ir.Value], ir.Value] = lambda codes: codes,
) -> None:
    """Write the output of `op` as a Gather from the table `results`.

    Args:
        results: the output code of every input code, in ascending order.
        check: passes the codes on; its nodes may fail on some of them.
    """
    layout = Layout.LAST if g.transposes_cancel(op["input"]) else g.layout(op["input"])
    result = looked_up(g, op["input"], layout, op.output, results, check)
    g.write(op.output, result, layout=layout, domain=Domain.STORED)


def looked_up(
    g: Graph,
    tensor: TensorView,
    layout: Layout,
    output: TensorView,
    results: Array,
    check: Callable[[ir.Value], ir.Value] = lambda codes: codes,
) -> ir.Value:
    """The carried codes of `output` that a table has for those of `tensor`; as `by_code`."""
    codes = g.read(tensor, layout=layout, domain=Domain.STORED)
    index = check(g.cast(codes, ir.DataType.INT64))
    lowest = -quantized_range(carried_type(tensor))[0]
    if lowest and g.target.exact_integers:
        results = np.roll(results, lowest)
    elif lowest:
        index = g.op("Add", index, g.ints(lowest))
    results = carried_codes(results, output.type, carried_type(output))
    found = g.op("Gather", g.constant(results), index)
    if g.target.only_runs and is_known(*tensor.shape) and layout is not Layout.ROWS:
        found.shape = layout.shape(tensor.shape)  # see `look_up_elements`
    return found


def is_short_row(g: Graph, tensor: TensorView) -> bool:
    """Whether codes along the last axis alone are looked up in the time of two nodes of reals."""
    shape = tensor.shape
    if not g.target.code_tables or not is_known(*shape):
        return False
    return shape[-1:] == (prod(shape),) and shape[-1] <= _SHORT


def by_tabulated_code(op: OperatorView[Any], g: Graph) -> bool:
    """Gather from a table of all 16-bit codes, since TFLite interpolates a coarse one.

    Returns False, and writes nothing, for codes that do not have 16 bits.
    """
    input, output = op["input"], op.output
    if not input.type is output.type is TensorType.INT16:
        return False
    given, made = input.quantization, output.quantization
    if given is None or made is None or given.scalar_zero_point or made.scalar_zero_point:
        raise Untranslatable("INT16 without a scale, or with a zero point")
    function = function_table.tabulated_function(op, np.float32(made.scalar_scale), 0)
    results = function_table.int16_function(
        every_code(TensorType.INT16), function, given.scalar_scale, made.scalar_scale
    )
    if op.op is Op.RSQRT:
        by_code(op, g, results, partial(failing_below_0, g))
    else:
        by_code(op, g, results)
    return True


def failing_below_0(g: Graph, codes: ir.Value) -> ir.Value:
    """Codes, in a graph that fails where there is one below 0."""
    return failing(g, codes, g.op("Less", codes, g.ints(0)))
