"""TensorFlow's operators that move elements, as TFLite's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.schema.file.element_types import NUMPY_DTYPE, TensorType
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.enums import MirrorPadMode
from tflite_ort.schema.file.options import (
    ConcatenationOptions,
    DepthToSpaceOptions,
    GatherOptions,
    MirrorPadOptions,
    OneHotOptions,
    PackOptions,
    ReverseSequenceOptions,
    ShapeOptions,
    SpaceToDepthOptions,
    SplitOptions,
    SplitVOptions,
    SqueezeOptions,
    StridedSliceOptions,
    UnpackOptions,
)
from tflite_ort.schema.file.tables import Table
from tflite_ort.schema.flex.rewriting import Site, rewriting

Array = npt.NDArray[Any]

_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
_MODES = {"REFLECT": MirrorPadMode.REFLECT, "SYMMETRIC": MirrorPadMode.SYMMETRIC}

# TFLite's operators that have the same inputs.
_SAME = {
    "BroadcastArgs": Op.BROADCAST_ARGS,
    "ExpandDims": Op.EXPAND_DIMS,
    "Fill": Op.FILL,
    "Gather": Op.GATHER,
    "GatherNd": Op.GATHER_ND,
    "MirrorPad": Op.MIRROR_PAD,
    "Pack": Op.PACK,
    "Pad": Op.PAD,
    "PadV2": Op.PADV2,
    "Range": Op.RANGE,
    "Rank": Op.RANK,
    "Reshape": Op.RESHAPE,
    "ReverseSequence": Op.REVERSE_SEQUENCE,
    "ScatterNd": Op.SCATTER_ND,
    "Shape": Op.SHAPE,
    "Slice": Op.SLICE,
    "Split": Op.SPLIT,
    "SplitV": Op.SPLIT_V,
    "Squeeze": Op.SQUEEZE,
    "StridedSlice": Op.STRIDED_SLICE,
    "Tile": Op.TILE,
    "Transpose": Op.TRANSPOSE,
    "Unpack": Op.UNPACK,
    "ZerosLike": Op.ZEROS_LIKE,
}
# Their options, for those that have any.
_OPTIONS: Mapping[str, Callable[[Site], Table]] = {
    "Gather": lambda site: GatherOptions(),
    "MirrorPad": lambda site: MirrorPadOptions(mode=_MODES[site.node["mode"]]),
    "Pack": lambda site: PackOptions(values_count=len(site.inputs), axis=site.node["axis"]),
    "ReverseSequence": lambda site: ReverseSequenceOptions(
        seq_dim=site.node["seq_dim"], batch_dim=site.node["batch_dim"]
    ),
    "Shape": lambda site: ShapeOptions(out_type=site.node.type("out_type")),
    "Split": lambda site: SplitOptions(num_splits=site.node["num_split"]),
    "SplitV": lambda site: SplitVOptions(num_splits=site.node["num_split"]),
    "Squeeze": lambda site: SqueezeOptions(squeeze_dims=site.node["squeeze_dims"]),
    "StridedSlice": lambda site: StridedSliceOptions(**{mask: site.node[mask] for mask in _MASKS}),
    "Unpack": lambda site: UnpackOptions(num=site.node["num"], axis=site.node["axis"]),
}


@rewriting(*_SAME)
def same(site: Site) -> bool:
    """The operator of `_SAME`."""
    name = site.node.operator.name
    options = _OPTIONS[name](site) if name in _OPTIONS else None
    site.emit(_SAME[name], site.inputs, site.outputs, options)
    return True


@rewriting("BroadcastTo")
def broadcast_to(site: Site) -> bool:
    """BROADCAST_TO, whose first version is 2."""
    site.emit(Op.BROADCAST_TO, site.inputs, site.outputs, version=2)
    return True


@rewriting("ReverseV2")
def reverse(site: Site) -> bool:
    """REVERSE_V2 along one axis after the other: TFLite's takes neighbouring axes alone."""
    axes = site.constant(site.input("axis"))
    return axes is not None and _reversed(site, axes.reshape(-1))


@rewriting("Reverse")
def reverse_marked(site: Site) -> bool:
    """As `reverse`, along the axes that are marked."""
    marks = site.constant(site.input("dims"))
    return marks is not None and _reversed(site, np.flatnonzero(marks))


def _reversed(site: Site, axes: Array) -> bool:
    if not axes.size:
        same_elements(site, site.inputs[0], site.outputs[0])
        return True
    whole, type = site.inputs[0], site.type(site.inputs[0])
    for number in axes.tolist()[:-1]:
        whole = site.through(Op.REVERSE_V2, [whole, site.add_constant([number])], type)
    site.emit(Op.REVERSE_V2, [whole, site.add_constant(axes[-1:])], site.outputs)
    return True


