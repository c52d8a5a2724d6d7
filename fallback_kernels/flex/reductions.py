"""TensorFlow's operators that reduce, scan, count and combine segments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.flex.rest import refuse_rest
from tflite_ort.fallback_kernels.idioms.scattering import combine_at
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, ModelError, OperatorView, TensorType
from tflite_ort.schema.shapes.gather_scatter import segments_shape
from tflite_ort.schema.shapes.registry import shown, single
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.semantics import normalized_axes, normalized_axis

View = OperatorView[Any]
_T = TensorType
INTEGERS = frozenset(
    {_T.INT8, _T.UINT8, _T.INT16, _T.UINT16, _T.INT32, _T.UINT32, _T.INT64, _T.UINT64}
)
FLOATS = frozenset({_T.FLOAT32, _T.FLOAT64})
COMPLEX = frozenset({_T.COMPLEX64, _T.COMPLEX128})


def of_types(types: frozenset[TensorType]) -> Callable[[View], None]:
    """What makes an operator ready whose first input has to have one of `types`. TensorFlow adds
    16-bit floats in an order of its own, with a rounding at each step."""

    def state(op: View) -> None:
        found = op.present_inputs()[0].type
        if found not in types:
            names = " ".join(sorted(type.name for type in types))
            raise ModelError(f"{op.label}: {found.name} is not computed here, but {names}")

    return state


_REDUCERS: dict[str, Callable[..., Any]] = {
    "Max": np.max,
    "Min": np.min,
    "Prod": np.prod,
    "Sum": np.sum,
}


@flex_kernel("Max", "Min", state=of_types(FLOATS | INTEGERS | {_T.FLOAT16}))
def extremes(op: View, inputs: Inputs, state: State) -> Outputs:
    """The largest or the smallest along axes."""
    return (_reduced(op, inputs, _REDUCERS[op.name.removeprefix("Flex")]),)


@flex_kernel("Prod", "Sum", state=of_types(FLOATS | INTEGERS | COMPLEX | {_T.FLOAT16}))
def totals(op: View, inputs: Inputs, state: State) -> Outputs:
    """Sums or products along axes; integers wrap. Of 16-bit floats they are rounded once, where
    TensorFlow rounds partial ones too."""
    reduce = _REDUCERS[op.name.removeprefix("Flex")]
    wide = np.dtype(np.float32) if inputs[0].dtype == np.float16 else inputs[0].dtype
    return (_reduced(op, inputs, reduce, dtype=wide),)


@flex_kernel("Mean", state=of_types(FLOATS | COMPLEX | {_T.FLOAT16}))
def mean(op: View, inputs: Inputs, state: State) -> Outputs:
    """Means along axes."""
    wide = np.dtype(np.float32) if inputs[0].dtype == np.float16 else inputs[0].dtype
    return (_reduced(op, inputs, np.mean, dtype=wide),)


def _reduced(op: View, inputs: Inputs, reduce: Callable[..., Any], **how: Any) -> Array:
    array, axes = inputs
    gone = normalized_axes(axes, array.ndim)
    with np.errstate(all="ignore"):
        result = reduce(array, axis=gone, keepdims=node_of(op)["keep_dims"], **how)
    return np.asarray(result, array.dtype)


@flex_kernel("ArgMax", "ArgMin", state=of_types(FLOATS | INTEGERS | {_T.BOOL, _T.FLOAT16}))
def extreme_place(op: View, inputs: Inputs, state: State) -> Outputs:
    """The first place of the largest or the smallest along an axis."""
    array, axis = inputs[0], normalized_axis(single(inputs[1]), inputs[0].ndim)
    if not array.shape[axis]:
        raise KernelError(f"{op.name} along an empty axis")
    search = np.argmax if op.name == "FlexArgMax" else np.argmin
    return (search(array, axis).astype(op.output.dtype),)


@flex_kernel("Cumsum", "Cumprod", state=of_types(FLOATS | INTEGERS | COMPLEX))
def cumulated(op: View, inputs: Inputs, state: State) -> Outputs:
    """Running sums or products along an axis."""
    combine, start = (np.add, 0) if op.name == "FlexCumsum" else (np.multiply, 1)
    return (_scanned(op, inputs, combine, start),)


def _scanned(op: View, inputs: Inputs, combine: np.ufunc, start: float) -> Array:
    """From the end if reverse, without the element itself if exclusive."""
    array, node = inputs[0], node_of(op)
    axis = normalized_axis(single(inputs[1]), array.ndim)
    array = np.flip(array, axis) if node["reverse"] else array
    with np.errstate(all="ignore"):
        result = combine.accumulate(array, axis, dtype=array.dtype)
    if node["exclusive"] and array.shape[axis]:
        first = np.full_like(np.take(result, [0], axis), start)
        result = np.concatenate([first, np.delete(result, -1, axis)], axis)
    return np.flip(result, axis) if node["reverse"] else result


@flex_kernel("CumulativeLogsumexp", state=of_types(FLOATS))
def cumulative_logsumexp(op: View, inputs: Inputs, state: State) -> Outputs:
    """The logarithm of running sums of exponentials; of none it is -inf."""
    return (_scanned(op, inputs, np.logaddexp, -np.inf),)


def counted(
    rows: tuple[Array, int], values: Array, bins: int, weights: Array, binary: bool
) -> Array:
    """[rows, bins]: how often each value is there, or the sum of its weights. Values beyond the
    last bin are left out.

    Args:
        rows: the row of each value, and how many rows there are.
        weights: one for each value, or none at all.
    """
    places, count = rows
    if bins < 0 or (values.size and values.min() < 0):
        raise KernelError(f"{shown(values)} in {bins} bins")
    if weights.size and weights.size != values.size:
        raise KernelError(f"{weights.size} weights of {values.size} values")
    result = np.zeros((count, bins), weights.dtype)
    inside = values < bins
    at = places[inside], values[inside]
    if binary:
        result[at] = 1
    else:
        np.add.at(result, at, weights.reshape(-1)[inside] if weights.size else result.dtype.type(1))
    return result


@flex_kernel("Bincount", "DenseBincount")
def bincount(op: View, inputs: Inputs, state: State) -> Outputs:
    """How often each number is there, in each row of a matrix."""
    values, size, weights = inputs
    rows = values.shape[0] if values.ndim == 2 and op.name == "FlexDenseBincount" else 1
    places = np.repeat(np.arange(rows), values.size // max(rows, 1))
    binary = op.name == "FlexDenseBincount" and node_of(op)["binary_output"]
    flat, bins = values.reshape(-1), single(size)
    result = counted((places, rows), flat, bins, weights, binary)
    in_rows = values.ndim == 2 and op.name == "FlexDenseBincount"
    return (result if in_rows else result[0],)


# How rows are combined, and what a segment without any is.
_SEGMENTS = {
    "SegmentMax": (np.maximum, 0),
    "SegmentMin": (np.minimum, 0),
    "SegmentProd": (np.multiply, 1),
    "SegmentSum": (np.add, 0),
    "SegmentMean": (np.add, 0),
    "SegmentSqrtN": (np.add, 0),
}
_DIVIDED = ("SegmentMean", "SegmentSqrtN")


@flex_kernel(
    *(name for name in _SEGMENTS if name not in _DIVIDED), state=of_types(FLOATS | INTEGERS)
)
def segments(op: View, inputs: Inputs, state: State) -> Outputs:
    """Row i combines the rows with id i; ids ascend."""
    return (combined_segments(op.name.removeprefix("Flex"), *inputs),)


@flex_kernel("SegmentMean", state=of_types(FLOATS))
def segment_mean(op: View, inputs: Inputs, state: State) -> Outputs:
    """The sums through the numbers of rows."""
    return (combined_segments("SegmentMean", *inputs),)


def combined_segments(name: str, data: Array, ids: Array, count: int | None = None) -> Array:
    """The rows of `data` combined by ids that ascend.

    Args:
        count: how many segments there are; None for as many as the last id says.
    """
    combine, empty = _SEGMENTS[name]
    if ids.ndim != 1 or len(ids) != len(data) or (ids[1:] < ids[:-1]).any() or (ids < 0).any():
        raise KernelError(f"segment ids {shown(ids)} for {len(data)} rows")
    least = int(ids[-1]) + 1 if ids.size else 0
    if count is not None and count < least:
        raise KernelError(f"segment id {least - 1} of {count} segments")
    result = np.full((least if count is None else count, *data.shape[1:]), empty, data.dtype)
    if name in ("SegmentMax", "SegmentMin"):
        first = np.flatnonzero(np.diff(ids, prepend=-1))
        result[ids[first]] = data[first]
    combine_at(combine, result, ids, data)
    if name in _DIVIDED:
        sizes = np.maximum(np.bincount(ids, minlength=len(result)), 1).astype(data.dtype)
        sizes = np.sqrt(sizes) if name == "SegmentSqrtN" else sizes
        result /= sizes.reshape(-1, *(1,) * (data.ndim - 1))
    return result


_UNSORTED = {
    "UnsortedSegmentMax": np.maximum,
    "UnsortedSegmentMin": np.minimum,
    "UnsortedSegmentProd": np.multiply,
    "UnsortedSegmentSum": np.add,
}


def unsorted_start(name: str, dtype: np.dtype[Any]) -> Any:
    """What a segment without rows is."""
    if name in ("UnsortedSegmentProd", "UnsortedSegmentSum"):
        return dtype.type(name == "UnsortedSegmentProd")
    limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    return dtype.type(limits.min if name == "UnsortedSegmentMax" else limits.max)


@flex_kernel(*_UNSORTED, state=of_types(FLOATS | INTEGERS))
def unsorted_segments(op: View, inputs: Inputs, state: State) -> Outputs:
    """Row i combines the rows with id i; those with a negative id are left out."""
    data, ids, segments = inputs
    name = op.name.removeprefix("Flex")
    shape = segments_shape(data.shape, ids.shape, single(segments))
    if ids.size and ids.max() >= shape[0]:
        raise KernelError(f"segment id {ids.max()} of {shape[0]} segments")
    result = np.full(shape, unsorted_start(name, data.dtype))
    combine_at(_UNSORTED[name], result, ids[ids >= 0], data[ids >= 0])
    return (result,)


@flex_kernel("UpperBound")
def upper_bound(op: View, inputs: Inputs, state: State) -> Outputs:
    """How many elements of a sorted row are not above each value."""
    pairs = zip(*inputs, strict=True)
    found = [np.searchsorted(row, values, side="right") for row, values in pairs]
    return (np.array(found, op.output.dtype).reshape(inputs[1].shape),)


refuse_rest("reductions")
