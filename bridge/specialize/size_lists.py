"""Lists of sizes computed from shapes: what is known of them although the shapes depend on data.

An example: SHAPE of an image [batch, 14, 14, 64] with an unknown batch, its first element by
STRIDED_SLICE, and PACK of that with 7, 7 and 64, as the target of a RESHAPE. No element can be
computed before the run. Yet three elements of the target are known, and the first one is known to
be the image's batch.

How it is found:

1. The result of SHAPE is an array of objects, which are the sizes of the input's shape: an int for
   a known size, and for an unknown one the `UnknownSize` itself, here [batch, 14, 14, 64]. An
   object that stands for the same size is the same object.
2. Operators that only move elements, such as STRIDED_SLICE and PACK, move objects as well as
   numbers. So their numpy kernels run on these arrays: [batch] and then [batch, 7, 7, 64]. An
   element of an input of which nothing is known is None.
3. A kernel that does look at an element, and cannot, raises; then nothing is known of its result.
4. MUL and REDUCE_PROD of one unknown size and of numbers give a multiple of that size.
5. A list whose elements are all ints is a constant after all (`whole`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import replace
from tflite_ort.fallback_kernels import Kernel
from tflite_ort.schema import ActivationFunctionType, Op, OperatorView, TensorView
from tflite_ort.schema.file.errors import MALFORMED_OPERATOR
from tflite_ort.schema.values.semantics import normalized_axes
from tflite_ort.schema.values.sizes import LARGEST_SIZE, is_known, multiple
from tflite_ort.versioning.registry import Registry

Array = npt.NDArray[Any]

# These move elements and do not look at them: their kernels take arrays of objects.
_MOVES = frozenset(
    {
        Op.CONCATENATION,
        Op.EXPAND_DIMS,
        Op.GATHER,
        Op.PACK,
        Op.RESHAPE,
        Op.SLICE,
        Op.SPLIT,
        Op.SPLIT_V,
        Op.SQUEEZE,
        Op.STRIDED_SLICE,
        Op.UNPACK,
    }
)
_LONGEST = 64
_SIZE_BYTES = 4  # of TFLite's sizes


def with_size_lists(op: OperatorView[Any], kernels: Registry[Kernel]) -> OperatorView[Any]:
    """`op`, with what is known of its outputs if they are lists of sizes: `TensorView.sizes`, an
    array of the output's shape whose elements are int, `UnknownSize` or None."""
    if op.op is Op.SHAPE:
        source = op.present_inputs()[0]
        return _listed(op, [np.array(source.shape, np.object_)]) if source.ranked else op
    if op.op is Op.CAST and op.output.dtype.kind == "i":
        sizes = op.present_inputs()[0].sizes
        return op if sizes is None else _listed(op, [_cast(sizes, op.output.dtype)])
    if op.op in _PRODUCTS:
        return _multiplied(op)
    if op.op not in _MOVES or not any(_says_something(op, t) for t in op.present_inputs()):
        return op
    entry = kernels.of(op)
    if entry is None or not all(_is_short(tensor) for tensor in op.present_inputs()):
        return op
    try:
        arrays = [None if tensor is None else _elements(tensor) for tensor in op.inputs]
        results = entry.function(entry.inputs.bind(op), arrays, None)
    except MALFORMED_OPERATOR:  # it did look at an element
        return op
    return _listed(op, results)


def _says_something(op: OperatorView[Any], tensor: TensorView) -> bool:
    """Whether something is known of `tensor` that is part of the result."""
    joined = op.op in (Op.CONCATENATION, Op.PACK) and tensor.dtype.kind == "i"
    return tensor.sizes is not None or (joined and tensor.is_constant)


def _multiplied(op: OperatorView[Any]) -> OperatorView[Any]:
    """A product of sizes, which is a size again as long as one of them is unknown."""
    inputs, activation = op.present_inputs(), getattr(op.options, "fused_activation_function", None)
    read = inputs[:1] if op.op is Op.REDUCE_PROD else inputs
    if all(tensor.sizes is None for tensor in read) or not all(map(_is_short, inputs)):
        return op
    if op.output.dtype.kind != "i" or activation not in (None, ActivationFunctionType.NONE):
        return op
    first, *rest = (_elements(tensor).astype(np.object_) for tensor in read)
    if op.op is Op.MUL:
        return _listed(op, [np.asarray(_times(first, *rest))])
    axes = inputs[1].data
    if axes is None:
        return op
    listed = normalized_axes(axes, inputs[0].rank)
    made = _times.reduce(first, tuple(listed), keepdims=op.options.keep_dims, initial=1)
    return _listed(op, [np.asarray(made, np.object_)])


def _product(one: Any, other: Any) -> Any:
    """The product of two elements of lists of sizes; None where it is no multiple of a size."""
    if one is None or other is None or not (is_known(one) or is_known(other)):
        return None
    if is_known(one, other):
        return known if abs(known := int(one) * int(other)) <= LARGEST_SIZE else None
    size, factor = (other, one) if is_known(one) else (one, other)
    return multiple(size, int(factor)) if factor > 0 else None


_times = np.frompyfunc(_product, 2, 1)
_PRODUCTS = frozenset({Op.MUL, Op.REDUCE_PROD})


def _listed(op: OperatorView[Any], lists: Sequence[Array]) -> OperatorView[Any]:
    outputs = (
        replace(output, sizes=np.asarray(sizes, np.object_))
        for output, sizes in zip(op.outputs, lists, strict=True)
    )
    return replace(op, outputs=tuple(outputs))


def _cast(sizes: Array, dtype: np.dtype[Any]) -> Array:
    """`sizes` in another type: what does not fit it wraps, and an unknown size might not fit a
    type of less than 32 bits."""

    def number(size: Any) -> Any:
        if isinstance(size, int):
            return np.array(size, np.int64).astype(dtype).item()
        return size if dtype.itemsize >= _SIZE_BYTES else None

    return np.array([number(size) for size in sizes.reshape(-1)], np.object_).reshape(sizes.shape)


def _is_short(tensor: TensorView) -> bool:
    return not tensor.dynamic and math.prod(tensor.shape) <= _LONGEST


def _elements(tensor: TensorView) -> Array:
    """The values that are known, None for the others."""
    if tensor.data is not None:
        return tensor.data
    return np.full(tensor.shape, None, np.object_) if tensor.sizes is None else tensor.sizes


def complete_lists(tensors: Sequence[TensorView]) -> list[Array] | None:
    """The values of lists of sizes that are known entirely."""
    arrays = []
    for tensor in tensors:
        if tensor.sizes is None or not all(isinstance(n, int) for n in tensor.sizes.reshape(-1)):
            return None
        arrays.append(tensor.sizes.astype(tensor.dtype))
    return arrays
