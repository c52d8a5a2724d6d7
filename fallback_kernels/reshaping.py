"""Reordering, joining, splitting and padding: the codes are moved and not changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, kernel
from tflite_ort.schema import (
    ActivationFunctionType,
    ConcatenationOptions,
    DepthToSpaceOptions,
    KernelError,
    MirrorPadMode,
    MirrorPadOptions,
    Op,
    OperatorView,
    PackOptions,
    Quantization,
    ReshapeOptions,
    SpaceToDepthOptions,
    SplitOptions,
    SplitVOptions,
    SqueezeOptions,
    TensorType,
    UnpackOptions,
)
from tflite_ort.schema.arithmetic.code_functions import joined_codes
from tflite_ort.schema.shapes.registry import shown
from tflite_ort.schema.shapes.reshaping import (
    bitcast_shape,
    legacy_shape,
    range_shape,
    resolved_shape,
    split_sizes,
    squeezed_axes,
)
from tflite_ort.schema.values.semantics import normalized_axis


@kernel(Op.RESHAPE, versions=(1, 1))
def reshape(op: OperatorView[ReshapeOptions], inputs: Inputs, state: State) -> Outputs:
    """The same elements in row-major order under another shape; one -1 is inferred."""
    shape = op.inputs[1] if len(inputs) > 1 else None
    # The type is the tensor's: sizes that are partly known come as objects.
    if shape is not None and shape.type is TensorType.INT32 and inputs[1].ndim == 1:
        wanted = tuple(inputs[1].tolist())
    else:
        wanted = legacy_shape(op.options.new_shape)
    return (inputs[0].reshape(resolved_shape(inputs[0].shape, wanted)),)


@kernel(Op.SQUEEZE, versions=(1, 2))
def squeeze(op: OperatorView[SqueezeOptions], inputs: Inputs, state: State) -> Outputs:
    """Without the listed axes of size 1; without all of them when none is listed."""
    return (np.squeeze(inputs[0], squeezed_axes(inputs[0].shape, op.options.squeeze_dims)),)


@kernel(Op.EXPAND_DIMS, versions=(1, 1))
def expand_dims(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """With an axis of size 1 inserted."""
    axis = normalized_axis(int(inputs[1].reshape(-1)[0]), inputs[0].ndim + 1)
    return (np.expand_dims(inputs[0], axis),)


@kernel(Op.TRANSPOSE, versions=(1, 9))
def transpose(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """Output axis i is input axis perm[i]."""
    perm = [normalized_axis(int(axis), inputs[0].ndim) for axis in inputs[1]]
    if sorted(perm) != list(range(inputs[0].ndim)):
        raise KernelError(f"{perm} is not a permutation of rank {inputs[0].ndim}")
    return (np.ascontiguousarray(np.transpose(inputs[0], perm)),)


@kernel(Op.CONCATENATION, versions=(1, 7))
def concatenation(op: OperatorView[ConcatenationOptions], inputs: Inputs, state: State) -> Outputs:
    """Joined along `axis`; uint8 inputs are rescaled to the output's scale."""
    target = op.output.quantization
    if op.options.fused_activation_function != ActivationFunctionType.NONE:
        raise KernelError(
            f"fused {op.options.fused_activation_function.name}: only NONE is defined"
        )
    if op.output.type == TensorType.INT8 and target is not None:
        differing = [t.name for t in op.present_inputs() if not target.equals(t.quantization)]
        if differing:
            raise KernelError(f"INT8 inputs {differing} are not quantized as the output is")
    values = [
        _rescaled(array, tensor.quantization, target)
        if tensor is not None and tensor.type == TensorType.UINT8
        else array
        for array, tensor in zip(inputs, op.inputs, strict=True)
    ]
    return (np.concatenate(values, normalized_axis(op.options.axis, inputs[0].ndim)),)


def _rescaled(codes: Array, source: Quantization | None, target: Quantization | None) -> Array:
    """uint8 codes of `source` as codes of `target`, in float32 as the reference kernel does it."""
    if source is None or target is None or source.equals(target):
        return codes
    pairs = ((each.sole_scale, each.scalar_zero_point) for each in (source, target))
    return joined_codes(codes, *pairs)


@kernel(Op.PACK, versions=(1, 5))
def pack(op: OperatorView[PackOptions], inputs: Inputs, state: State) -> Outputs:
    """Stacked along a new `axis`."""
    return (np.stack(inputs, normalized_axis(op.options.axis, inputs[0].ndim + 1)),)


@kernel(Op.UNPACK, versions=(1, 6))
def unpack(op: OperatorView[UnpackOptions], inputs: Inputs, state: State) -> Outputs:
    """The slices along `axis`, without it."""
    axis = normalized_axis(op.options.axis, inputs[0].ndim)
    slices = np.moveaxis(inputs[0], axis, 0)
    if len(slices) != op.options.num:
        raise KernelError(f"axis {axis} of size {len(slices)} unpacked into {op.options.num}")
    return tuple(np.array(part) for part in slices)


