"""TensorFlow's operators that reduce, scan, count and combine segments.

Those that TFLite's own take the place of are not here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tflite_ort.opmap.flex.elementwise import (
    FLOATS,
    INTEGERS,
    computed_type,
    read_computed,
    write_computed,
)
from tflite_ort.opmap.graph import Graph, Layout
from tflite_ort.opmap.idioms.indices import affordable, agreeing, failing, scattered, sizes_of
from tflite_ort.opmap.idioms.scan import Values, scan
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import flex_translator
from tflite_ort.schema import OperatorView, TensorType, TensorView, Untranslatable
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.semantics import normalized_axis
from tflite_ort.schema.values.sizes import has_zero, is_known, quotient

View = OperatorView[Any]
_T = TensorType
_WIDE = frozenset({_T.FLOAT32, _T.FLOAT64})
_HALF = _WIDE | {_T.FLOAT16}
_LAST = np.iinfo(np.int64).max


_REDUCERS = {
    "Max": ("ReduceMax", _HALF | INTEGERS - {_T.UINT64}),
    "Mean": ("ReduceMean", _HALF),
    "Min": ("ReduceMin", _HALF | INTEGERS - {_T.UINT64}),
    "Prod": ("ReduceProd", _HALF | INTEGERS),
    "Sum": ("ReduceSum", _HALF | INTEGERS),
}


@flex_translator(*_REDUCERS)
def reduction(op: View, g: Graph) -> None:
    """The node of `_REDUCERS`."""
    node, types = _REDUCERS[op.name.removeprefix("Flex")]
    if has_zero(*op["input"].shape):
        raise Untranslatable("no element")
    value = read_computed(g, op["input"], types, Layout.LAST)
    axes = g.reshape(g.whole(op["reduction_indices"]), (-1,))
    keep = int(node_of(op)["keep_dims"])
    result = g.op(node, value, axes, keepdims=keep, noop_with_empty_axes=1)
    write_computed(g, op.output, result, Layout.LAST)


@flex_translator("ArgMax", "ArgMin")
def extreme_place(op: View, g: Graph) -> None:
    """ArgMax or ArgMin."""
    x, where = op["input"], op["dimension"].data
    if where is None or has_zero(*x.shape):
        raise Untranslatable("an axis that the file does not tell, or no elements")
    types = _WIDE | INTEGERS - {_T.UINT64} | {_T.BOOL, _T.FLOAT16}
    value = read_computed(g, x, types, Layout.LAST)
    if computed_type(x.type) == np.int64 and x.type is not _T.INT64:
        raise Untranslatable(f"ONNX Runtime does not compute this of {x.type.name}")
    axis = normalized_axis(int(where.item()), x.rank)
    places = g.op(op.name.removeprefix("Flex"), value, axis=axis, keepdims=0)
    g.write(op.output, g.cast(places, op.output.dtype))


@flex_translator("Cumsum")
def cumsum(op: View, g: Graph) -> None:
    """CumSum."""
    node = node_of(op)
    value = read_computed(g, op["x"], _WIDE | INTEGERS, Layout.LAST)
    axis = g.reshape(g.whole(op["axis"]), ())
    exclusive, reverse = int(node["exclusive"]), int(node["reverse"])
    result = g.op("CumSum", value, axis, exclusive=exclusive, reverse=reverse)
    write_computed(g, op.output, result, Layout.LAST)


@flex_translator("Cumprod")
def cumprod(op: View, g: Graph) -> None:
    """Scan of Mul."""
    _scanned(op, g, _WIDE | INTEGERS, lambda total, each: g.op("Mul", total, each), 1)


@flex_translator("CumulativeLogsumexp")
def cumulative_logsumexp(op: View, g: Graph) -> None:
    """Scan of the larger number, plus Log(1 + Exp(-difference))."""
    one = g.constant(1, op.output.dtype)

    def added(total: ir.Value, each: ir.Value) -> ir.Value:
        apart = g.op("Neg", g.op("Abs", g.op("Sub", total, each)))
        # Of two infinite numbers the difference is none.
        apart = g.op("Where", g.op("Equal", total, each), g.constant(0, op.output.dtype), apart)
        more = g.op("Log", g.op("Add", one, g.op("Exp", apart)))
        return g.op("Add", g.op("Max", total, each), more)

    _scanned(op, g, _WIDE, added, -np.inf)


def _scanned(op: View, g: Graph, types: frozenset[TensorType], combine: Any, start: float) -> None:
    """A Scan along an axis, which the file has to tell."""
    x, where, node = op["x"], op["axis"].data, node_of(op)
    if where is None or has_zero(*x.shape):
        raise Untranslatable("an axis that the file does not tell, or no elements")
    axis = normalized_axis(int(where.item()), x.rank)
    value, wide = read_computed(g, x, types, Layout.LAST), computed_type(x.type)
    rest = [size for place, size in enumerate(x.shape) if place != axis]
    first = g.op("Expand", g.constant(start, wide), g.shape(rest)) if rest else None
    first = g.constant(start, wide) if first is None else first
    exclusive = node["exclusive"]

    def step(states: Values, slices: Values) -> tuple[Values, Values]:
        total = combine(states[0], slices[0])
        return [total], [g.op("Identity", states[0] if exclusive else total)]

    order = [axis, *(place for place in range(x.rank) if place != axis)]
    along = g.op("Transpose", value, perm=order)
    kinds = [ir.DataType.from_numpy(wide)] * 2
    _, (result,) = scan(
        g, step, [first], [along], single=False, reverse=node["reverse"], types=kinds
    )
    back = g.op("Transpose", result, perm=np.argsort(order).tolist())
    write_computed(g, op.output, back, Layout.LAST)


@flex_translator("Bincount")
def bincount(op: View, g: Graph) -> None:
    """ScatterElements (add) of all numbers as one row."""
    values = g.reshape(g.whole(op["arr"]), (1, -1))
    result = counted(op, g, (values, g.ints([1])), op["weights"], op["size"])
    write_computed(g, op.output, g.op("Squeeze", result, g.ints([0])), Layout.LAST)


@flex_translator("DenseBincount")
def dense_bincount(op: View, g: Graph) -> None:
    """ScatterElements (add) in each row."""
    values = op["input"]
    if values.rank != 2:
        whole = g.reshape(g.whole(values), (1, -1))
        result = counted(op, g, (whole, g.ints([1])), op["weights"], op["size"])
        result = g.op("Squeeze", result, g.ints([0]))
    else:
        rows = g.whole(values), g.size(values.shape[0])
        result = counted(op, g, rows, op["weights"], op["size"])
    write_computed(g, op.output, result, Layout.LAST)


def counted(
    op: View,
    g: Graph,
    rows: tuple[ir.Value, ir.Value],
    weights: TensorView,
    size: TensorView,
) -> ir.Value:
    """[rows, bins]; numbers beyond the last bin go to one more, which is sliced off. The graph
    fails on a negative number.

    Args:
        rows: the numbers [rows, N] as int64, and how many rows there are, int64 [1].
        weights: one for each number, or none at all.
    """
    values, height = rows
    if not is_known(*weights.shape) and weights.rank == 1:
        raise Untranslatable("weights of a number that is not known")
    wide = computed_type(weights.type)
    bins = g.reshape(sizes_of(g, size), (1,))
    if not is_known(*op.output.shape):
        bins = affordable(g, bins, g.op("Concat", height, bins, axis=0), op)
    below = g.cast(g.op("Less", values, g.ints(0)), ir.DataType.INT64)
    wrong = g.op("Greater", g.op("ReduceSum", below, keepdims=0), g.ints(0))
    places = g.smaller(values, failing(g, bins, wrong))
    zero = g.constant(0, wide)
    ends = g.op("Concat", height, g.op("Add", bins, g.ints([1])), axis=0)
    base = g.op("Expand", zero, ends)
    binary = op.name != "FlexBincount" and node_of(op)["binary_output"]
    if has_zero(*weights.shape) or binary:
        updates = g.op("Expand", g.constant(1, wide), g.op("Shape", places))
    else:
        read = read_computed(g, weights, frozenset({weights.type}), Layout.LAST)
        updates = g.op("Reshape", read, g.op("Shape", places))
    reduction = "none" if binary else "add"
    whole = g.op("ScatterElements", base, places, updates, axis=1, reduction=reduction)
    return g.op("Slice", whole, g.ints([0]), bins, g.ints([1]))


_SORTED = {"SegmentMax": "max", "SegmentMin": "min", "SegmentProd": "mul", "SegmentSum": "add"}


@flex_translator(*_SORTED, "SegmentMean")
def segments(op: View, g: Graph) -> None:
    """ScatterElements with a reduction."""
    name = op.name.removeprefix("Flex")
    types = _WIDE if name == "SegmentMean" else _WIDE | INTEGERS - {_T.UINT64}
    data, ids = op["data"], op["segment_ids"]
    if has_zero(*data.shape):
        raise Untranslatable("no element")
    rows = agreeing(g, ascending(g, ids), ids.shape, data.shape[:1])
    value = read_computed(g, data, types, Layout.LAST)
    write_segments(op, g, name, (value, ids.shape[0]), rows)


def ascending(g: Graph, ids: TensorView) -> ir.Value:
    """Ids as int64, in a graph that fails unless they ascend from 0 or more."""
    numbers = ids.data
    if numbers is not None:
        if not numbers.size or (numbers[1:] < numbers[:-1]).any() or numbers[0] < 0:
            raise Untranslatable("segment ids that do not ascend")
        return g.ints(numbers)
    rows = g.whole(ids)
    before = g.op("Slice", g.op("Concat", g.ints([0]), rows, axis=0), g.ints([0]), g.ints([-1]))
    return failing(g, rows, g.op("Less", rows, before))


def write_segments(
    op: View,
    g: Graph,
    name: str,
    data: tuple[ir.Value, int],
    rows: ir.Value,
    count: ir.Value | None = None,
) -> None:
    """The rows of `data`, of which there are as many as it says, combined by `rows`, int64 [N].

    Args:
        count: how many segments there are, int64 [1]; None for as many as the last id says.
    """
    value, length = data
    wide, rest = computed_type(op.output.type), op.output.shape[1:]
    if count is None:
        bounds = (g.ints([bound]) for bound in (-1, _LAST, 0))
        count = g.op("Add", g.op("Slice", rows, *bounds), g.ints([1]))
    sizes = g.op("Concat", count, g.shape(rest), axis=0) if rest else count
    count = affordable(g, count, sizes, op)
    reduction = _SORTED.get(name, "add")
    start = g.constant(_start(reduction, wide))
    shape = (count, g.shape(rest) if rest else ())
    result = scattered(g, start, shape, rows, value, length, reduction=reduction)
    if name in ("SegmentMax", "SegmentMin", "SegmentMean", "SegmentSqrtN"):
        ones = g.op("Expand", g.ints(1), g.op("Shape", rows))
        none = g.op("Expand", g.ints(0), count)
        numbers = g.op("ScatterElements", none, rows, ones, axis=0, reduction="add")
        numbers = g.op("Unsqueeze", numbers, g.ints([1]))
        if name in ("SegmentMean", "SegmentSqrtN"):
            divisor = g.cast(g.larger(numbers, g.ints(1)), wide)
            divisor = g.op("Sqrt", divisor) if name == "SegmentSqrtN" else divisor
            result = g.op("Div", result, divisor)
        else:
            there = g.op("Greater", numbers, g.ints(0))
            result = g.op("Where", there, result, g.constant(0, wide))
    result = g.op("Reshape", result, sizes, allowzero=1)
    write_computed(g, op.output, result, Layout.LAST)


def _start(reduction: str, dtype: np.dtype[Any]) -> Any:
    """What a number is combined with that stays as it is."""
    if reduction in ("add", "mul"):
        return dtype.type(reduction == "mul")
    if dtype.kind == "f":
        return dtype.type(-np.inf if reduction == "max" else np.inf)
    limits = np.iinfo(dtype)
    return dtype.type(limits.min if reduction == "max" else limits.max)


_UNSORTED = {f"Unsorted{name}": reduction for name, reduction in _SORTED.items()}


@flex_translator(*_UNSORTED)
def unsorted_segments(op: View, g: Graph) -> None:
    """ScatterElements with a reduction; negative ids go to a row in front, which is sliced off."""
    data, ids = op["data"], op["segment_ids"]
    if has_zero(*data.shape, *op.output.shape):
        raise Untranslatable("no element")
    size = op.output.shape[0]
    if ids.data is not None and is_known(size) and ids.data.max() >= size:
        raise Untranslatable("a segment id out of bounds")
    reduction = _UNSORTED[op.name.removeprefix("Flex")]
    value = read_computed(g, data, _WIDE | INTEGERS - {_T.UINT64}, Layout.LAST)
    rest = data.shape[ids.rank :]
    segments = g.ints([size]) if is_known(size) else _computed_count(op, g, rest)
    length = quotient(ids.shape)
    rows = g.reshape(g.whole(ids), (length,))
    rows = agreeing(g, rows, ids.shape, data.shape[: ids.rank])
    rows = g.op("Add", g.larger(rows, g.ints(-1)), g.ints(1))
    start = g.constant(_empty(reduction, data), computed_type(data.type))
    shape = (g.op("Add", segments, g.ints([1])), g.shape(rest) if rest else ())
    result = scattered(g, start, shape, rows, value, length, reduction=reduction)
    result = g.op("Slice", result, *(g.ints([bound]) for bound in (1, _LAST, 0)))
    sizes = g.op("Concat", segments, g.shape(rest), axis=0) if rest else segments
    write_computed(g, op.output, g.op("Reshape", result, sizes, allowzero=1), Layout.LAST)


def _computed_count(op: View, g: Graph, rest: Sequence[int]) -> ir.Value:
    count = g.reshape(sizes_of(g, op["num_segments"]), (1,))
    sizes = g.op("Concat", count, g.shape(rest), axis=0) if rest else count
    return affordable(g, count, sizes, op)


def _empty(reduction: str, data: TensorView) -> Any:
    """What a segment without rows is."""
    if reduction in ("add", "mul"):
        return int(reduction == "mul")
    limits = np.finfo(data.dtype) if data.dtype.kind == "f" else np.iinfo(data.dtype)
    return limits.min if reduction == "max" else limits.max


@flex_translator("UpperBound")
def upper_bound(op: View, g: Graph) -> None:
    """ReduceSum of LessOrEqual."""
    rows, values = (
        read_computed(g, op[name], FLOATS | INTEGERS - {_T.UINT64}, Layout.LAST)
        for name in ("sorted_inputs", "values")
    )
    below = g.op(
        "LessOrEqual", g.op("Unsqueeze", rows, g.ints([1])), g.op("Unsqueeze", values, g.ints([2]))
    )
    result = g.op("ReduceSum", g.cast(below, op.output.dtype), g.ints([2]), keepdims=0)
    g.write(op.output, result)
