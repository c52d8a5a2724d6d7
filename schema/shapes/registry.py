"""The registry of shape rules.

One module ``schema/shapes/<family>.py`` per family registers its rules::

    from tflite_ort.schema.shapes.registry import Shapes, rule

    @rule(Op.ATAN2)
    def same_shapes(op: OperatorView[Any]) -> Shapes | None:
        if op["input1"].shape != op["input2"].shape:
            raise ModelError("shapes differ")
        return (op["input1"].shape,)

and `rule_of` imports that module when an operator of the family comes. A rule reads the inputs by
the names that `schema/values/operators.py` declares; their element types are checked before. It
returns one shape per output, with an unknown size where one depends on data, or None when even a
rank does. It raises ModelError for shapes that are known not to fit. It never reads the shapes of
the outputs.

A rule that asks for the number of an unknown size is left by Untranslatable, and then all sizes of
the outputs are unknown. So a rule looks only after sizes that are worth passing on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain, zip_longest
from math import prod
from typing import Any

import numpy.typing as npt

from tflite_ort.base.optional import load
from tflite_ort.schema.file.budgets import MOST_DIMENSIONS
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.values.operators import FAMILIES, FLEX, Key, family_of, flex_names
from tflite_ort.schema.values.sizes import Shape as Shape
from tflite_ort.schema.values.sizes import (
    common,
    is_known,
    is_one,
    unknown_shape,
    unknown_size,
)
from tflite_ort.schema.values.view import Array, OperatorView, TensorView

Shapes = tuple[Shape, ...]
Rule = Callable[[OperatorView[Any]], Shapes | None]

# Options that ask for more elements are damaged: nothing is allocated for them.
MOST_CELLS = 1 << 26
# Of an image that is resized or a row that is transformed: longer ones take gigabytes and minutes.
LONGEST_SIDE = 1 << 22
_LISTED = 64
_NAMED = 8  # shapes in a message

RULES: dict[Key, Rule] = {}
_LOADED: set[str] = set()  # families


def rule(*operators: Key) -> Callable[[Rule], Rule]:
    """Registers a function as the shape rule of `operators`, custom ones by name; a second rule of
    one raises."""

    def register(function: Rule) -> Rule:
        for operator in operators:
            if operator in RULES:
                raise ValueError(f"{getattr(operator, 'name', operator)} has a shape rule already")
            RULES[operator] = function
        return function

    return register


def rule_of(key: Key) -> Rule | None:
    """The shape rule of an operator, if there is one."""
    found = RULES.get(key)
    family = None if found is not None else family_of(key)
    if family is not None and family not in _LOADED:
        load(f"tflite_ort.schema.shapes.{family}")
        _LOADED.add(family)
        found = RULES.get(key)
    return found


def flex_rule(*names: str) -> Callable[[Rule], Rule]:
    """As `rule`, of TensorFlow's operators by their own names."""
    return rule(*(FLEX + name for name in names))


def all_rules() -> Mapping[Key, Rule]:
    """Every rule by its operator."""
    found = {key: rule_of(key) for key in (*FAMILIES, *flex_names())}
    return {key: rule for key, rule in found.items() if rule is not None}


def listed(tensor: TensorView) -> Shape | None:
    """The values of a list of sizes, as far as they are known; None when not even their number is.

    Raises:
        ModelError: a shape cannot have so many, or they are no integers.
    """
    if tensor.data is not None:
        if tensor.data.dtype.kind in "OUScf":
            raise ModelError(f"{tensor.name!r} has sizes of {tensor.type.name}, expected integers")
        check_rank(tensor.data.size)
        return tuple(tensor.data.reshape(-1).tolist())
    if tensor.sizes is not None:
        found = tensor.sizes.reshape(-1).tolist()
        return tuple(unknown_size() if size is None else size for size in found)
    if tensor.dynamic:
        return None
    check_rank(prod(tensor.shape))
    return unknown_shape(prod(tensor.shape))


def check_rank(rank: int) -> None:
    """Refuse more dimensions than an array can have."""
    if rank > MOST_DIMENSIONS:
        raise ModelError(f"{rank} dimensions, more than {MOST_DIMENSIONS}")


def shown(array: npt.NDArray[Any]) -> str:
    """An array in a message: the first of many numbers. Lists of no elements may have many rows."""
    if 0 < array.size <= _LISTED:
        return str(array.tolist())
    more = f" and {array.size - _LISTED} more" if array.size else ""
    return f"{array.reshape(-1)[:_LISTED].tolist()}{more}"


def some(shapes: Sequence[Shape]) -> str:
    """`shapes` in a message: the first of many."""
    more = f" and {len(shapes) - _NAMED} more" if len(shapes) > _NAMED else ""
    return f"{list(shapes[:_NAMED])}{more}"


def shapes_of_one_type(tensors: Sequence[TensorView]) -> list[Shape]:
    """The shapes of tensors, which have to be of one type."""
    kinds = {tensor.type.name: tensor for tensor in tensors}
    if len(kinds) > 1:
        raise ModelError(f"types {' and '.join(kinds)} differ")
    return [tensor.shape for tensor in tensors]


def of_rank(op: OperatorView[Any], name: str, rank: int) -> Shape:
    """The shape of the input `name`, which has `rank` dimensions."""
    shape = op[name].shape
    if len(shape) != rank:
        raise ModelError(f"{op.label}: input {name!r} has rank {len(shape)}, expected {rank}")
    return shape


def reduced(shape: Shape, axes: Collection[int], keep: bool = False) -> Shapes:
    """`shape` without the axes, or with sizes of 1 there."""
    sizes = enumerate(shape)
    if keep:
        return (tuple(1 if axis in axes else size for axis, size in sizes),)
    return (tuple(size for axis, size in sizes if axis not in axes),)


def single(values: Array) -> int:
    """The one value of an integer tensor, whatever its rank."""
    if values.size != 1:
        raise ModelError(f"expected one value, got shape {values.shape}")
    return int(values.reshape(-1)[0])


def same_shape(op: OperatorView[Any]) -> Shapes:
    """The first input's shape."""
    return (op[op.names[0]].shape,)


def broadcast_pair(op: OperatorView[Any]) -> Shapes:
    """The two inputs' shapes broadcast as numpy does."""
    return (broadcast(op, op["input1"].shape, op["input2"].shape),)


def broadcast(op: OperatorView[Any], *shapes: Shape) -> Shape:
    """`shapes` broadcast together as numpy does, or a ModelError that names them.

    An unknown size beside a known one above 1 is 1 or that size; two unknown ones give a third.
    """
    first, *others = shapes
    if is_known(*chain.from_iterable(shapes)) and others.count(first) == len(others):
        return first
    columns = list(zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1))
    result = []
    for column in reversed(columns):
        sizes = [size for size in column if not is_one(size)] or [1]
        size = common(*sizes)
        if any(is_known(size, other) and size != other for other in sizes):
            listed = " and ".join(map(str, shapes))
            raise ModelError(f"{op.label}: shapes {listed} do not broadcast")
        alike = is_known(size) or all(other is size for other in sizes[1:])
        result.append(size if alike else unknown_size())
    return tuple(result)


def check_bias(op: OperatorView[Any], outputs: int) -> None:
    """Refuse a bias that is not one number for each of `outputs`.

    XNNPACK would read as many, past the end of a shorter one; TFLite's own kernels refuse it.
    """
    bias = op.get("bias")
    if bias is None or not is_known(outputs, *bias.shape) or 0 in bias.shape:
        return
    if prod(bias.shape) != outputs:
        raise ModelError(f"{op.label}: a bias of {bias.shape} for {outputs} outputs")