@kernel(Op.SPLIT, versions=(1, 5))
def split(op: OperatorView[SplitOptions], inputs: Inputs, state: State) -> Outputs:
    """`num_splits` equal parts along an axis."""
    axis = normalized_axis(int(inputs[0].reshape(-1)[0]), inputs[1].ndim)
    size, parts = inputs[1].shape[axis], op.options.num_splits
    if parts <= 0 or size % parts:
        raise KernelError(f"axis {axis} of size {size} does not split into {parts} equal parts")
    return _parts(inputs[1], [size // parts] * parts, axis)


@kernel(Op.SPLIT_V, versions=(1, 3))
def split_v(op: OperatorView[SplitVOptions], inputs: Inputs, state: State) -> Outputs:
    """Parts of the given sizes along an axis; one size may be -1."""
    axis = normalized_axis(int(inputs[2].reshape(-1)[0]), inputs[0].ndim)
    sizes = split_sizes(inputs[0].shape[axis], tuple(inputs[1].tolist()))
    return _parts(inputs[0], list(sizes), axis)


def _parts(array: Array, sizes: list[int], axis: int) -> Outputs:
    cuts = np.cumsum(sizes)[:-1]
    return tuple(np.ascontiguousarray(part) for part in np.split(array, cuts, axis))


@kernel(Op.SHAPE, versions=(1, 1))
def shape(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """The sizes of the dimensions, int32 or int64."""
    return (np.array(inputs[0].shape, op.output.dtype),)


@kernel(Op.RANK, versions=(1, 1))
def rank(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """The number of dimensions, int32."""
    return (np.array(inputs[0].ndim, np.int32),)


@kernel(Op.BITCAST, versions=(1, 1))
def bitcast(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """The same bytes as another type; a last dimension makes up for its size."""
    shape = bitcast_shape(inputs[0].shape, op["input"].type, op.output.type)
    array = np.ascontiguousarray(inputs[0]).reshape(-1)
    return (array.view(op.output.dtype).reshape(shape),)


@kernel(Op.FILL, versions=(1, 5))
def fill(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """A tensor of shape `dims` of one value, whose scale it shares."""
    dims, value = inputs
    source, target = op["value"].quantization, op.output.quantization
    if source is not None and not source.equals(target):
        raise KernelError("value and output differ in scale or zero point")
    if value.ndim or dims.ndim != 1 or dims.dtype not in (np.int32, np.int64):
        raise KernelError(f"{dims.dtype} dims {dims.shape} and a value of shape {value.shape}")
    if np.any(dims < 0):
        raise KernelError(f"Fill dimensions must be >= 0, got {shown(dims)}")
    return (np.full(dims, value, value.dtype),)


@kernel(Op.RANGE, versions=(1, 2))
def range_(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """start, start + delta, ... short of limit; floats are added up one by one."""
    start, limit, delta = inputs
    types = {array.dtype for array in inputs}
    if len(types) > 1 or start.dtype not in (np.float32, np.int32, np.int64):
        raise KernelError(f"range over {start.dtype}, {limit.dtype} and {delta.dtype}")
    (size,) = range_shape(start, limit, delta)
    steps = np.full(size, delta, start.dtype)
    steps[:1] = start
    return (np.cumsum(steps, dtype=start.dtype),)


@kernel(Op.SPACE_TO_DEPTH, versions=(1, 2))
def space_to_depth(op: OperatorView[SpaceToDepthOptions], inputs: Inputs, state: State) -> Outputs:
    """[N, H, W, C] to [N, H/b, W/b, b*b*C]: channel (y*b + x)*C + c of a b x b block."""
    n, h, w, c = inputs[0].shape
    b = op.options.block_size
    if b <= 0 or h % b or w % b:
        raise KernelError(f"blocks of {b} do not tile {h} x {w}")
    blocks = inputs[0].reshape(n, h // b, b, w // b, b, c)
    return (blocks.transpose(0, 1, 3, 2, 4, 5).reshape(n, h // b, w // b, b * b * c),)


@kernel(Op.DEPTH_TO_SPACE, versions=(1, 2))
def depth_to_space(op: OperatorView[DepthToSpaceOptions], inputs: Inputs, state: State) -> Outputs:
    """[N, H, W, b*b*C] to [N, H*b, W*b, C], the inverse of SPACE_TO_DEPTH."""
    n, h, w, c = inputs[0].shape
    b = op.options.block_size
    if b <= 0 or c % (b * b):
        raise KernelError(f"{c} channels do not make blocks of {b} x {b}")
    blocks = inputs[0].reshape(n, h, w, b, b, c // (b * b))
    return (blocks.transpose(0, 1, 3, 2, 4, 5).reshape(n, h * b, w * b, c // (b * b)),)


@kernel(Op.PAD, versions=(1, 6))
def pad(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """Framed by a value; without one by zero, which is the output's zero point if quantized."""
    value = inputs[2] if len(inputs) > 2 else None
    if value is None:
        value = op.output.edge_code
    pads = _pads(inputs[0], inputs[1])
    return (np.pad(inputs[0], pads, constant_values=np.asarray(value, inputs[0].dtype).item()),)


@kernel(Op.PADV2, versions=(1, 6))
def padv2(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """As PAD; converters use it where there is a value."""
    return pad(op, inputs, state)


@kernel(Op.MIRROR_PAD, versions=(1, 3))
def mirror_pad(op: OperatorView[MirrorPadOptions], inputs: Inputs, state: State) -> Outputs:
    """Framed by its mirror image, without (REFLECT) or with (SYMMETRIC) the edge repeated."""
    edge = int(op.options.mode == MirrorPadMode.REFLECT)
    pads = _pads(inputs[0], inputs[1])
    for size, pair in zip(inputs[0].shape, pads, strict=True):
        if max(pair) > size - edge:
            raise KernelError(f"a dimension of {size} cannot be mirrored by {max(pair)}")
    return (np.pad(inputs[0], pads, mode="reflect" if edge else "symmetric"),)


def _pads(array: Array, paddings: Array) -> list[tuple[int, int]]:
    if paddings.shape != (array.ndim, 2) or (paddings < 0).any():
        raise KernelError(f"paddings {shown(paddings)} do not pad a tensor of rank {array.ndim}")
    return [(int(before), int(after)) for before, after in paddings]
