"""Which sizes of a model's inputs are opened, and what they become."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tflite_ort.batching.samples import has_one_sample
from tflite_ort.schema import Model

Shape = tuple[int, ...]
# Of more inputs than that, each alone is not opened.
_MOST_INPUTS = 4


@dataclass(frozen=True)
class Opening:
    """Open axes of inputs.

    Args:
        axes: pairs of an input's position and the axis.
    """

    axes: tuple[tuple[int, int], ...]

    def named(self, model: Model) -> dict[str, tuple[int | str, ...]]:
        """Shapes for an export: sizes that the file has alike along an axis have one name."""
        graph, shapes = model.subgraphs[0], {}
        for position, index in enumerate(graph.inputs):
            tensor = graph.tensors[index]
            shape = [
                f"axis{axis}of{size}" if (position, axis) in self.axes else size
                for axis, size in enumerate(tensor.shape)
            ]
            if any(isinstance(size, str) for size in shape):
                shapes[tensor.name] = tuple(shape)
        return shapes

    def resized(self, model: Model, change: int, seed: int) -> dict[int, Shape]:
        """Shapes by an input's position: the `change`-th further size along each open axis."""
        graph, shapes = model.subgraphs[0], {}
        for position, index in enumerate(graph.inputs):
            shape = list(graph.tensors[index].shape)
            for axis, size in enumerate(shape):
                if (position, axis) in self.axes:
                    shape[axis] = further(size, seed)[change]
            if tuple(shape) != graph.tensors[index].shape:
                shapes[position] = tuple(shape)
        return shapes

    def batches(self, model: Model) -> frozenset[int]:
        """The inputs, by position, of which one sample becomes a batch."""
        graph = model.subgraphs[0]
        return frozenset(
            position
            for position, axis in self.axes
            if axis == 0 and has_one_sample(model, 0, graph.inputs[position])
        )


def further(size: int, seed: int) -> tuple[int, int, int]:
    """Three other sizes: twice as many, a few more, and fewer."""
    if size < 2:
        return 2, 3, 5
    rng = np.random.default_rng((seed, size))
    fewer = 1 if rng.random() < 0.4 else int(rng.integers(1, size))
    return 2 * size, size + int(rng.integers(1, 4)), fewer


def openings(model: Model) -> Iterator[Opening]:
    """Each axis of each input, each axis of all, those between the first and the last, and all."""
    graph = model.subgraphs[0]
    ranks = [len(graph.tensors[index].shape) for index in graph.inputs]
    every = [(position, axis) for position, rank in enumerate(ranks) for axis in range(rank)]
    groups: list[Sequence[tuple[int, int]]] = []
    if len(ranks) <= _MOST_INPUTS:
        groups += [[each] for each in every]
    for wanted in range(max(ranks, default=0)):
        groups.append([each for each in every if each[1] == wanted])
    groups.append([each for each in every if 0 < each[1] < ranks[each[0]] - 1])
    groups.append(every)
    return map(Opening, dict.fromkeys(tuple(group) for group in groups if group))
