"""Shape rule of TFLite_Detection_PostProcess."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import MOST_CELLS, Shapes, of_rank, rule
from tflite_ort.schema.values.view import OperatorView
from tflite_ort.schema.values.well_known_options import (
    DetectionPostProcessOptions,
    map_options,
)


@rule("TFLite_Detection_PostProcess")
def tflite_detection_postprocess(op: OperatorView[Any]) -> Shapes:
    """Boxes [1, N, 4], classes and scores [1, N], and the number of detections [1]."""
    options = map_options(op, DetectionPostProcessOptions)
    _check_detections(op, options)
    encodings, scores = (of_rank(op, name, 3) for name in op.names[:2])
    anchors = of_rank(op, "anchors", 2)
    if (encodings[0], scores[:2]) != (1, encodings[:2]) or encodings[2] < 4:
        raise ModelError(f"boxes {encodings} with scores {scores} are not [1, N, 4] and [1, N, C]")
    if anchors[0] < encodings[1] or anchors[1] != 4:
        raise ModelError(f"anchors {anchors} do not fit {encodings[1]} boxes")
    if options.num_classes < 1 or not 0 <= scores[2] - options.num_classes <= 1:
        raise ModelError(f"{scores[2]} scores a box for {options.num_classes} classes")
    # Of the regular suppression too, which fills only the first `max_detections`.
    count = options.max_detections * options.max_classes_per_detection
    return (1, count, 4), (1, count), (1, count), (1,)


def _check_detections(op: OperatorView[Any], options: DetectionPostProcessOptions) -> None:
    """TFLite refuses these too, some of them when it is invoked."""
    asked = (options.max_detections, options.max_classes_per_detection)
    least = 1 if options.use_regular_nms else 0
    if asked[0] < least or asked[1] < 1 or asked[0] * asked[1] > MOST_CELLS:
        raise ModelError(f"{op.label}: max_detections, max_classes_per_detection are {asked}")
    if options.use_regular_nms and options.detections_per_class < 1:
        raise ModelError(f"{op.label}: detections_per_class is {options.detections_per_class}")
    if not 0 < options.nms_iou_threshold <= 1:
        threshold = options.nms_iou_threshold
        raise ModelError(f"{op.label}: nms_iou_threshold is {threshold}, expected in (0, 1]")
