"""Classes and masks from what a classifier or a segmentation network gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tflite_ort.decode.detections import Outputs
from tflite_ort.decode.image_input import Projection
from tflite_ort.decode.nodes import Nodes

# In a mask of one class: where the class is not.
_UNLABELLED = 255


def output_names(number: int) -> tuple[str, str]:
    """What the scores and the classes of a network's output are called."""
    return ("scores", "classes") if not number else (f"scores_{number}", f"classes_{number}")


def classes(nodes: Nodes, raw: Sequence[str], counts: Sequence[int]) -> Outputs:
    """The best classes of each output first.

    Args:
        raw: scores, of so many classes.
    """
    least = nodes.input("min_score", np.float32, [], np.finfo(np.float32).min)
    most = nodes.input("max_results", np.int64, [], max(counts))
    made: dict[str, Any] = {}
    for head, (scores, count) in enumerate(zip(raw, counts, strict=True)):
        number = nodes.op("Min", nodes.reshape(most, 1), np.array([count]))
        best, places = nodes.ops("TopK", nodes.reshape(scores, -1), number, outputs=2)
        good = nodes.reshape(nodes.op("NonZero", nodes.op("GreaterOrEqual", best, least)), -1)
        results = "results" if not head else f"results_{head}"
        for name, values, dtype in zip(
            output_names(head), (best, places), (np.float32, np.int64), strict=True
        ):
            made[name] = (nodes.op("Gather", values, good), dtype, [results])
    return made


def masks(nodes: Nodes, raw: str, channels: int, activation: str, to: Projection) -> Outputs:
    """How sure the network is of each class at each pixel of the picture, and the surest class.

    As in MediaPipe, the surest class follows from other numbers: those before the activation, at
    places where the corners of the network's mask are those of the picture. A mask of one class has
    0 where the class is, and 255 where it is not.

    Args:
        raw: [1, channels, H, W].
        activation: what is applied to `raw`: ``"Sigmoid"``, ``"Softmax"`` or nothing.
    """
    planes = told = raw
    if activation:
        planes = nodes.op(activation, planes, **({"axis": 1} if activation == "Softmax" else {}))
    if to.size is not None:
        planes = _resized(nodes, planes, to.size, "half_pixel")
        told = _resized(nodes, told, to.size, "align_corners")
    if channels == 1:
        limit = 0.0 if activation else 0.5
        here = nodes.op("Greater", nodes.pick(told, 0, axis=1), limit)
        surest = nodes.op("Where", here, np.uint8(0), np.uint8(_UNLABELLED))
    else:
        surest = nodes.cast(nodes.op("ArgMax", told, axis=1, keepdims=0), np.uint8)
    first = np.array([0])
    return {
        "confidence_masks": (
            nodes.op("Squeeze", planes, first),
            np.float32,
            [channels, "height", "width"],
        ),
        "category_mask": (nodes.op("Squeeze", surest, first), np.uint8, ["height", "width"]),
    }


def _resized(nodes: Nodes, planes: str, size: str, places: str) -> str:
    """[1, C, H, W] at the size of the picture."""
    wished = nodes.cast(nodes.pick(size, 1, 0), np.int64)
    sizes = nodes.join(nodes.op("Shape", planes, end=2), wished)
    how = {"mode": "linear", "coordinate_transformation_mode": places}
    return nodes.op("Resize", planes, None, None, sizes, **how)
