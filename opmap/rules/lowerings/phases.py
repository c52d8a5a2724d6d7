"""TRANSPOSE_CONV as a Conv, which ONNX Runtime has in integers too: of all phases, or over an image
with zeros between its cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from tflite_ort.base.records import record, replace
from tflite_ort.opmap import convolution
from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.idioms.convolution_operands import (
    accumulator_bias,
    accumulator_scale,
    repeated,
)
from tflite_ort.opmap.idioms.convolution_sizes import has_own_rounding, makes_other_maps
from tflite_ort.opmap.idioms.exact_sums import ExactSums
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.rule import Rest
from tflite_ort.schema import (
    OperatorView,
    TensorType,
    TensorView,
    TransposeConvOptions,
)
from tflite_ort.schema.values.semantics import explicit_padding
from tflite_ort.schema.values.sizes import is_known

_BYTES = frozenset({TensorType.INT8, TensorType.UINT8})
View = OperatorView[TransposeConvOptions]
Edges = Sequence[tuple[int, int]]


@record
class Phases:
    """One dimension of a TRANSPOSE_CONV of stride s, as s convolutions: its phases.

    Without padding, output cell s * q + p is the sum over j of input cell q - j times weight
    s * j + p. So phase p is a convolution of its own. It is computed for as many q as the `size`
    output cells need.

    Args:
        window: the number of weights of a phase.
        before, after: cells of padding of the convolution.
        cut: cells before the first output cell, fewer than s.
        size: the number of output cells.
    """

    stride: int
    window: int
    before: int
    after: int
    cut: int
    size: int

    @classmethod
    def of(cls, input: int, size: int, kernel: int, stride: int, start: int) -> Phases:
        """The phases over `input` cells; the output begins at cell `start` of the unpadded one."""
        window = -(-kernel // stride)
        first, last = start // stride, (start + size - 1) // stride
        before = window - 1 - first
        return cls(stride, window, before, last - input + 1, start - first * stride, size)

    @property
    def is_convolution(self) -> bool:
        """Whether the padding of the convolution is not negative."""
        return self.before >= 0 and self.after >= 0


def in_phases(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """The lowerings of a TRANSPOSE_CONV to a known size.

    Of 8-bit codes they are convolutions of the same integers. Of floats they are the plain
    ConvTranspose, and the phases, whose sums have another order.
    """
    if makes_other_maps(op) or not is_known(*op.output.shape[1:3], *op["input"].shape[1:3]):
        return ()
    windows = partial(rest, op)
    op = _with_near_strides(op)
    input, filter, bias = op["input"], op["filter"], op.get("bias")
    constant = filter.is_constant and (bias is None or bias.is_constant)
    types = {input.type, filter.type, op.output.type}
    of_codes = types <= _BYTES
    if not (constant and (of_codes or types == {TensorType.FLOAT32})):
        return ()
    rows, columns = _phases_of(op)
    if not (rows.is_convolution and columns.is_convolution):
        return ()
    results = float(op.output.shape[3] * rows.size * columns.size)
    products = results * input.shape[3] * rows.window * columns.window
    work = {"Phases": 1.0, "Phases results": results, "Phases products": products}
    if of_codes:
        if g.target.exact and has_own_rounding(op):
            layer = _layer_of_phases(op, rows, columns)
            sums = convolution.exact_sums(layer, g)
            write = partial(_exact_phases, op, g, rows, columns)
            return () if sums is None else [Lowering("phases", {}, partial(write, sums))]
        phases = Lowering("phases", work, partial(_codes_of_phases, op, g, rows, columns))
        edges = _edges(op)
        if rows.stride * columns.stride == 1 or min(map(min, edges)) < 0:
            return [phases]
        products *= rows.stride * columns.stride
        work = {"Zeros": 1.0, "Zeros results": results, "Zeros products": products}
        return [phases, Lowering("zeros", work, partial(_between_zeros, op, g, edges))]
    work = {f"Float {what}": amount for what, amount in work.items()}
    phases = Lowering("phases", work, partial(_floats_of_phases, op, g, rows, columns))
    work = {what.replace("Phases", "windows"): amount for what, amount in work.items()}
    interleaved = rows.stride == columns.stride
    return [Lowering("windows", work, windows), *([phases] if interleaved else [])]


def _with_near_strides(op: View) -> View:
    """`op` with strides no longer than its image and filter where the input has a single cell,
    which no stride parts from another one: weights and zeros are made for each step of a stride."""
    strides = [
        stride if cells > 1 else min(stride, size + kernel)
        for cells, size, kernel, stride in _dimensions(op)
    ]
    return replace(op, options=replace(op.options, stride_h=strides[0], stride_w=strides[1]))


def _dimensions(op: View) -> Iterator[tuple[int, int, int, int]]:
    """(cells of the input, cells of the output, size of the filter, stride) of rows and columns."""
    return zip(
        *(op["input"].shape[1:3], op.output.shape[1:3], op["filter"].shape[1:3]),
        (op.options.stride_h, op.options.stride_w),
        strict=True,
    )


def _phases_of(op: View) -> tuple[Phases, Phases]:
    """The phases of rows and columns."""
    rows, columns = (
        Phases.of(cells, size, k, s, explicit_padding(op.options.padding, size, k, s)[0])
        for cells, size, k, s in _dimensions(op)
    )
    return rows, columns


def _codes_of_phases(op: View, g: Graph, rows: Phases, columns: Phases) -> None:
    """One Conv to [N, s * s * C, H, W], whose phases are then interleaved."""
    sums = _phases(op, g, rows, columns)
    codes = g.op("Transpose", g.quantize(sums, op.output), perm=[0, 2, 3, 1])
    _write_codes(op, g, _side_by_side(op, g, codes, rows, columns))


def _exact_phases(op: View, g: Graph, rows: Phases, columns: Phases, sums: ExactSums) -> None:
    """As `_codes_of_phases`, with the rounding of LiteRT's own kernels."""
    layer = partial(
        g.op,
        "Conv",
        kernel_shape=[rows.window, columns.window],
        pads=[rows.before, columns.before, rows.after, columns.after],
    )
    steps = g.read_steps(op["input"], layout=Layout.FIRST)
    codes = g.op("Transpose", sums.codes(g, steps, layer, (-1, 1, 1)), perm=[0, 2, 3, 1])
    g.write(op.output, _side_by_side(op, g, codes, rows, columns), domain=Domain.STORED)


