"""TensorFlow's decoders of connectionist temporal classification (Graves et al., ICML 2006)."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import numpy as np

from tflite_ort.base.records import field, record
from tflite_ort.fallback_kernels.idioms.ragged_rows import sparse_places
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.values.flex import node_of

View = OperatorView[Any]

_NEVER = -np.inf  # the logarithm of the probability of what does not happen


def _checked(inputs: Inputs) -> tuple[Array, list[int]]:
    """[time, batch, classes], and the length of each sequence."""
    x, lengths = inputs
    if x.ndim != 3 or lengths.shape != x.shape[1:2] or not x.shape[2]:
        raise KernelError(f"{lengths.shape} lengths of inputs of {x.shape}")
    if (lengths < 0).any() or (lengths > x.shape[0]).any():
        raise KernelError(f"lengths beyond {x.shape[0]}")
    return x, lengths.tolist()


def _sparse(paths: Sequence[Sequence[int]]) -> tuple[Array, Array, Array]:
    """The places, the labels and the size of paths, one for each sequence."""
    places, sizes = sparse_places(paths)
    return places, np.array([label for path in paths for label in path], np.int64), sizes


@flex_kernel("CTCGreedyDecoder")
def greedy(op: View, inputs: Inputs, state: State) -> Outputs:
    """The most likely class of each step, without blanks and, if asked, repetitions."""
    (x, lengths), node = _checked(inputs), node_of(op)
    classes, blank = x.shape[2], node["blank_index"]
    blank += classes if blank < 0 else 0
    if not 0 <= blank < classes:
        raise KernelError(f"blank {node['blank_index']} of {classes} classes")
    best, scores = x.argmax(axis=2), np.zeros((x.shape[1], 1), x.dtype)
    paths = []
    for row, length in enumerate(lengths):
        found = best[:length, row]
        kept = found != blank
        if node["merge_repeated"]:
            kept[1:] &= found[1:] != found[:-1]
        paths.append(found[kept].tolist())
        for value in x[np.arange(length), row, found]:
            scores[row] -= value
    return (*_sparse(paths), scores)


@record(frozen=False, eq=False)
class _Beam:
    """A prefix: logarithms of the probabilities that it ends in its label, in a blank, or in any of
    both, before (`old`) and after this step."""

    parent: _Beam | None
    label: int
    total: float = _NEVER
    blank: float = _NEVER
    ended: float = _NEVER
    old_total: float = _NEVER
    old_blank: float = _NEVER
    children: dict[int, _Beam] = field(default_factory=dict)

    def forget(self) -> None:
        """It is no longer among the best."""
        self.total = self.blank = self.ended = _NEVER

    def path(self, merge: bool) -> list[int]:
        """The labels from the first to the last; of equal neighbours one with `merge`."""
        labels: list[int] = []
        at, before = self, -1
        while at.parent is not None:
            if not merge or at.label != before:
                labels.append(at.label)
            at, before = at.parent, at.label
        return labels[::-1]


def _sum(a: float, b: float) -> float:
    return a if b == _NEVER else b if a == _NEVER else float(np.logaddexp(a, b))


class _Best:
    """The `width` best beams."""

    def __init__(self, width: int) -> None:
        self.width, self.count = width, 0
        self.heap: list[tuple[float, int, _Beam]] = []

    def takes(self, total: float) -> bool:
        return total > _NEVER and (len(self.heap) < self.width or total > self.heap[0][0])

    def push(self, beam: _Beam) -> _Beam | None:
        """Add a beam; the one that falls out."""
        self.count += 1
        entry = (beam.total, -self.count, beam)
        if len(self.heap) < self.width:
            heapq.heappush(self.heap, entry)
            return None
        return heapq.heappushpop(self.heap, entry)[2]

    def ordered(self) -> list[_Beam]:
        """The best one first."""
        return [entry[2] for entry in sorted(self.heap, key=lambda each: (-each[0], -each[1]))]


def _searched(logits: Array, width: int) -> _Best:
    """The beams after all steps of a sequence [time, classes]; the last class is the blank."""
    best = _Best(width)
    best.push(_Beam(None, -1, total=0.0, blank=0.0))
    for row in logits.astype(np.float64):
        most = row.max()
        step = (row - (most + np.log(np.exp(row - most).sum()))).tolist()
        beams, best = best.ordered(), _Best(width)
        for beam in beams:
            beam.old_total, beam.old_blank = beam.total, beam.blank
        for beam in beams:
            _advance(beam, step)
            best.push(beam)
        for beam in beams:
            if best.takes(beam.old_total):
                _grow(beam, step, best)
    return best


def _advance(beam: _Beam, step: list[float]) -> None:
    """One step with the same labels."""
    parent = beam.parent
    if parent is not None:
        if parent.total != _NEVER:
            same = beam.label == parent.label
            beam.ended = _sum(beam.ended, parent.old_blank if same else parent.old_total)
        beam.ended += step[beam.label]
    beam.blank = beam.old_total + step[-1]
    beam.total = _sum(beam.blank, beam.ended)


def _grow(beam: _Beam, step: list[float], best: _Best) -> None:
    """One step with one label more, where that is among the best."""
    for label, likely in enumerate(step[:-1]):
        child = beam.children.setdefault(label, _Beam(beam, label))
        if child.total != _NEVER:
            continue
        total = likely + (beam.old_blank if label == beam.label else beam.old_total)
        if not best.takes(total):
            child.forget()
            child.old_total = child.old_blank = _NEVER
            continue
        child.blank, child.ended, child.total = _NEVER, total, total
        fallen = best.push(child)
        if fallen is not None:
            fallen.forget()


@flex_kernel("CTCBeamSearchDecoder")
def beam_search(op: View, inputs: Inputs, state: State) -> Outputs:
    """The best paths of a search of the best prefixes."""
    (x, lengths), node = _checked(inputs), node_of(op)
    width, count = node["beam_width"], node["top_paths"]
    if count > width:
        raise KernelError(f"{count} paths of {width} beams")
    rows: list[list[list[int]]] = [[] for _ in range(count)]
    scores = np.zeros((x.shape[1], count), x.dtype)
    for row, length in enumerate(lengths):
        beams = _searched(x[:length, row], width).ordered()
        if len(beams) < count:
            raise KernelError(f"{count} paths of {len(beams)} that there are")
        for place, beam in enumerate(beams[:count]):
            rows[place].append(beam.path(node["merge_repeated"]))
            scores[row, place] = beam.total
    results = [_sparse(paths) for paths in rows]
    places, labels, sizes = zip(*results, strict=True)
    return (*places, *labels, *sizes, scores)
