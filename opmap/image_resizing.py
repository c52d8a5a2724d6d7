"""Resizing of images: RESIZE_BILINEAR, RESIZE_NEAREST_NEIGHBOR."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.graph.forms import carried_type
from tflite_ort.opmap.idioms.indices import affordable, sizes_of
from tflite_ort.opmap.idioms.movement import moved_domain, picked
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import (
    Op,
    OperatorView,
    ResizeBilinearOptions,
    ResizeNearestNeighborOptions,
    TensorType,
    TensorView,
    Untranslatable,
)
from tflite_ort.schema.arithmetic.resizing import (
    POSITION_BITS,
    float_positions,
    integer_positions,
    places_differ,
)
from tflite_ort.schema.file.budgets import ENLARGED
from tflite_ort.schema.values.semantics import nearest_indices
from tflite_ort.schema.values.sizes import (
    is_known,
    known_product,
    may_differ,
    multiple,
    same_elements,
)

# The carried types that ONNX Runtime's Resize takes.
_RESIZED_BY_ORT = frozenset({TensorType.FLOAT32, TensorType.UINT8, TensorType.INT32})

# ONNX Runtime computes places in float32: with more rows weights are wrong by more than 1/1024.
_FINE = 1 << 14
# Of float images a weight may be wrong by this, which is as much as both round it by.
_EXACT = 2.0**-16
# Each pixel is repeated, in order.
_NEAREST = {
    "mode": "nearest",
    "coordinate_transformation_mode": "asymmetric",
    "nearest_mode": "floor",
}
# Rows and columns, and the pairs of axes along which a linear Resize works.
_PLANES = (1, 2)
_RESIZED_AXES = ({1, 2}, {2, 3})
# Through so many operators in a row a Transpose is looked for.
_REACH = 8
# Means by integer weights are computed in float64, several of which ONNX Runtime holds at a time.
_MOST_WIDE = 1 << 23

View = OperatorView[ResizeBilinearOptions]
# The two input indices of each output index along an axis, and how far the point is past the first.
Places = Callable[[View, Graph, int], tuple[ir.Value, ir.Value, ir.Value]]


def check_resize_bilinear(op: View) -> None:
    """Refuse options that exclude each other, codes without a scale, and images of 8-bit codes that
    are too large for weights in float32."""
    input, output, options = op["input"], op.output, op.options
    if options.align_corners and options.half_pixel_centers:
        raise Untranslatable("align_corners and half_pixel_centers exclude each other")
    if input.type is not TensorType.FLOAT32 and not (input.is_quantized and output.is_quantized):
        raise Untranslatable(f"{input.type.name} input or output without a scale")
    if input.type is TensorType.FLOAT32 or keeps_pixels(op) or has_integer_weights(op):
        return
    if any(is_known(size) and size > _FINE for size in (*input.shape[1:3], *output.shape[1:3])):
        raise Untranslatable(f"more than {_FINE} rows or columns")


def keeps_pixels(op: OperatorView[Any]) -> bool:
    """Whether all pixels stay as they are."""
    return not may_differ(op["input"].shape, op.output.shape)


def has_integer_weights(op: View) -> bool:
    """Whether TFLite's own kernel of integers runs. XNNPACK does not take 16-bit codes, nor a size
    that the file does not state; the kernel of uint8 computes in floats as well."""
    image = op["input"].type
    return image is TensorType.INT16 or (image is TensorType.INT8 and not op["size"].is_given)


@translator(Op.RESIZE_BILINEAR, versions=(1, 4), check=check_resize_bilinear)
def resize_bilinear(op: View, g: Graph) -> None:
    """Resize (linear) of real numbers, since ONNX Runtime truncates the results of uint8 codes.

    int16 codes, and int8 codes to a computed size, take a mean of four with the weights in 1/1024
    that TFLite has.
    """
    input, output = op["input"], op.output
    if keeps_pixels(op):
        layout = g.layout(input)
        codes = g.read(input, layout=layout, domain=Domain.STORED)
        g.write(output, codes, layout=layout, domain=Domain.STORED)
        return
    if input.type is TensorType.INT16 or (has_integer_weights(op) and not g.target.paired_codes):
        if g.target.fallback and known_product(output.shape) > _MOST_WIDE:
            raise Untranslatable("numpy needs less memory for large images in float64")
        _weighted_codes(op, g)
        return
    resized_linearly(op, g, Layout.FIRST)


def resized_linearly(op: View, g: Graph, layout: Layout) -> None:
    """RESIZE_BILINEAR of floats or 8-bit codes to another size, in a layout."""
    input, output, options = op["input"], op.output, op.options
    points = "half_pixel" if options.half_pixel_centers else "asymmetric"
    points = "align_corners" if options.align_corners else points
    if input.quantization is None:
        value = g.read(input, layout=layout)
        if _is_coarse(op):
            value = _weighted(op, g, value, layout, _float_places)
        else:
            value = _resize(op, g, _held(op, g, value), layout, "linear", points)
        g.write(output, value, layout=layout)
        return
    if g.target.paired_codes:
        value = _held(op, g, g.read(input, layout=layout))
        g.write(output, _resize(op, g, value, layout, "linear", points), layout=layout)
        return
    # TFLite keeps the quantization of the input. XNNPACK rounds halves up, and halves are common.
    value = _held(op, g, g.read_steps(input, layout=layout))
    codes = g.quantize_units(_resize(op, g, value, layout, "linear", points), input)
    g.write(output, codes, layout=layout, domain=Domain.STORED)


def _held(op: View, g: Graph, value: ir.Value) -> ir.Value:
    """`value`, behind a copy where ONNX Runtime would move a Transpose from before a linear Resize
    to after it, so that rows and columns become axes along which it cannot resize."""
    if not _resizes_other_axes(op["input"], g):
        return value
    batch = op["input"].shape[0]
    if is_known(batch):
        return g.op("Gather", value, g.ints(range(batch)), axis=0)
    every = g.op("Range", g.ints(0), g.reshape(g.size(batch), ()), g.ints(1))
    return g.op("Gather", value, every, axis=0)


def _resizes_other_axes(image: TensorView, g: Graph) -> bool:
    """Whether rows and columns of `image` are other axes of what it is made of, where a linear
    Resize fails."""
    reached = set[tuple[int, tuple[int, int]]]()
    ahead = [(image, _PLANES)]
    for _ in range(_REACH):
        found = [(tensor, axes) for tensor, axes in ahead if (tensor.index, axes) not in reached]
        reached.update((tensor.index, axes) for tensor, axes in found)
        ahead = [source for tensor, axes in found for source in _sources(tensor, g, axes)]
        if any(set(axes) not in _RESIZED_AXES for _, axes in ahead):
            return True
    return False


def _sources(
    tensor: TensorView, g: Graph, axes: tuple[int, int]
) -> Iterator[tuple[TensorView, tuple[int, int]]]:
    """What `tensor` is made of, with what its `axes` are there."""
    maker = g.uses.maker(tensor)
    if maker is None:
        return
    if maker.op is Op.TRANSPOSE:
        order = maker.inputs[1]
        if order is not None and order.data is not None:
            places = order.data.reshape(-1) % tensor.rank
            axes = int(places[axes[0]]), int(places[axes[1]])
    for source in maker.present_inputs():
        if source.rank == 4 and not source.is_constant:
            yield source, axes


def _is_coarse(op: View) -> bool:
    """Whether ONNX Runtime's places of known rows and columns are too far from TFLite's.

    It divides by the quotient of the sizes, where TFLite multiplies with its inverse: both round
    once more than the other does. The 875th of 1000 rows
    becomes 874.5 in one and 874.50006 in the other.
    """
    pairs = list(zip(op["input"].shape[1:3], op.output.shape[1:3], strict=True))
    if not all(is_known(*pair) for pair in pairs):
        return False
    return any(places_differ(old, new, op.options) > _EXACT for old, new in pairs)


def _weighted(
    op: View,
    g: Graph,
    value: ir.Value,
    layout: Layout,
    places: Places,
) -> ir.Value:
    """The weighted mean of four pixels; first along the axis that leaves fewer."""
    sizes = {axis: (op["input"].shape[axis], op.output.shape[axis]) for axis in (1, 2)}
    order = list(sizes)
    if all(is_known(*pair) for pair in sizes.values()):
        order.sort(key=lambda axis: sizes[axis][1] / max(sizes[axis][0], 1))
    for axis in order:
        lower, upper, past = places(op, g, axis)
        at = layout.axis(axis, 4)
        weights = g.reshape(past, (-1, *(1,) * (3 - at)))
        first, second = (g.op("Gather", value, each, axis=at) for each in (lower, upper))
        value = g.op("Add", first, g.op("Mul", g.op("Sub", second, first), weights))
    return value


def _float_places(op: View, g: Graph, axis: int) -> tuple[ir.Value, ir.Value, ir.Value]:
    lower, upper, past = float_positions(op["input"].shape[axis], op.output.shape[axis], op.options)
    return g.ints(lower), g.ints(upper), g.constant(past)


def _weighted_codes(op: View, g: Graph) -> None:
    """The weighted mean of four codes, halves away from zero; exact in float64."""
    codes = g.cast(g.read(op["input"], domain=Domain.FILE), ir.DataType.DOUBLE)
    mean = _weighted(op, g, codes, Layout.LAST, _integer_places)
    # Half a code is added outwards, then Cast truncates. Shrink would add it in one node, but ONNX
    # Runtime computes it in float32.
    bounds = (g.constant(bound, np.float64) for bound in (-0.5, 0.5))
    moved = g.op("Add", mean, g.op("Clip", mean, *bounds))
    g.write(op.output, g.cast(moved, op.output.dtype), domain=Domain.FILE)


def _integer_places(op: View, g: Graph, axis: int) -> tuple[ir.Value, ir.Value, ir.Value]:
    """`integer_positions`, the distances in pixels."""
    old, new = op["input"].shape[axis], op.output.shape[axis]
    if is_known(old, new):
        lower, upper, past = integer_positions(old, new, op.options)
        return g.ints(lower), g.ints(upper), g.constant(past / 2.0**POSITION_BITS)
    return _computed_places(op, g, axis)


def _computed_places(op: View, g: Graph, axis: int) -> tuple[ir.Value, ir.Value, ir.Value]:
    """`integer_positions` of an axis whose old or new size is computed, in the same steps."""
    zero, one, unit = g.ints(0), g.ints(1), g.ints(1 << POSITION_BITS)
    old, new = g.reshape(g.size(op["input"].shape[axis]), ()), g.reshape(_sizes(op, g)[axis], ())
    steps, over, last = old, new, g.op("Sub", old, one)
    if op.options.align_corners:
        several = g.op("Greater", new, one)
        steps = g.op("Where", several, last, old)
        over = g.op("Where", several, g.op("Sub", new, one), new)
    half = g.op("Div", over, g.ints(2))
    ratio = g.op("Div", g.op("Add", g.op("Mul", steps, unit), half), over)
    source = g.op("Mul", g.op("Range", zero, new, one), ratio)
    if op.options.half_pixel_centers:
        start = g.op("Sub", g.op("Div", ratio, g.ints(2)), g.ints(1 << POSITION_BITS - 1))
        source = g.op("Add", source, start)
    # The first places may be half a pixel before the image: Div cuts towards zero.
    lower = g.op("Div", g.larger(source, zero), unit)
    upper = g.op("Div", g.op("Add", source, g.ints((1 << POSITION_BITS) - 1)), unit)
    past = g.cast(g.op("Sub", source, g.op("Mul", lower, unit)), ir.DataType.DOUBLE)
    return lower, g.smaller(upper, last), g.op("Mul", past, g.constant(2.0**-POSITION_BITS))


@translator(Op.RESIZE_NEAREST_NEIGHBOR, versions=(1, 4))
def resize_nearest_neighbor(op: OperatorView[ResizeNearestNeighborOptions], g: Graph) -> None:
    """Resize (nearest) for channels-first images and integer factors, otherwise Gather by axis.
    ONNX Runtime computes an index in floats that differ from TFLite's in the last bit."""
    input, output = op["input"], op.output
    domain = moved_domain(input, output)
    known = domain is Domain.STORED and carried_type(input) in _RESIZED_BY_ORT
    if not is_known(*input.shape[1:3], *output.shape[1:3]):
        factors = _doublings(op) if known else None
        if factors is not None:
            layout = g.layout(input)
            value = g.read(input, layout=layout, domain=domain)
            value = _repeated(g, value, layout, factors)
            g.write(output, value, layout=layout, domain=domain)
            return
        g.write(output, _gathered(op, g, domain), domain=domain)
        return
    picks = [
        nearest_indices(old, new, op.options)
        for old, new in zip(input.shape[1:3], output.shape[1:3], strict=True)
    ]
    whole = all(_repeats(pick, size) for pick, size in zip(picks, input.shape[1:3], strict=True))
    layout = g.layout(input) if known else Layout.LAST
    if known and whole and g.target.paired_codes:
        layout = Layout.FIRST
    value = g.read(input, layout=layout, domain=domain)
    if layout is Layout.FIRST and whole:
        if is_known(*output.shape):
            wanted = g.ints(layout.shape(output.shape))
            value = g.op("Resize", value, None, None, wanted, **_NEAREST)
        else:
            sides = zip(output.shape[1:3], input.shape[1:3], strict=True)
            value = _repeated(g, value, layout, [new // old for new, old in sides])
    else:
        shape = list(layout.order(input.shape))
        for axis in (2, 1):
            along = layout.axis(axis, 4)
            value = picked(g, value, shape, g.ints(picks[axis - 1]), along)
            shape[along] = output.shape[axis]
    g.write(output, value, layout=layout, domain=domain)


def _repeated(g: Graph, value: ir.Value, layout: Layout, factors: Sequence[int]) -> ir.Value:
    """An image with each row and each column so many times."""
    scales = g.constant(layout.order((1, *factors, 1)), np.float32)
    return g.op("Resize", value, None, scales, **_NEAREST)


def _doublings(op: OperatorView[ResizeNearestNeighborOptions]) -> list[int] | None:
    """How often the rows and columns of unknown number are repeated: a power of 2 times, of which
    all positions are exact in floats; None for other sizes."""
    pairs = list(zip(op["input"].shape[1:3], op.output.shape[1:3], strict=True))
    factors = [known_product([new]) // max(known_product([old]), 1) for old, new in pairs]
    whole = all(
        factor and not factor & (factor - 1) and same_elements([multiple(old, factor)], [new])
        for (old, new), factor in zip(pairs, factors, strict=True)
    )
    whole = whole and math.prod(factors) <= ENLARGED  # what is larger is computed and checked
    return factors if whole and not op.options.align_corners else None


def _gathered(op: OperatorView[ResizeNearestNeighborOptions], g: Graph, domain: Domain) -> ir.Value:
    """The rows and columns nearest to those of the result, for sizes that are not known."""
    value = g.read(op["input"], domain=domain)
    for axis in (2, 1):
        value = g.op("Gather", value, _computed_picks(op, g, axis), axis=axis)
    return value


def _computed_picks(
    op: OperatorView[ResizeNearestNeighborOptions], g: Graph, axis: int
) -> ir.Value:
    """`nearest_indices` for an axis whose old or new size is computed, in the same float steps."""
    options, one = op.options, g.ints(1)
    old = g.reshape(g.size(op["input"].shape[axis]), ())
    new = g.reshape(_sizes(op, g)[axis], ())
    last = g.op("Sub", old, one)
    steps = [old, new]
    if options.align_corners:
        several = g.op("Greater", new, one)
        pairs = ((last, old), (g.op("Sub", new, one), new))
        steps = [g.op("Where", several, fewer, all) for fewer, all in pairs]
    ratio = g.op("Div", *(g.cast(step, ir.DataType.FLOAT) for step in steps))
    half = g.constant(0.5 if options.half_pixel_centers else 0, np.float32)
    counted = g.op("Range", g.ints(0), new, one)
    source = g.op("Mul", g.op("Add", g.cast(counted, ir.DataType.FLOAT), half), ratio)
    if options.align_corners:
        source = g.op("Add", source, g.constant(0.5, np.float32))
    whole = g.cast(g.op("Floor", source), ir.DataType.INT64)
    return g.smaller(g.larger(whole, g.ints(0)), last)


def _repeats(picks: npt.NDArray[np.int64], size: int) -> bool:
    """Whether all `size` pixels are used equally often, in order."""
    return len(picks) % size == 0 and bool(
        np.array_equal(picks, np.arange(len(picks)) // (len(picks) // size))
    )


def _sizes(op: OperatorView[Any], g: Graph) -> list[ir.Value]:
    """The sizes of the result, int64 [1] for every axis."""
    batch, *_, channels = op["input"].shape
    wanted = sizes_of(g, op["size"])
    if op["size"].dynamic:
        wanted = g.reshape(wanted, (2,))
    whole = g.op("Concat", g.size(batch), wanted, g.size(channels), axis=0)
    wanted = affordable(g, wanted, whole, op)
    height, width = g.op_multi("Split", wanted, outputs=2, axis=0, num_outputs=2)
    return [g.size(batch), height, width, g.size(channels)]


def _resize(
    op: OperatorView[Any],
    g: Graph,
    value: ir.Value,
    layout: Layout,
    mode: str,
    points: str,
    **more: str,
) -> ir.Value:
    if is_known(*op.output.shape):
        sizes = g.ints(layout.shape(op.output.shape))
    else:
        unordered = _sizes(op, g)
        sizes = g.op("Concat", *(unordered[i] for i in layout.permutation(4)), axis=0)
    return g.op(
        "Resize", value, None, None, sizes, mode=mode, coordinate_transformation_mode=points, **more
    )
