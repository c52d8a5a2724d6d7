"""TRANSPOSE_CONV of 8-bit codes as a Conv, which ONNX Runtime has in integers."""

from __future__ import annotations

import numpy as np

from tflite_ort.opmap.graph import Domain, Graph, Layout, ir
from tflite_ort.records import record, replace
from tflite_ort.schema import (
    OperatorView,
    TensorType,
    TensorView,
    TransposeConvOptions,
)
from tflite_ort.schema.values.semantics import explicit_padding

_BYTES = frozenset({TensorType.INT8, TensorType.UINT8})
View = OperatorView[TransposeConvOptions]


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


def phases_of(op: View, g: Graph) -> tuple[Phases, Phases] | None:
    """The phases of rows and columns, if `op` multiplies 8-bit codes on the CPU."""
    input, filter, bias = op["input"], op["filter"], op.get("bias")
    constant = filter.is_constant and (bias is None or bias.is_constant)
    codes = {input.type, filter.type, op.output.type} <= _BYTES
    if not (g.target.cpu_kernels and constant and codes):
        return None
    dimensions = zip(
        *(input.shape[1:3], op.output.shape[1:3], filter.shape[1:3]),
        (op.options.stride_h, op.options.stride_w),
        strict=True,
    )
    rows, columns = (
        Phases.of(cells, size, k, s, explicit_padding(op.options.padding, size, k, s)[0])
        for cells, size, k, s in dimensions
    )
    return (rows, columns) if rows.is_convolution and columns.is_convolution else None


def convolution_of_phases(op: View, g: Graph, rows: Phases, columns: Phases) -> None:
    """One Conv to [N, s * s * C, H, W], whose phases are then interleaved."""
    input, output, bias = op["input"], op.output, op.get("bias")
    filter = _filter_of_phases(op["filter"], rows, columns)
    count = rows.stride * columns.stride
    assert input.quantization is not None and filter.quantization is not None
    scale = input.quantization.scale * filter.quantization.scale
    sums = g.op(
        "Conv",
        g.read(input, layout=Layout.FIRST),
        g.weights(filter, permutation=(0, 3, 1, 2)),
        None if bias is None else g.bias(_repeated(bias, count), scale),
        kernel_shape=[rows.window, columns.window],
        pads=[rows.before, columns.before, rows.after, columns.after],
    )
    codes = g.op("Transpose", g.quantize(sums, output), perm=[0, 2, 3, 1])
    g.write(
        output,
        _side_by_side(op, g, codes, rows, columns),
        domain=Domain.STORED,
        activation=op.options.fused_activation_function,
    )


def _repeated(tensor: TensorView, count: int) -> TensorView:
    """A constant vector `count` times in a row."""
    assert tensor.data is not None
    data = np.tile(tensor.data, count)
    return replace(tensor, constant=data, shape=data.shape)


def _filter_of_phases(filter: TensorView, rows: Phases, columns: Phases) -> TensorView:
    """The filter [out, kh, kw, in] as [phases * out, window, window, in], padded with zeros."""
    data, quantization = filter.data, filter.quantization
    assert data is not None and quantization is not None
    outputs, kh, kw, inputs = data.shape
    filled = np.empty(
        (outputs, rows.window * rows.stride, columns.window * columns.stride, inputs), data.dtype
    )
    filled[:] = quantization.zero_point.reshape(-1, 1, 1, 1)
    filled[:, :kh, :kw] = data
    split = filled.reshape(
        outputs, rows.window, rows.stride, columns.window, columns.stride, inputs
    )
    # A convolution uses the weights in reverse order.
    codes = split[:, ::-1, :, ::-1].transpose(2, 4, 0, 1, 3, 5)
    codes = codes.reshape(-1, rows.window, columns.window, inputs)
    if quantization.per_channel:
        count = rows.stride * columns.stride
        quantization = replace(
            quantization,
            scale=np.tile(quantization.scale, count),
            zero_point=np.tile(quantization.zero_point, count),
        )
    return replace(filter, constant=codes, shape=codes.shape, quantization=quantization)


def _side_by_side(op: View, g: Graph, codes: ir.Value, rows: Phases, columns: Phases) -> ir.Value:
    """Interleave [N, H, W, s * s * C] to [N, s * H, s * W, C], and slice the output cells."""
    batch, height, width, _ = op["input"].shape
    height += rows.before + rows.after - rows.window + 1
    width += columns.before + columns.after - columns.window + 1
    channels = op.output.shape[3]
    if rows.stride * columns.stride > 1:
        split = (batch, height, width, rows.stride, columns.stride, channels)
        codes = g.op("Transpose", g.reshape(codes, split), perm=[0, 1, 3, 2, 4, 5])
        codes = g.reshape(codes, (batch, height * rows.stride, width * columns.stride, channels))
    starts, ends = ([p.cut for p in (rows, columns)], [p.cut + p.size for p in (rows, columns)])
    if (starts, ends) == ([0, 0], [height * rows.stride, width * columns.stride]):
        return codes
    return g.op("Slice", codes, *(g.ints(v) for v in (starts, ends, [1, 2])))
