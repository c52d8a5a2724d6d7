"""TensorFlow's resizing of images, as TFLite's own."""

from __future__ import annotations

from tflite_ort.schema.file.element_types import TensorType
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.layer_options import (
    ResizeBilinearOptions,
    ResizeNearestNeighborOptions,
)
from tflite_ort.schema.flex.rewriting import Site, rewriting

_T = TensorType
# The images whose nearest pixels are moved as they are.
_MOVED = (_T.FLOAT32, _T.INT8, _T.UINT8, _T.INT16, _T.INT32, _T.INT64, _T.FLOAT16, _T.FLOAT64)


@rewriting("ResizeBilinear")
def bilinear(site: Site) -> bool:
    """RESIZE_BILINEAR of float32, after a CAST of other types."""
    node, (x, size) = site.node, site.inputs
    if node["align_corners"] and node["half_pixel_centers"]:
        return False
    if not site.is_of(_T.FLOAT32):
        x = site.through(Op.CAST, [x], _T.FLOAT32)
    options = ResizeBilinearOptions(
        align_corners=node["align_corners"], half_pixel_centers=node["half_pixel_centers"]
    )
    site.emit(Op.RESIZE_BILINEAR, [x, size], site.outputs, options, version=3)
    return True


@rewriting("ResizeNearestNeighbor")
def nearest(site: Site) -> bool:
    """RESIZE_NEAREST_NEIGHBOR."""
    node = site.node
    if not site.is_of(*_MOVED) or (node["align_corners"] and node["half_pixel_centers"]):
        return False
    options = ResizeNearestNeighborOptions(
        align_corners=node["align_corners"], half_pixel_centers=node["half_pixel_centers"]
    )
    site.emit(Op.RESIZE_NEAREST_NEIGHBOR, site.inputs, site.outputs, options, version=3)
    return True
