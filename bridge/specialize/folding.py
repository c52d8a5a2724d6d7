"""Operators whose results are the same at every invoke, computed once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.fallback_kernels import Kernel, kernel
from tflite_ort.schema import KernelError, ModelError, Op, OperatorView, TensorType, TensorView
from tflite_ort.schema.file.budgets import Meter
from tflite_ort.schema.file.element_types import PACKED_BITS
from tflite_ort.schema.file.errors import MALFORMED_OPERATOR, said_of_file
from tflite_ort.schema.values.sizes import is_known
from tflite_ort.specialize.computed_sizes import bytes_of
from tflite_ort.versioning.registry import Entry, Registry

Array = npt.NDArray[Any]

# The value of these depends on the input's shape alone.
OF_SHAPE = frozenset({Op.SHAPE, Op.RANK})
# These refuse values, also where no element of the result depends on them.
_REFUSING = frozenset(
    {
        *(Op.GATHER, Op.GATHER_ND, Op.SCATTER_ND, Op.EMBEDDING_LOOKUP, Op.EMBEDDING_LOOKUP_SPARSE),
        *(Op.SPARSE_TO_DENSE, Op.SEGMENT_SUM, Op.REVERSE_SEQUENCE, Op.SLICE),
        *(Op.UNSORTED_SEGMENT_SUM, Op.UNSORTED_SEGMENT_PROD),
        *(Op.UNSORTED_SEGMENT_MAX, Op.UNSORTED_SEGMENT_MIN),
        *(Op.DIV, Op.FLOOR_DIV, Op.FLOOR_MOD, Op.POW),
    }
)
# These round floats that meet integer weights, or do not: the option `hybrid` says which.
_PRODUCTS = frozenset(
    {
        *(Op.FULLY_CONNECTED, Op.BATCH_MATMUL),
        *(Op.CONV_2D, Op.DEPTHWISE_CONV_2D, Op.TRANSPOSE_CONV),
    }
)
# A constant larger than this is computed only if it is not much larger than what it comes from.
_FOLDED_BYTES = 1 << 20
# So many names of what an operator reads stand in its errors.
_MOST_NAMES = 3


def folded(
    op: OperatorView[Any], kernels: Registry[Kernel], meter: Meter | None = None
) -> Sequence[Array] | None:
    """The results of `op` if they are the same at every invoke and not too large to keep.

    Raises:
        KernelError: all inputs are constants, and the kernel refuses them.
        BudgetExceeded: with them there are more constants than the budget that `meter` counts, or
            one of them is too large.
    """
    inputs = op.present_inputs()
    is_constant = False not in [tensor.constant is not None for tensor in inputs]
    if not inputs or not (is_constant or op.op in OF_SHAPE or _is_without_data(op)):
        return None  # without a look at the kernel, whose module may not be imported
    entry = kernels.of(op)
    if entry is None or entry.state is not None:
        return None
    if op.op in OF_SHAPE:
        return _of_shape(op, entry)
    if not _is_foldable(op, entry, is_constant):
        return None
    if meter is not None:
        for tensor in op.outputs:
            if not tensor.dynamic:  # also one of no elements: see `bytes_of`
                meter.check("tensor_bytes", bytes_of(tensor), op.label)
        meter.spend("folded_bytes", _bytes_made(op), op.label)
    try:
        return _of_constants(op, entry)
    except KernelError:
        if is_constant:
            raise
        return None  # it may fail at each invoke


def _is_foldable(op: OperatorView[Any], entry: Entry[Kernel], is_constant: bool) -> bool:
    # A user's own kernel is not run beside invokes.
    is_known = is_constant or (entry is kernel.of(op) and _is_without_data(op))
    left = _is_large(op) or _is_hybrid(op) or any(each.is_variable for each in op.outputs)
    return is_known and not left


def _is_hybrid(op: OperatorView[Any]) -> bool:
    """Whether floats meet integer weights, in an operator whose arithmetic an option chooses."""
    real = op.op in _PRODUCTS and op.output.type is TensorType.FLOAT32
    return real and any(tensor.is_quantized for tensor in op.present_inputs())


def _of_constants(op: OperatorView[Any], entry: Entry[Kernel]) -> Sequence[Array]:
    with np.errstate(all="ignore"):
        return run_kernel(entry.inputs.bind(op), entry, [_data(tensor) for tensor in op.inputs])


def _of_shape(op: OperatorView[Any], entry: Entry[Kernel]) -> Sequence[Array] | None:
    """The result of SHAPE or RANK, if it is known."""
    (source, *_) = op.present_inputs()
    if not source.ranked or (source.dynamic and op.op is Op.SHAPE):
        return None
    shape = tuple(size if is_known(size) else 1 for size in source.shape)
    shaped = np.broadcast_to(np.zeros((), source.dtype), shape)
    return run_kernel(entry.inputs.bind(op), entry, [shaped])


def _is_large(op: OperatorView[Any]) -> bool:
    before = sum(t.data.nbytes for t in op.present_inputs() if t.data is not None)
    return _bytes_made(op) > max(_FOLDED_BYTES, 4 * before)


def _bytes_made(op: OperatorView[Any]) -> int:
    """The bytes of the outputs whose shapes are known."""
    return sum(math.prod(out.shape) * out.dtype.itemsize for out in op.outputs if not out.dynamic)


def _is_without_data(op: OperatorView[Any]) -> bool:
    """Whether no element that is computed comes into the results: there is none, or they have
    none."""
    inputs = [tensor for tensor in op.present_inputs() if tensor.constant is None]
    nothing_out = op.op not in _REFUSING and all(map(_is_empty, op.outputs))
    if not (nothing_out or all(map(_is_empty, inputs))):
        return False
    tensors = (*inputs, *op.outputs)
    return bool(op.outputs) and not any(each.is_variable or each.dynamic for each in tensors)


def _is_empty(tensor: TensorView) -> bool:
    """Whether it is known to have no elements."""
    return not tensor.dynamic and 0 in tensor.shape


def _data(tensor: TensorView | None) -> Array | None:
    """The values of a constant; zeros for what does not count.

    Raises:
        ModelError: the shape has no elements and is nevertheless too large for an array.
    """
    if tensor is None or tensor.is_constant:
        return None if tensor is None else tensor.data
    zero = np.array(b"" if tensor.dtype.hasobject else 0, tensor.dtype)
    try:
        return np.broadcast_to(zero, tensor.shape)
    except ValueError as error:
        raise ModelError(f"a tensor of shape {tensor.shape}: {error}") from error


def _reading(op: OperatorView[Any]) -> str:
    """The names of what an operator computes from, for its errors; constants and what has no name
    are not told."""
    names = [repr(each.name) for each in op.present_inputs() if each.name and not each.is_constant]
    if not names:
        return ""
    more = len(names) - _MOST_NAMES
    told = names[:_MOST_NAMES] + ([f"{more} more"] if more > 0 else [])
    return f", which reads {' and '.join(told)},"


def run_kernel(
    op: OperatorView[Any], entry: Entry[Kernel], inputs: Sequence[Array | None], state: Any = None
) -> Sequence[Array]:
    """The results of a numpy kernel: the outputs, then the new values of variable inputs.

    Raises:
        KernelError: names the operator; the kernel refused, or made another dtype than declared.
    """
    try:
        results = entry.function(op, inputs, state)
    except (KernelError, MemoryError, *MALFORMED_OPERATOR) as error:
        cause = error.__cause__ or error
        said = said_of_file(error)
        raise KernelError(f"{op.label}{_reading(op)} failed to invoke: {said}") from cause
    arrays = list(map(_array, results))
    made = (*op.outputs, *op.variables())
    if len(arrays) != len(made):
        raise KernelError(
            f"{op.label}: the kernel made {len(arrays)} results, expected {len(made)}"
        )
    for tensor, result in zip(made, arrays, strict=True):
        if result.dtype != tensor.dtype:
            raise KernelError(
                f"{op.label}: the kernel made {result.dtype}, the model says {tensor.dtype}"
            )
        bits = PACKED_BITS.get(tensor.type)
        if bits is not None and not _fits(result, bits):
            raise KernelError(f"{op.label}: the kernel made codes that {tensor.type.name} lacks")
    return arrays


def _array(result: Any) -> Array:
    """A result as an array: numpy returns a scalar for a single element, bytes for a text."""
    return np.asarray(result, object if isinstance(result, bytes) else None)


def _fits(codes: Array, bits: int) -> bool:
    """Whether all codes, in arrays of bytes, have so few bits."""
    limits = np.iinfo(codes.dtype)
    parts = 1 << (8 - bits)
    low, high = limits.min // parts, (limits.max + 1) // parts - 1
    return not codes.size or bool(low <= codes.min() and codes.max() <= high)