@rewriting("ConcatV2", "Concat")
def concatenation(site: Site) -> bool:
    """CONCATENATION along an axis that the file has."""
    last = site.node.operator.name == "ConcatV2"
    axis = site.constant(site.input("axis" if last else "concat_dim"))
    if axis is None:
        return False
    options = ConcatenationOptions(axis=int(axis.item()))
    site.emit(Op.CONCATENATION, site.all("values"), site.outputs, options)
    return True


@rewriting("GatherV2")
def gather_v2(site: Site) -> bool:
    """GATHER along an axis that the file has."""
    axis = site.constant(site.input("axis"))
    if axis is None:
        return False
    options = GatherOptions(axis=int(axis.item()), batch_dims=site.node["batch_dims"])
    site.emit(Op.GATHER, site.inputs[:2], site.outputs, options)
    return True


@rewriting("OneHot")
def one_hot(site: Site) -> bool:
    """ONE_HOT of 32- and 64-bit positions."""
    if not site.is_of(TensorType.INT32, TensorType.INT64):
        return False
    options = OneHotOptions(axis=site.node["axis"])
    site.emit(Op.ONE_HOT, site.inputs, site.outputs, options)
    return True


@rewriting("BatchToSpaceND", "SpaceToBatchND")
def blocks(site: Site) -> bool:
    """SPACE_TO_BATCH_ND or BATCH_TO_SPACE_ND of images."""
    name = site.node.operator.name
    builtin = Op.BATCH_TO_SPACE_ND if name == "BatchToSpaceND" else Op.SPACE_TO_BATCH_ND
    if len(site.tensors[site.inputs[0]].shape) not in (3, 4):
        return False
    site.emit(builtin, site.inputs, site.outputs)
    return True


@rewriting("Identity", "DebugGradientIdentity", "IdentityN", "PlaceholderWithDefault")
def identity(site: Site) -> bool:
    """RESHAPE to its own shape."""
    for index, output in zip(site.inputs, site.outputs, strict=True):
        same_elements(site, index, output)
    return True


def same_elements(site: Site, index: int, output: int) -> None:
    """RESHAPE of a tensor to its own shape."""
    shape = site.through(
        Op.SHAPE, [index], TensorType.INT32, ShapeOptions(out_type=TensorType.INT32)
    )
    site.emit(Op.RESHAPE, [index, shape], [output])


@rewriting("ShapeN")
def shapes(site: Site) -> bool:
    """SHAPE of each."""
    options = ShapeOptions(out_type=site.node.type("out_type"))
    for index, output in zip(site.inputs, site.outputs, strict=True):
        site.emit(Op.SHAPE, [index], [output], options)
    return True


@rewriting("OnesLike")
def ones_like(site: Site) -> bool:
    """FILL with 1."""
    options = ShapeOptions(out_type=TensorType.INT32)
    shape = site.through(Op.SHAPE, site.inputs, TensorType.INT32, options)
    site.emit(Op.FILL, [shape, site.add_constant(1, site.node.dtype("T"))], site.outputs)
    return True


@rewriting("Empty")
def empty(site: Site) -> bool:
    """FILL with 0, also where nothing says what is in it."""
    type = site.node.type("dtype")
    if type is TensorType.STRING:
        return False
    site.emit(Op.FILL, [*site.inputs, site.add_constant(0, NUMPY_DTYPE[type])], site.outputs)
    return True


@rewriting("BatchToSpace", "SpaceToBatch")
def square_blocks(site: Site) -> bool:
    """BATCH_TO_SPACE_ND or SPACE_TO_BATCH_ND of images in square blocks."""
    name = site.node.operator.name
    builtin = Op.BATCH_TO_SPACE_ND if name == "BatchToSpace" else Op.SPACE_TO_BATCH_ND
    edges = site.constant(site.inputs[1])
    if edges is None or len(site.tensors[site.inputs[0]].shape) != 4:
        return False
    sides = site.add_constant([site.node["block_size"]] * 2)
    site.emit(builtin, [site.inputs[0], sides, site.add_constant(edges)], site.outputs)
    return True


@rewriting("DepthToSpace", "SpaceToDepth")
def depth(site: Site) -> bool:
    """DEPTH_TO_SPACE or SPACE_TO_DEPTH; TensorFlow's CPU has no other order of axes."""
    size = site.node["block_size"]
    if site.node["data_format"] != "NHWC":
        return False
    if site.node.operator.name == "DepthToSpace":
        options = DepthToSpaceOptions(block_size=size)
        site.emit(Op.DEPTH_TO_SPACE, site.inputs, site.outputs, options)
    else:
        site.emit(
            Op.SPACE_TO_DEPTH, site.inputs, site.outputs, SpaceToDepthOptions(block_size=size)
        )
    return True


@rewriting("Size")
def size(site: Site) -> bool:
    """REDUCE_PROD of SHAPE."""
    type = site.node.type("out_type")
    shape = site.through(Op.SHAPE, site.inputs, type, ShapeOptions(out_type=type))
    site.emit(Op.REDUCE_PROD, [shape, site.add_constant([0])], site.outputs)
    return True
