"""Sizes that are not known until a model runs, and what can be said of shapes that have them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NoReturn, cast

from tflite_ort.schema.file.errors import Untranslatable

# TFLite keeps sizes in 32 bits.
LARGEST_SIZE = 2**31 - 1

Shape = tuple[int, ...]


class UnknownSize:
    """A size in a shape that depends on data: the same object is the same size.

    It stands where an int does and passes from shape to shape, but whatever asks for its number
    raises Untranslatable: so does a set or a dictionary, which would take two unknown sizes for
    different ones.

    Args:
        name: what an exported model calls the dimension; empty: named after a tensor.
        root, factor: of a size that is known to be `factor` times another one.
    """

    __slots__ = ("_multiples", "factor", "name", "root")

    def __init__(self, name: str = "", root: UnknownSize | None = None, factor: int = 1) -> None:
        self.name, self.root, self.factor = name, self if root is None else root, factor
        self._multiples: dict[int, UnknownSize] = {}

    def times(self, factor: int) -> UnknownSize:
        """The size `factor` times as large: the same object each time."""
        root, whole = self.root, self.factor * factor
        return (
            root if whole == 1 else root._multiples.setdefault(whole, UnknownSize("", root, whole))
        )

    def __eq__(self, other: object) -> bool:
        return self is other or self._refuse()

    def _refuse(self, *_: object) -> NoReturn:
        raise Untranslatable("a shape depends on data")

    __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
    __floordiv__ = __rfloordiv__ = __truediv__ = __rtruediv__ = __mod__ = __rmod__ = _refuse
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = bit_length = _refuse
    __divmod__ = __rdivmod__ = __pow__ = __rpow__ = __neg__ = __pos__ = __abs__ = _refuse
    __int__ = __index__ = __float__ = __bool__ = __hash__ = _refuse

    def __repr__(self) -> str:
        return self.name or "?"


def name_of(size: Any) -> str:
    """What an unknown size is called; empty if nothing."""
    return size.name if isinstance(size, UnknownSize) else ""


def unknown_size(name: str = "") -> int:
    """A fresh unknown size. It is typed as the int that it stands for."""
    return cast(int, UnknownSize(name))


def multiple(size: int, factor: int) -> int:
    """`factor` times `size`; unknown for an unknown one, but the same for the same factor."""
    unknown = _unknown(size)
    if unknown is None:
        return size * factor
    return cast(int, unknown.times(factor)) if factor > 0 else 0


def _unknown(size: Any) -> UnknownSize | None:
    """`size` as what it is, where that is no int."""
    return size if isinstance(size, UnknownSize) else None


def unknown_shape(rank: int) -> Shape:
    """`rank` fresh unknown sizes."""
    return tuple(unknown_size() for _ in range(rank))


def is_known(*sizes: Any) -> bool:
    """Whether none of `sizes` is unknown."""
    return UnknownSize not in map(type, sizes)


def is_one(size: int) -> bool:
    """Whether `size` is known to be 1."""
    return is_known(size) and size == 1


def has_zero(*sizes: int) -> bool:
    """Whether a size is known to be 0."""
    return 0 in sizes if is_known(*sizes) else any(is_known(n) and n == 0 for n in sizes)


def known_product(shape: Sequence[int]) -> int:
    """The product of what is known of the sizes: how large a tensor is at least, if not empty."""
    if is_known(*shape):
        return prod(shape)
    sizes = ((size, _unknown(size)) for size in shape)
    return prod(size if unknown is None else unknown.factor for size, unknown in sizes)


def may_differ(one: Sequence[int], other: Sequence[int]) -> bool:
    """Whether two shapes are not known to be the same."""
    if len(one) != len(other):
        return True
    pairs = zip(one, other, strict=True)
    return any(a is not b and not (is_known(a, b) and a == b) for a, b in pairs)


def differ(one: Sequence[int], other: Sequence[int]) -> bool:
    """Whether two shapes are known not to be the same."""
    if len(one) != len(other):
        return True
    return any(is_known(a, b) and a != b for a, b in zip(one, other, strict=True))


def common(*sizes: int) -> int:
    """The size that all of `sizes` have if the model is right: a known one, else the first."""
    return next((size for size in sizes if is_known(size)), sizes[0])


def cancelled(one: Sequence[int], other: Sequence[int]) -> tuple[list[int], list[int]]:
    """The unknown sizes of two shapes without those that both have; of a multiple, what it is a
    multiple of."""
    left, right = _roots(one), []
    for root in _roots(other):
        place = next((i for i, unknown in enumerate(left) if unknown is root), None)
        if place is None:
            right.append(root)
        else:
            del left[place]
    return left, right


def has_roots(shape: Sequence[int], other: Sequence[int]) -> bool:
    """Whether the unknown sizes of `shape` are multiples of some of `other`."""
    known = _roots(other)
    return all(any(root is each for each in known) for root in _roots(shape))


def _roots(shape: Sequence[int]) -> list[int]:
    """What the unknown sizes of a shape are multiples of."""
    unknown = (each for each in map(_unknown, shape) if each is not None)
    return [cast(int, each.root) for each in unknown]


def same_elements(one: Sequence[int], other: Sequence[int]) -> bool:
    """Whether two shapes are known to hold the same number of elements."""
    return cancelled(one, other) == ([], []) and known_product(one) == known_product(other)


def padded_size(size: int, more: int) -> int:
    """`size` with `more` elements; fewer if that is negative."""
    if is_known(size):
        return size + more
    return unknown_size() if more else size


def quotient(shape: Sequence[int], divisor: int = 1) -> int:
    """How many times `divisor` elements there are in `shape`, cut to a whole; unknown sizes give
    an unknown one."""
    unknown = [size for size in shape if not is_known(size)]
    if not unknown:
        return prod(shape) // divisor
    known = known_product(shape)
    if len(unknown) != 1 or not is_known(divisor) or not known or known % divisor:
        return unknown_size()
    return multiple(cancelled(unknown, ())[0][0], known // divisor)


def one_is_inferred(shape: Sequence[int]) -> bool:
    """Whether `shape` has one unknown size, which Reshape infers from a -1."""
    return sum(not is_known(size) for size in shape) == 1 and known_product(shape) > 0
