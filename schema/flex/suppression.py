"""TensorFlow's non-maximum suppression, as TFLite's own."""

from __future__ import annotations

import numpy as np

from tflite_ort.schema.file.element_types import TensorType
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.options import ReshapeOptions, StridedSliceOptions
from tflite_ort.schema.flex.rewriting import Site, rewriting

_T = TensorType
_LOWEST = np.finfo(np.float32).min


@rewriting("NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3", "NonMaxSuppressionV4")
def hard(site: Site) -> bool:
    """NON_MAX_SUPPRESSION_V4, whose padding is cut off where TensorFlow has none."""
    if not site.is_of(_T.FLOAT32):
        return False
    node, inputs = site.node, list(site.inputs[:3])
    if node.operator.name == "NonMaxSuppression":
        inputs.append(site.add_constant(node["iou_threshold"], np.float32))
    else:
        inputs.append(site.input("iou_threshold"))
    if len(site.inputs) > 4:
        inputs.append(site.input("score_threshold"))
    else:
        inputs.append(site.add_constant(_LOWEST, np.float32))
    if any(site.type(index) is not _T.FLOAT32 for index in inputs[3:]):
        return False
    padded = node.attributes.get("pad_to_max_output_size", False)
    found, *counts = site.outputs
    indices = found if padded else site.add_tensor(_T.INT32)
    count = counts[0] if counts else site.add_tensor(_T.INT32)
    site.emit(Op.NON_MAX_SUPPRESSION_V4, inputs, [indices, count])
    if not padded:
        _cut(site, indices, count, found)
    return True


@rewriting("NonMaxSuppressionV5")
def soft(site: Site) -> bool:
    """NON_MAX_SUPPRESSION_V5, whose padding is cut off where TensorFlow has none."""
    if not site.is_of(_T.FLOAT32):
        return False
    indices, scores, count = site.outputs
    if site.node["pad_to_max_output_size"]:
        site.emit(Op.NON_MAX_SUPPRESSION_V5, site.inputs, site.outputs)
        return True
    made = [site.add_tensor(_T.INT32), site.add_tensor(_T.FLOAT32)]
    site.emit(Op.NON_MAX_SUPPRESSION_V5, site.inputs, [*made, count])
    for whole, part in zip(made, (indices, scores), strict=True):
        _cut(site, whole, count, part)
    return True


def _cut(site: Site, whole: int, count: int, part: int) -> None:
    """`part` is the first `count` elements of `whole`."""
    end = site.through(
        Op.RESHAPE, [count, site.add_constant([1])], _T.INT32, ReshapeOptions(new_shape=(1,))
    )
    bounds = [site.add_constant([0]), end, site.add_constant([1])]
    site.emit(Op.STRIDED_SLICE, [whole, *bounds], [part], StridedSliceOptions())
