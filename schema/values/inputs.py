"""An operator's inputs by name: which there are, which types they take, which may be absent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from tflite_ort.base.records import field, record, replace
from tflite_ort.schema.file.element_types import TensorType, named_types
from tflite_ort.schema.file.errors import ModelError, Untranslatable
from tflite_ort.schema.values.sizes import is_known
from tflite_ort.schema.values.view import OperatorView

Types = frozenset[TensorType]

# What an input that lists numbers takes, where its row does not tell.
_INTEGERS = "i8 u8 i16 u16 i32 u32 i64 u64"
# Two for each of 64 dimensions, such as paddings.
_MOST_LISTED = 128


@record(eq=False)
class Inputs:
    """An operator's inputs.

    Args:
        names: in the order of the file.
        required: as many inputs are always there.
        variadic: the last name stands for all inputs that remain.
        constant: names of those that must be constant.
        types: by position, the element types that are taken; any where there is no entry.
        lists: positions of those that list axes, sizes and the like, one or two of a dimension, or
            one of a result.
    """

    names: tuple[str, ...]
    required: int
    variadic: bool = False
    constant: frozenset[str] = frozenset()
    types: Mapping[int, Types] = field(default_factory=dict)
    lists: tuple[int, ...] = ()

    @classmethod
    def of(cls, declared: Sequence[str]) -> Inputs:
        """From one text each: ``filter!`` must be constant, ``bias?`` may be absent, a last
        ``values*`` takes all that remain, ``ids: i32 i64`` takes these types, ``axes[]`` lists
        integers.

        Raises:
            ValueError: a name occurs twice, or one before the last ends in ``*``.
        """
        marked, types, lists = [], {}, []
        for position, text in enumerate(declared):
            name, _, accepted = text.partition(":")
            name, brackets, _ = name.strip().partition("[]")
            marked.append(name)
            if brackets:
                lists.append(position)
            if accepted or brackets:
                types[position] = named_types(accepted or _INTEGERS)
        names = tuple(name.rstrip("?!*") for name in marked)
        if len(set(names)) != len(names):
            raise ValueError(f"an input is declared twice: {declared}")
        if any(name.endswith("*") for name in marked[:-1]):
            raise ValueError(f"only the last input may end in '*': {declared}")
        optional = (i for i, name in enumerate(marked) if "?" in name or "*" in name)
        constant = frozenset(name.rstrip("?!") for name in marked if "!" in name)
        variadic = bool(marked) and marked[-1].endswith("*")
        return cls(
            names, min(optional, default=len(names)), variadic, constant, types, tuple(lists)
        )

    @classmethod
    def parse(cls, declared: str) -> Inputs:
        """From one text of all, with commas between them."""
        return cls.of([text for text in declared.split(",") if text.strip()])

    @property
    def declared(self) -> tuple[str, ...]:
        """One text each, as `of` takes them; without types and lists."""
        marks = ["!" if name in self.constant else "" for name in self.names]
        marks[self.required :] = [mark + "?" for mark in marks[self.required :]]
        if self.variadic:
            marks[-1] = "*"
        return tuple(name + mark for name, mark in zip(self.names, marks, strict=True))

    def with_constants(self, names: Sequence[str]) -> Inputs:
        """The same inputs, of which those of `names` must be constant.

        Raises:
            ValueError: there is no input of such a name.
        """
        if not set(names) <= set(self.names):
            raise ValueError(f"no inputs {sorted(set(names) - set(self.names))}")
        return self if self.constant == set(names) else replace(self, constant=frozenset(names))

    def named(self, op: OperatorView[Any]) -> OperatorView[Any]:
        """`op` with its inputs named."""
        return op if op.names is self.names else replace(op, names=self.names)

    def bind(self, op: OperatorView[Any]) -> OperatorView[Any]:
        """`op` with its inputs named and checked, and a constant bias as a vector.

        Raises:
            ModelError: there are too many or too few inputs, or a required one is absent.
            Untranslatable: an input that must be constant is computed.
        """
        self._check_number(op)
        for name, tensor in zip(self.names[: self.required], op.inputs, strict=False):
            if tensor is None:
                raise ModelError(f"{op.label}: input {name!r} was optional but was expected")
        # A custom operator may leave out any input.
        ours = op.custom_code is None
        if ours and self.variadic and None in op.inputs[len(self.names) - 1 :]:
            raise ModelError(f"{op.label}: one of the {self.names[-1]!r} is absent")
        op = self.named(op)
        if "bias" in self.names:
            op = _with_flat_bias(op)
        for name in self.constant:
            tensor = op.get(name)
            if tensor is not None and not tensor.is_constant:
                raise Untranslatable(f"input {name!r} is not a constant")
        return op

    def check(self, op: OperatorView[Any]) -> None:
        """Refuse too many or too few inputs, one of a type that is not among those declared, and a
        list of too many.

        Raises:
            ModelError: names the type, and those that are taken; or the number, and the most.
        """
        self._check_number(op)
        for position, accepted in self.types.items():
            last = self.variadic and position == len(self.names) - 1
            for tensor in op.inputs[position : None if last else position + 1]:
                if tensor is not None and tensor.type not in accepted:
                    names = ", ".join(sorted(type.name for type in accepted))
                    refused = f"{tensor.type.name} is not one of the types accepted: {names}"
                    raise ModelError(f"{op.label}: {refused}")
        for position in self.lists:
            tensor = op.inputs[position] if position < len(op.inputs) else None
            if tensor is not None and is_known(*tensor.shape):
                # No elements, but rows of rows without any, take memory too where they are listed.
                count = prod(max(size, 1) for size in tensor.shape)
                _check_count(op, self.names[position], count)

    def _check_number(self, op: OperatorView[Any]) -> None:
        given = len(op.inputs)
        if given < self.required or (given > len(self.names) and not self.variadic):
            expected = f"{self.required} to {len(self.names)}" if self.names else "no"
            raise ModelError(f"{op.label} has {given} inputs, expected {expected}")


def _check_count(op: OperatorView[Any], name: str, count: int) -> None:
    most = max(_MOST_LISTED, len(op.outputs))
    if count > most:
        raise ModelError(f"{op.label}: input {name!r} lists {count} numbers, at most {most}")


def _with_flat_bias(op: OperatorView[Any]) -> OperatorView[Any]:
    """`op` with its constant bias as a vector, as which TFLite reads any shape of it."""
    bias = op.get("bias")
    if bias is None or bias.data is None or bias.rank == 1:
        return op
    flat = replace(bias, shape=(bias.data.size,), constant=bias.data.reshape(-1))
    inputs = (flat if tensor is bias else tensor for tensor in op.inputs)
    return replace(op, inputs=tuple(inputs))
