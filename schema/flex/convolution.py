"""TensorFlow's convolutions after a padding or a resizing, as TFLite's operators."""

from __future__ import annotations

from tflite_ort.schema.file.element_types import TensorType
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.enums import MirrorPadMode, Padding
from tflite_ort.schema.file.layer_options import Conv2DOptions, ResizeBilinearOptions
from tflite_ort.schema.file.options import MirrorPadOptions
from tflite_ort.schema.flex.rewriting import Site, rewriting

_T = TensorType
_MODES = {"REFLECT": MirrorPadMode.REFLECT, "SYMMETRIC": MirrorPadMode.SYMMETRIC}


@rewriting("FusedPadConv2D", "FusedResizeAndPadConv2D")
def fused(site: Site) -> bool:
    """RESIZE_BILINEAR, MIRROR_PAD and CONV_2D of float32."""
    if not site.is_of(_T.FLOAT32):
        return False
    node, x = site.node, site.inputs[0]
    strides = node["strides"]
    if len(strides) != 4 or strides[0] != 1 or strides[3] != 1:
        return False
    if node.operator.name == "FusedResizeAndPadConv2D":
        options = ResizeBilinearOptions(align_corners=node["resize_align_corners"])
        x = site.through(Op.RESIZE_BILINEAR, [x, site.input("size")], _T.FLOAT32, options)
    mode = MirrorPadOptions(mode=_MODES[node["mode"]])
    x = site.through(Op.MIRROR_PAD, [x, site.input("paddings")], _T.FLOAT32, mode)
    order = site.add_constant([3, 0, 1, 2])
    filter = site.through(Op.TRANSPOSE, [site.input("filter"), order], _T.FLOAT32)
    conv = Conv2DOptions(
        padding=Padding[node["padding"]],
        stride_h=strides[1],
        stride_w=strides[2],
        dilation_h_factor=1,
        dilation_w_factor=1,
    )
    site.emit(Op.CONV_2D, [x, filter, None], site.outputs, conv)
    return True
