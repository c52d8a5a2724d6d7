"""Results that are much larger than what they are made of: refused before memory is taken.

Where only values tell a size, it is looked at when the model runs, before the operator does. The
shape rule of the operator tells it from the values of the inputs, as it does from constants. A
graph looks for itself, see `affordable`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy.typing as npt

from tflite_ort.base.optional import late
from tflite_ort.base.records import replace
from tflite_ort.fallback_kernels import Kernel, custom_kernel, kernel
from tflite_ort.schema import Op, OperatorView, TensorView, Untranslatable
from tflite_ort.schema.file.budgets import ENLARGED, LEAST_BYTES, Meter
from tflite_ort.schema.file.errors import MALFORMED_OPERATOR, ModelError
from tflite_ort.schema.shapes import output_shapes
from tflite_ort.schema.shapes.registry import Shapes
from tflite_ort.schema.values.sizes import UnknownSize, has_zero, known_product
from tflite_ort.versioning.registry import Registry

Array = npt.NDArray[Any]

with late:
    from tflite_ort.schema.shapes import stablehlo as windows

_STRING = 40  # bytes of the shortest, in Python
# These pad what they read, on the way to a result.
PADDING = (Op.STABLEHLO_REDUCE_WINDOW, Op.STABLEHLO_PAD)


def has_computed_sizes(op: OperatorView[Any], kernels: Registry[Kernel]) -> bool:
    """Whether there is anything to look at; what a user registered has no shape rule."""
    if not any(tensor.dynamic for tensor in op.outputs):
        return False
    return kernels.shares(custom_kernel if op.op is Op.CUSTOM else kernel, op)


def check_results(op: OperatorView[Any], inputs: Sequence[Array | None], meter: Meter) -> None:
    """Refuse results of `op` that are too large, for these values of its inputs.

    Raises:
        BudgetExceeded: one takes more than `meter` allows.
    """
    known = replace(op, inputs=tuple(map(_valued, op.inputs, inputs)))
    for tensor, shape in zip(op.outputs, _shapes(known) or (), strict=False):
        check_result(known, replace(tensor, shape=tuple(shape), ranked=True), meter)


def check_result(op: OperatorView[Any], result: TensorView, meter: Meter) -> None:
    """Refuse a result of `op` that is too large, if its size is known.

    Raises:
        BudgetExceeded: it takes more than `meter` allows.
    """
    if not result.dynamic and (size := _needed(op, result)) > meter.allowed("result_bytes"):
        given = sum(_counted(tensor) for tensor in op.present_inputs() if not tensor.dynamic)
        meter.check("result_bytes", max(size - ENLARGED * given, 0), op)


def is_small(tensor: TensorView, meter: Meter) -> bool:
    """Whether `meter` allows what a tensor takes, whatever its type is."""
    if UnknownSize in map(type, tensor.shape):
        return False
    return 0 < prod(tensor.shape) * _STRING <= meter.small


def _needed(op: OperatorView[Any], result: TensorView) -> int:
    """What a result counts, or what the operator makes on the way to it."""
    size = _counted(result)
    if op.op in PADDING and not op["input"].dynamic:
        size = max(size, _counted(replace(op["input"], shape=windows.padded_input(op))))
    return size


def _counted(tensor: TensorView) -> int:
    """What a tensor counts of the budget."""
    return bytes_of(tensor, LEAST_BYTES)


def bytes_of(tensor: TensorView, least: int = 1) -> int:
    """What a tensor takes, as far as its sizes are known; without its sizes of 0, since kernels
    list the places along every axis.

    Args:
        least: bytes that an element takes at least.
    """
    size = _STRING if tensor.dtype.hasobject else max(tensor.dtype.itemsize, least)
    known = known_product(tensor.shape)
    if not known:
        known = known_product([each for each in tensor.shape if not has_zero(each)])
    return known * size


def _shapes(op: OperatorView[Any]) -> Shapes | None:
    """The shapes of the results; None where values do not tell them, or the kernel refuses them."""
    try:
        return output_shapes(op)
    except (Untranslatable, ModelError, *MALFORMED_OPERATOR):
        return None


def _valued(tensor: TensorView | None, array: Array | None) -> TensorView | None:
    if tensor is None or array is None or tensor.is_constant:
        return tensor
    return replace(tensor, shape=array.shape, constant=array, ranked=True)
