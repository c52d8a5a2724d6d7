"""A tensor as a view of another one: RESHAPE, TRANSPOSE and SLICE as strides, as far as nothing is
copied.

Converters put a chain of RESHAPE and TRANSPOSE before and after each product of an attention. What
matters is where the elements stand in the end: the strides say it, however the chain is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tflite_ort.base.records import record

Shape = tuple[int, ...]
# Sizes and strides, in elements, of what one dimension runs through, the slowest first.
Runs = tuple[tuple[int, int], ...]


@record
class Strided:
    """Elements of a tensor that stands in memory in order.

    Args:
        dimensions: each as the runs that it is made of; none for a size of 1. A RESHAPE can make
            one dimension of two that are none in memory.
        offset: in elements, where the first one stands.
    """

    dimensions: tuple[Runs, ...]
    offset: int = 0

    @classmethod
    def whole(cls, shape: Sequence[int]) -> Strided:
        """All elements in their order."""
        return cls.of(shape, [prod(shape[axis + 1 :]) for axis in range(len(shape))])

    @classmethod
    def of(cls, shape: Sequence[int], strides: Sequence[int], offset: int = 0) -> Strided:
        """One stride for each dimension."""
        pairs = zip(shape, strides, strict=True)
        return cls(tuple(((size, stride),) if size > 1 else () for size, stride in pairs), offset)

    def transposed(self, order: Sequence[int]) -> Strided:
        """With the dimensions in another order."""
        return Strided(tuple(self.dimensions[i] for i in order), self.offset)

    def sliced(self, begin: Sequence[int], shape: Sequence[int]) -> Strided | None:
        """A part of each dimension; None where one that is cut is none in memory."""
        dimensions, offset = [], self.offset
        for runs, first, size in zip(self.dimensions, begin, shape, strict=True):
            if prod(each for each, _ in runs) == size:
                dimensions.append(runs)
                continue
            if len(runs) != 1:
                return None
            ((_, stride),) = runs
            offset += first * stride
            dimensions.append(((size, stride),) if size > 1 else ())
        return Strided(tuple(dimensions), offset)

    def reversed(self, axis: int) -> Strided | None:
        """With a dimension from its end to its beginning; None where it is none in memory."""
        runs = self.dimensions[axis]
        if len(runs) > 1:
            return None
        turned = tuple((size, -stride) for size, stride in runs)
        offset = self.offset + sum((size - 1) * stride for size, stride in runs)
        return Strided((*self.dimensions[:axis], turned, *self.dimensions[axis + 1 :]), offset)

    @property
    def shape(self) -> Shape:
        """The sizes of the dimensions."""
        return tuple(prod(size for size, _ in runs) for runs in self.dimensions)

    def broadcast(self, shape: Sequence[int]) -> Strided | None:
        """With dimensions of 1 repeated; None where another one has not the size asked for."""
        before: tuple[Runs, ...] = ((),) * (len(shape) - len(self.dimensions))
        dimensions = []
        for runs, size in zip((*before, *self.dimensions), shape, strict=True):
            if runs and prod(each for each, _ in runs) != size:
                return None
            dimensions.append(runs or (((size, 0),) if size > 1 else ()))
        return Strided(tuple(dimensions), self.offset)

    def reshaped(self, shape: Sequence[int]) -> Strided | None:
        """With other dimensions; None where these cut a run elsewhere than in whole parts."""
        left = [run for runs in self.dimensions for run in runs]
        dimensions = []
        for wanted in shape:
            taken: list[tuple[int, int]] = []
            while wanted > 1:
                if not left:
                    return None
                size, stride = left.pop(0)
                if size > wanted:
                    if size % wanted:
                        return None
                    left.insert(0, (size // wanted, stride))
                    size, stride = wanted, stride * (size // wanted)
                elif wanted % size:
                    return None
                taken.append((size, stride))
                wanted //= size
            dimensions.append(_joined(taken))
        return None if left else Strided(tuple(dimensions), self.offset)


def _joined(runs: Sequence[tuple[int, int]]) -> Runs:
    """Runs next to each other that are one in memory, as one."""
    joined: list[tuple[int, int]] = []
    for size, stride in runs:
        if joined and joined[-1][1] == size * stride:
            joined[-1] = joined[-1][0] * size, stride
        else:
            joined.append((size, stride))
    return tuple(joined)
