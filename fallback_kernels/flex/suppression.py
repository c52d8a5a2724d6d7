"""TensorFlow's non-maximum suppression of all classes of all images."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.flex.rest import refuse_rest
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.values.flex import node_of


@flex_kernel("CombinedNonMaxSuppression")
def combined(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """(boxes, scores, classes, how many) of each image: the best of all classes, then zeros."""
    boxes, scores = inputs[:2]
    each, total = int(inputs[2].item()), int(inputs[3].item())
    overlap, lowest = (np.float32(value.item()) for value in inputs[4:])
    batch, _, groups, _ = boxes.shape
    classes = scores.shape[2]
    if groups not in (1, classes) or boxes.shape[:2] != scores.shape[:2]:
        raise KernelError(f"boxes of shape {boxes.shape} with scores of {scores.shape}")
    if each < 1 or total < 1 or not 0 <= overlap <= 1:
        raise KernelError(f"{each} boxes of a class, {total} in all, overlap {overlap}")
    node = node_of(op)
    size = min(total, each * classes) if node["pad_per_class"] else total
    found = np.zeros((batch, size, 4), np.float32)
    values, kinds = np.zeros((batch, size), np.float32), np.zeros((batch, size), np.float32)
    counts = np.zeros(batch, np.int32)
    for image in range(batch):
        rows = [
            (scores[image, box, kind], kind, boxes[image, box, kind if groups > 1 else 0])
            for kind in range(classes)
            for box in _kept(
                boxes[image, :, kind if groups > 1 else 0],
                scores[image, :, kind],
                each,
                overlap,
                lowest,
            )
        ]
        rows.sort(key=lambda row: -row[0])
        for place, (score, kind, box) in enumerate(rows[:size]):
            values[image, place], kinds[image, place], found[image, place] = score, kind, box
        counts[image] = min(len(rows), size)
    if node["clip_boxes"]:
        found = np.clip(found, np.float32(0), np.float32(1))
    return found, values, kinds, counts


def _kept(
    boxes: Array, scores: Array, most: int, overlap: np.float32, lowest: np.float32
) -> Iterator[int]:
    """The best boxes, without those that overlap a better one."""
    order = np.argsort(-scores, kind="stable")
    corners = np.concatenate(
        [np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])], axis=1
    )
    kept: list[int] = []
    for box in order[scores[order] > lowest].tolist():
        if len(kept) == most:
            return
        if not (_overlaps(corners[box], corners[kept]) > overlap).any():
            kept.append(box)
            yield box


def _overlaps(box: Array, others: Array) -> Array:
    """Intersection over union; 0 with a box without area."""
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    shared = np.maximum(sides, 0).prod(axis=1)
    area, areas = (box[2:] - box[:2]).prod(), (others[:, 2:] - others[:, :2]).prod(axis=1)
    with np.errstate(all="ignore"):
        shares = shared / (area + areas - shared)
    return np.where((area > 0) & (areas > 0), shares, np.float32(0))


@flex_kernel("NonMaxSuppressionWithOverlaps")
def with_overlaps(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """The best boxes, without those that overlap a better one by more than the threshold."""
    overlaps, scores = inputs[:2]
    most, limit, lowest = (value.item() for value in inputs[2:])
    if scores.ndim != 1 or overlaps.shape != (len(scores),) * 2:
        raise KernelError(f"overlaps of shape {overlaps.shape} of {scores.shape} scores")
    order = np.argsort(-scores, kind="stable")
    kept: list[int] = []
    for box in order[scores[order] > np.float32(lowest)].tolist():
        if len(kept) >= most:
            break
        if not (overlaps[box, kept] > np.float32(limit)).any():
            kept.append(box)
    return (np.array(kept, np.int32),)


refuse_rest("suppression")