def _layer_of_phases(op: View, rows: Phases, columns: Phases) -> View:
    """`op` with the filter and the bias of all its phases."""
    bias, count = op.get("bias"), rows.stride * columns.stride
    made = {"filter": _filter_of_phases(op["filter"], rows, columns)}
    if bias is not None:
        made["bias"] = repeated(bias, count)
    pairs = zip(op.names, op.inputs, strict=False)
    return replace(op, inputs=tuple(made.get(name, tensor) for name, tensor in pairs))


def _floats_of_phases(op: View, g: Graph, rows: Phases, columns: Phases) -> None:
    """One Conv to [N, s * s * C, H, W], whose phases DepthToSpace interleaves."""
    result, stride = _phases(op, g, rows, columns), rows.stride
    if stride > 1:
        result = g.op("DepthToSpace", result, blocksize=stride, mode="DCR")
    result = _cut(g, result, _sizes(op, rows, columns), rows, columns, axes=(2, 3))
    activation = op.options.fused_activation_function
    g.write(op.output, result, layout=Layout.FIRST, activation=activation)


def _phases(op: View, g: Graph, rows: Phases, columns: Phases) -> ir.Value:
    input, bias = op["input"], op.get("bias")
    filter, count = _filter_of_phases(op["filter"], rows, columns), rows.stride * columns.stride
    scale = accumulator_scale(input.quantization, filter.quantization)
    return g.op(
        "Conv",
        g.read(input, layout=Layout.FIRST),
        g.weights(filter, permutation=(0, 3, 1, 2)),
        None if bias is None else g.bias(repeated(bias, count), scale),
        kernel_shape=[rows.window, columns.window],
        pads=[rows.before, columns.before, rows.after, columns.after],
    )


