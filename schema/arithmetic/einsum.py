"""Equations of Einsum as TensorFlow reads them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import ascii_letters

from tflite_ort.base.records import record
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.values.sizes import (
    Shape,
    common,
    differ,
    is_known,
    is_one,
    unknown_size,
)

_TERM = re.compile(r"([A-Za-z]*)(\.\.\.)?([A-Za-z]*)")
_MOST = 2  # inputs that TensorFlow's operator has


@record
class Equation:
    """An equation of inputs of known ranks.

    Args:
        text: with an arrow.
        shape: of the result.
        dotted: for each input, what its dots stand for; None where it has none.
    """

    text: str
    shape: Shape
    dotted: tuple[Shape | None, ...]

    @classmethod
    def of(cls, text: str, shapes: Sequence[Shape]) -> Equation:
        """The equation of inputs of `shapes`.

        Raises:
            ModelError: it does not fit them.
        """
        given, arrow, made = text.partition("->")
        terms = given.split(",")
        if not arrow or len(terms) != len(shapes) or len(terms) > _MOST:
            raise ModelError(f"equation {text!r} for {len(shapes)} inputs")
        sizes: dict[str, int] = {}
        dotted = tuple(
            _bound(text, term, shape, sizes) for term, shape in zip(terms, shapes, strict=True)
        )
        rest = [each for each in dotted if each is not None]
        labels = _TERM.fullmatch(made)
        if labels is None or len(set(labels[1] + labels[3])) < len(labels[1] + labels[3]):
            raise ModelError(f"equation {text!r} has a result with labels that are not known here")
        if set(labels[1] + labels[3]) - set(sizes) or (rest and any(rest) and not labels[2]):
            raise ModelError(f"equation {text!r}: the result has other labels than the inputs")
        ends = [tuple(sizes[label] for label in part) for part in (labels[1], labels[3])]
        between = _broadcast(text, rest) if labels[2] else ()
        return cls(text, (*ends[0], *between, *ends[1]), dotted)

    def lettered(self) -> tuple[str, list[list[int]]]:
        """The equation with letters in the place of dots, and by input the axes of size 1 that it
        lacks then, since those of the others are larger."""
        given, _, made = self.text.partition("->")
        terms = given.split(",")
        rank = max((len(each) for each in self.dotted if each is not None), default=0)
        letters = [each for each in ascii_letters if each not in self.text][:rank]
        if len(letters) < rank:
            raise ModelError(f"equation {self.text!r} has no letters left")
        widest = [
            any(not is_one(each[place]) for each in self.dotted if each and -place <= len(each))
            for place in range(-rank, 0)
        ]
        dropped: list[list[int]] = []
        for number, (term, dots) in enumerate(zip(terms, self.dotted, strict=True)):
            lone = [
                is_one(size) and widest[rank - len(dots or ()) + place]
                for place, size in enumerate(dots or ())
            ]
            names = letters[rank - len(lone) :]
            kept = "".join(name for name, gone in zip(names, lone, strict=True) if not gone)
            start = term.find(".")
            dropped.append([start + place for place, gone in enumerate(lone) if gone])
            terms[number] = term.replace("...", kept)
        return f"{','.join(terms)}->{made.replace('...', ''.join(letters))}", dropped


def _bound(text: str, term: str, shape: Shape, sizes: dict[str, int]) -> Shape | None:
    """Learn the sizes of the labels of an input; what its dots stand for."""
    found = _TERM.fullmatch(term)
    count = 0 if found is None else len(found[1]) + len(found[3])
    if found is None or len(shape) < count or (len(shape) > count and not found[2]):
        raise ModelError(f"equation {text!r} with an input of rank {len(shape)}")
    last = len(shape) - len(found[3])
    pairs = [*zip(found[1], shape, strict=False), *zip(found[3], shape[last:], strict=True)]
    for label, size in pairs:
        if differ((sizes.setdefault(label, size),), (size,)):
            raise ModelError(f"equation {text!r}: label {label!r} is {sizes[label]} and {size}")
        sizes[label] = common(sizes[label], size)
    return shape[len(found[1]) : last] if found[2] else None


def _broadcast(text: str, shapes: Sequence[Shape]) -> Shape:
    rank = max(map(len, shapes), default=0)
    rows = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    made = []
    for column in zip(*rows, strict=True):
        wide = [size for size in column if not is_one(size)] or [1]
        size = common(*wide)
        if any(is_known(size, other) and size != other for other in wide):
            raise ModelError(
                f"equation {text!r}: {' and '.join(map(str, shapes))} do not broadcast"
            )
        made.append(size if is_known(size) or len(wide) == 1 else unknown_size())
    return tuple(made)
