"""Selection among overlapping boxes: NON_MAX_SUPPRESSION_V4 and V5."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record, replace
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, kernel
from tflite_ort.schema import KernelError, Op, OperatorView


@record(frozen=False)
class _Candidate:
    """A box that is not finally selected.

    Args:
        compared: the number of selected boxes with which it has been compared.
    """

    index: int
    score: np.float32
    compared: int = 0


class _Queue:
    """A binary heap with the greatest score on top.

    The order of equal scores depends on how elements move in the heap. These are the moves of the
    C++ standard library with which TFLite is built.
    """

    def __init__(self) -> None:
        self._heap: list[_Candidate] = []

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, candidate: _Candidate) -> None:
        self._heap.append(candidate)
        self._rise(len(self._heap) - 1, candidate)

    def pop(self) -> _Candidate:
        heap = self._heap
        top, last = heap[0], heap.pop()
        if heap:
            self._rise(self._sink(), last)
        return top

    def _sink(self) -> int:
        """Move the greater children up from the root; returns the position of the hole then."""
        heap, hole = self._heap, 0
        while (child := 2 * hole + 2) <= len(heap):
            if child == len(heap) or heap[child].score < heap[child - 1].score:
                child -= 1
            heap[hole], hole = heap[child], child
        return hole

    def _rise(self, hole: int, candidate: _Candidate) -> None:
        heap = self._heap
        while hole and heap[(hole - 1) // 2].score < candidate.score:
            heap[hole], hole = heap[(hole - 1) // 2], (hole - 1) // 2
        heap[hole] = candidate


@kernel(Op.NON_MAX_SUPPRESSION_V4, versions=(1, 1))
def non_max_suppression_v4(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """(indices [max], count): boxes that overlap a better one by `iou_threshold` are dropped."""
    indices, _, count = _selected(inputs, np.float32(0))
    return indices, count


@kernel(Op.NON_MAX_SUPPRESSION_V5, versions=(1, 1))
def non_max_suppression_v5(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """(indices [max], scores [max], count): an overlap also decays the score, by
    exp(-iou**2 / (2 * sigma)) where sigma is not 0."""
    sigma = np.float32(inputs[5].reshape(-1)[0])
    if sigma < 0:
        raise KernelError(f"sigma is {sigma}, expected at least 0")
    return _selected(inputs, sigma)


def _selected(inputs: Inputs, sigma: np.float32) -> Outputs:
    """Indices, scores and their count; both are zero past the count."""
    boxes, scores = inputs[0], inputs[1]
    size, overlap, lowest = (array.reshape(-1)[0] for array in inputs[2:5])
    if boxes.ndim != 2 or boxes.shape[1] != 4 or scores.shape != boxes.shape[:1]:
        raise KernelError(f"boxes {boxes.shape} with scores {scores.shape} are not [N, 4] and [N]")
    if size < 0:
        raise KernelError(f"max_output_size is {size}, expected at least 0")
    picked = _suppressed(boxes, scores, int(size), _Limits(overlap, lowest, sigma))
    indices, kept = np.zeros(size, np.int32), np.zeros(size, np.float32)
    indices[: len(picked)] = [candidate.index for candidate in picked]
    kept[: len(picked)] = [candidate.score for candidate in picked]
    return indices, kept, np.array(len(picked), np.int32)


@record
class _Limits:
    overlap: np.float32
    lowest: np.float32
    sigma: np.float32

    def suppress(self, candidate: _Candidate, overlaps: npt.NDArray[np.float32]) -> bool:
        """Whether one overlap is too large; the others decay the score."""
        if not self.sigma > 0:
            return bool((overlaps >= self.overlap).any())
        decay = np.float32(-0.5 / float(self.sigma))
        for overlap in overlaps:
            if overlap >= self.overlap:
                return True
            exponent = decay * overlap * overlap
            candidate.score *= np.float32(np.exp(float(exponent)))  # as precise as C's expf
            if candidate.score <= self.lowest:
                break
        return False


def _suppressed(boxes: Array, scores: Array, size: int, limits: _Limits) -> list[_Candidate]:
    """The candidates in the order of selection.

    A selected box goes back into the queue, where it suppresses itself. A box without an area does
    not overlap itself, and is selected repeatedly.
    """
    one, other = boxes[:, :2], boxes[:, 2:]
    low, high = np.where(other < one, other, one), np.where(one < other, other, one)
    queue, corners = _Queue(), np.concatenate([low, high], axis=1)
    for index in np.flatnonzero(scores > limits.lowest):
        queue.push(_Candidate(int(index), scores[index]))
    selected: list[_Candidate] = []
    most = min(len(queue), size)
    while len(selected) < most and queue:
        candidate = queue.pop()
        before = candidate.score
        others = [other.index for other in reversed(selected[candidate.compared :])]
        candidate.compared = len(selected)
        if limits.suppress(candidate, overlaps(corners[candidate.index], corners[others])):
            continue
        if candidate.score == before:
            selected.append(replace(candidate))
        if candidate.score > limits.lowest:
            queue.push(candidate)
    return selected


def overlaps(box: Array, others: Array) -> npt.NDArray[np.float32]:
    """Intersection over union of corners (y, x least, y, x greatest); 0 without an area, NaN of an
    area that is NaN."""
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    common = np.maximum(sides, np.float32(0)).prod(axis=1)
    area, areas = (box[2:] - box[:2]).prod(), (others[:, 2:] - others[:, :2]).prod(axis=1)
    empty = (area <= 0) | (areas <= 0)
    union = np.where(empty, np.float32(1), area + areas - common)
    return np.where(empty, np.float32(0), common / union)
