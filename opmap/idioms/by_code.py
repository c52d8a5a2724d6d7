"""Operators of one operand that are a table of the result of every code."""

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
    """Gather of `results`, those of all 16-bit codes of the input in ascending order.

    Args:
        check: given the codes, returns them by way of what refuses some.
    """
    layout = g.layout(op["input"])
    codes = g.read(op["input"], layout=layout, domain=Domain.STORED)
    index = check(g.op("Cast", codes, to=ir.DataType.INT64))
    index = g.op("Add", index, g.constant(len(results) // 2, np.int64))
    result = g.op("Gather", g.constant(results), index)
    g.write(op.output, result, layout=layout, domain=Domain.STORED)
