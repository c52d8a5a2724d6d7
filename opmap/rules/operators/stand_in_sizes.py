"""Numbers in the place of unknown sizes, for what has to count elements.

A prime that divides no other size stands for each unknown one. What is true of the shapes with such
a number, element by element, is true of them with any.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tflite_ort.base.records import replace
from tflite_ort.schema import OperatorView, TensorView, Untranslatable
from tflite_ort.schema.values.sizes import UnknownSize, is_known, multiple

View = OperatorView[Any]
# Larger than the factors that shapes have, and small enough to write down all elements of an axis.
_FIRST = 211


class StandInSizes:
    """The unknown sizes of a graph, each with its number."""

    def __init__(self, operators: Sequence[View]) -> None:
        shapes = [t.shape for op in operators for t in (*op.present_inputs(), *op.outputs)]
        self._known = {n for shape in shapes if is_known(*shape) for n in shape}
        self._known |= {n for shape in shapes for n in shape if is_known(n)}
        self._numbers = dict[int, tuple[UnknownSize, int]]()
        self._primes = self._unused_primes()
        self.operators = operators
        if not all(is_known(*shape) for shape in shapes):
            self.operators = [self._closed(op) for op in operators]

    def opened(self, size: int) -> int:
        """What `size` stands for.

        Raises:
            Untranslatable: a product of two unknown sizes.
        """
        found = [(root, prime) for root, prime in self._numbers.values() if size % prime == 0]
        if len(found) > 1:
            raise Untranslatable("a shape depends on data")
        for root, prime in found:
            return multiple(_as_size(root), size // prime)
        return size

    def is_open(self, size: int) -> bool:
        """Whether `size` stands for an unknown one."""
        return any(size % prime == 0 for _, prime in self._numbers.values())

    def _unused_primes(self) -> Iterator[int]:
        for number in range(_FIRST, 10 * _FIRST, 2):
            prime = all(number % divisor for divisor in range(3, int(number**0.5) + 1, 2))
            if prime and all(size % number or not size for size in self._known):
                yield number

    def _closed(self, op: View) -> View:
        inputs = tuple(None if each is None else self._numbered(each) for each in op.inputs)
        return replace(op, inputs=inputs, outputs=tuple(map(self._numbered, op.outputs)))

    def _numbered(self, tensor: TensorView) -> TensorView:
        if is_known(*tensor.shape):
            return tensor
        return replace(tensor, shape=tuple(map(self._number, tensor.shape)))

    def _number(self, size: Any) -> int:
        if not isinstance(size, UnknownSize):
            return int(size)
        root = size.root
        if id(root) not in self._numbers:
            prime = next(self._primes, None)
            if prime is None:
                raise Untranslatable("more unknown sizes than are told apart")
            self._numbers[id(root)] = root, prime
        return self._numbers[id(root)][1] * size.factor


def _as_size(size: Any) -> int:
    found: int = size
    return found
