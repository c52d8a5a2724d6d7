"""The signatures of a `CompiledModel`, and what fits their tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from tflite_ort.interpreter import Interpreter
from tflite_ort.schema import BridgeError
from tflite_ort.signature import Signature

Array = npt.NDArray[Any]

# The key of a model without signatures.
_PLACEHOLDER = "<placeholder signature>"


class CompiledModelError(BridgeError, RuntimeError):
    """A model that cannot be compiled or run, or a name, number or buffer that does not fit it."""


def signatures_of(interpreter: Interpreter) -> dict[str, Signature]:
    """The signatures, or one of the primary subgraph; names in the order of the subgraph."""
    opened = interpreter._loaded.opened
    found: dict[str, Signature] = {}
    for key, each in interpreter._signatures.items():
        graph = opened.declared(each.subgraph)
        inputs, outputs = _ordered(each.inputs, graph.inputs), _ordered(each.outputs, graph.outputs)
        found[key] = Signature(inputs, outputs, each.subgraph)
    if found:
        return found
    graph = opened.declared(0)
    inputs, outputs = (
        {graph.tensors[index].name: index for index in side}
        for side in (graph.inputs, graph.outputs)
    )
    return {_PLACEHOLDER: Signature(inputs, outputs, 0)}


def _ordered(names: Mapping[str, int], order: Sequence[int]) -> dict[str, int]:
    places = {index: place for place, index in enumerate(order)}
    return dict(sorted(names.items(), key=lambda pair: places.get(pair[1], len(places))))


def named(tensors: Mapping[str, int], name: str, side: str) -> int:
    """The tensor of a name.

    Raises:
        CompiledModelError: there is none.
    """
    if name not in tensors:
        raise CompiledModelError(f"{side} tensor not found: {name}")
    return tensors[name]


def numbered(tensors: Mapping[str, int], number: int) -> int:
    """The tensor at a place.

    Raises:
        CompiledModelError: there are fewer.
    """
    if not 0 <= number < len(tensors):
        raise CompiledModelError(f"Tensor {number} of {len(tensors)}")
    return list(tensors.values())[number]


def same_memory(one: Array, other: Array) -> bool:
    """Whether both are the same memory."""
    if one is other:
        return True
    here, there = one.__array_interface__["data"][0], other.__array_interface__["data"][0]
    return here == there and one.nbytes == other.nbytes


def check_size(tensor: Array, given: Array) -> None:
    """Refuse a buffer of another size than its tensor.

    Raises:
        CompiledModelError: it has.
    """
    if tensor.nbytes != given.nbytes:
        raise CompiledModelError(
            f"the buffer has {given.nbytes} bytes, its tensor {list(tensor.shape)} of "
            f"{tensor.dtype.name} has {tensor.nbytes}"
        )


class RuntimeErrors:
    """Errors of this library as the RuntimeError that LiteRT's class raises."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, BridgeError) and not isinstance(error, RuntimeError):
            raise CompiledModelError(str(error)) from error


RUNTIME_ERRORS = RuntimeErrors()