def _between_zeros(op: View, g: Graph, edges: Edges) -> None:
    """A Conv by the reversed filter over the image with s - 1 zeros behind each cell."""
    input, output, filter = op["input"], op.output, op["filter"]
    batch, height, width, channels = input.shape
    down, right = op.options.stride_h, op.options.stride_w
    codes = g.reshape(g.read(input, domain=Domain.STORED), (batch, height, 1, width, 1, channels))
    ends = g.ints([0] * 6 + [0, 0, down - 1, 0, right - 1, 0])
    codes = g.op("Pad", codes, ends, g.zero_code(input))
    codes = g.reshape(codes, (batch, height * down, width * right, channels))
    assert filter.data is not None
    reversed_filter = replace(filter, constant=np.ascontiguousarray(filter.data[:, ::-1, ::-1]))
    sums = g.op(
        "Conv",
        g.dequantize(g.op("Transpose", codes, perm=[0, 3, 1, 2]), input),
        g.weights(reversed_filter, permutation=(0, 3, 1, 2)),
        accumulator_bias(g, input, filter, op.get("bias")),
        kernel_shape=list(filter.shape[1:3]),
        pads=[before for before, _ in edges] + [after for _, after in edges],
    )
    _write_codes(op, g, g.op("Transpose", g.quantize(sums, output), perm=[0, 2, 3, 1]))


def _edges(op: View) -> Edges:
    """The padding, before and after, of a convolution over an image with zeros between its cells,
    along rows and columns."""
    found = []
    for cells, size, kernel, stride in _dimensions(op):
        start, _ = explicit_padding(op.options.padding, size, kernel, stride)
        found.append((kernel - 1 - start, size + start - cells * stride))
    return found


def _write_codes(op: View, g: Graph, codes: ir.Value) -> None:
    activation = op.options.fused_activation_function
    g.write(op.output, codes, domain=Domain.STORED, activation=activation)


def _filter_of_phases(filter: TensorView, rows: Phases, columns: Phases) -> TensorView:
    """The filter [out, kh, kw, in] as [phases * out, window, window, in], padded with zeros."""
    data, quantization = filter.data, filter.quantization
    assert data is not None
    outputs, kh, kw, inputs = data.shape
    filled = np.zeros(
        (outputs, rows.window * rows.stride, columns.window * columns.stride, inputs), data.dtype
    )
    if quantization is not None:
        filled[:] = quantization.zero_point.reshape(-1, 1, 1, 1)
    filled[:, :kh, :kw] = data
    split = filled.reshape(
        outputs, rows.window, rows.stride, columns.window, columns.stride, inputs
    )
    # A convolution uses the weights in reverse order.
    codes = split[:, ::-1, :, ::-1].transpose(2, 4, 0, 1, 3, 5)
    codes = codes.reshape(-1, rows.window, columns.window, inputs)
    if quantization is not None and quantization.per_channel:
        count = rows.stride * columns.stride
        quantization = replace(
            quantization,
            scale=np.tile(quantization.scale, count),
            zero_point=np.tile(quantization.zero_point, count),
        )
    return replace(filter, constant=codes, shape=codes.shape, quantization=quantization)


def _sizes(op: View, rows: Phases, columns: Phases) -> tuple[int, int]:
    """Rows and columns of a phase."""
    height, width = op["input"].shape[1:3]
    return (
        height + rows.before + rows.after - rows.window + 1,
        width + columns.before + columns.after - columns.window + 1,
    )


def _side_by_side(op: View, g: Graph, codes: ir.Value, rows: Phases, columns: Phases) -> ir.Value:
    """Interleave [N, H, W, s * s * C] to [N, s * H, s * W, C], and slice the output cells."""
    batch, channels = op["input"].shape[0], op.output.shape[3]
    height, width = sizes = _sizes(op, rows, columns)
    if rows.stride * columns.stride > 1:
        split = (batch, height, width, rows.stride, columns.stride, channels)
        codes = g.op("Transpose", g.reshape(codes, split), perm=[0, 1, 3, 2, 4, 5])
        codes = g.reshape(codes, (batch, height * rows.stride, width * columns.stride, channels))
    return _cut(g, codes, sizes, rows, columns, axes=(1, 2))


def _cut(
    g: Graph,
    whole: ir.Value,
    sizes: Sequence[int],
    rows: Phases,
    columns: Phases,
    axes: Sequence[int],
) -> ir.Value:
    """The output cells among those of all phases, which have these sizes."""
    starts, ends = ([p.cut for p in (rows, columns)], [p.cut + p.size for p in (rows, columns)])
    whole_sizes = [size * p.stride for size, p in zip(sizes, (rows, columns), strict=True)]
    if (starts, ends) == ([0, 0], whole_sizes):
        return whole
    return g.op("Slice", whole, *(g.ints(v) for v in (starts, ends, axes)))
