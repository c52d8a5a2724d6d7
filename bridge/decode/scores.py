"""Classes and masks from what a classifier or a segmentation network gives."""

from __future__ import annotations

import numpy as np

from tflite_ort.decode.detections import Outputs
from tflite_ort.decode.image_input import Projection
from tflite_ort.decode.nodes import Nodes


def classes(nodes: Nodes, raw: str, count: int) -> Outputs:
    """The best classes first.

    Args:
        raw: scores [1, count].
    """
    least = nodes.input("min_score", np.float32, [], np.finfo(np.float32).min)
    most = nodes.input("max_results", np.int64, [], count)
    number = nodes.op("Min", nodes.reshape(most, 1), np.array([count]))
    best, places = nodes.ops("TopK", nodes.reshape(raw, -1), number, outputs=2)
    good = nodes.reshape(nodes.op("NonZero", nodes.op("GreaterOrEqual", best, least)), -1)
    return {
        "scores": (nodes.op("Gather", best, good), np.float32, ["results"]),
        "classes": (nodes.op("Gather", places, good), np.int64, ["results"]),
    }


def masks(nodes: Nodes, raw: str, channels: int, activation: str, to: Projection) -> Outputs:
    """How sure the network is of each class at each pixel of the picture, and the surest class.

    Args:
        raw: [1, H, W, channels].
        activation: what is applied to `raw`: ``"Sigmoid"``, ``"Softmax"`` or nothing.
    """
    planes = nodes.op("Transpose", raw, perm=[0, 3, 1, 2])
    if activation:
        planes = nodes.op(activation, planes, **({"axis": 1} if activation == "Softmax" else {}))
    if to.size is not None:
        planes = _resized(nodes, planes, to.size)
    sure = nodes.op("Squeeze", planes, np.array([0]))
    if channels == 1:
        surest = nodes.cast(nodes.op("Greater", nodes.pick(sure, 0), 0.5), np.uint8)
    else:
        surest = nodes.cast(nodes.op("ArgMax", sure, axis=0, keepdims=0), np.uint8)
    return {
        "confidence_masks": (sure, np.float32, [channels, "height", "width"]),
        "category_mask": (surest, np.uint8, ["height", "width"]),
    }


def _resized(nodes: Nodes, planes: str, size: str) -> str:
    """[1, C, H, W] at the size of the picture."""
    wished = nodes.cast(nodes.pick(size, 1, 0), np.int64)
    sizes = nodes.join(nodes.op("Shape", planes, end=2), wished)
    how = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
    return nodes.op("Resize", planes, None, None, sizes, **how)
