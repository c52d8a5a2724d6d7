"""Functions of one quantised operand as a table with the result of every code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.schema import OperatorView, TensorType
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.schema.values.semantics import quantized_range

Array = npt.NDArray[Any]


def every_code(type_: TensorType) -> Array:
    """All codes of a quantised type, ascending."""
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
        results: the output code of every 16-bit input code, in ascending order.
        check: passes the codes on; its nodes may fail on some of them.
    """
    layout = g.layout(op["input"])
    codes = g.read(op["input"], layout=layout, domain=Domain.STORED)
    index = check(g.cast(codes, ir.DataType.INT64))
    index = g.op("Add", index, g.ints(len(results) // 2))
    result = g.op("Gather", g.constant(results), index)
    g.write(op.output, result, layout=layout, domain=Domain.STORED)
