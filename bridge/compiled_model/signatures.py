"""The signatures of a `CompiledModel`, and what fits their tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.compiled_model.tensor_buffer import taken_as
from tflite_ort.interpreter.interpreter import Interpreter
from tflite_ort.schema import BridgeError, VersionError

Array = npt.NDArray[Any]

# The key of a model without signatures.
_PLACEHOLDER = "<placeholder signature>"


class CompiledModelError(BridgeError, RuntimeError):
    """A model that cannot be compiled or run, or a name, number or buffer that does not fit it."""


@record
class Tensors:
    """The inputs or outputs of a signature, in order.

    Two may have the same name, as in a file without names, and two may be the same tensor.
    """

    names: tuple[str, ...]
    indices: tuple[int, ...]


@record
class CompiledSignature:
    """A signature: its tensors, and its subgraph."""

    inputs: Tensors
    outputs: Tensors
    subgraph: int


def signatures_of(interpreter: Interpreter) -> dict[str, CompiledSignature]:
    """The signatures, or one of the primary subgraph; names in the order of the subgraph."""
    opened = interpreter._loaded.opened
    found: dict[str, CompiledSignature] = {}
    for key, each in interpreter._signatures.items():
        graph = opened.declared(each.subgraph)
        inputs, outputs = _ordered(each.inputs, graph.inputs), _ordered(each.outputs, graph.outputs)
        found[key] = CompiledSignature(inputs, outputs, each.subgraph)
    if found:
        return found
    graph = opened.declared(0)
    inputs, outputs = (
        Tensors(tuple(graph.tensors[index].name for index in side), tuple(side))
        for side in (graph.inputs, graph.outputs)
    )
    return {_PLACEHOLDER: CompiledSignature(inputs, outputs, 0)}


def check_runs(
    signatures: Iterable[CompiledSignature], ready: Callable[[CompiledSignature], object]
) -> None:
    """Make the first signature ready that has no unknown operator.

    Raises:
        VersionError: all have.
        BridgeError: as of `ready`.
    """
    refused: VersionError | None = None
    for signature in signatures:
        try:
            ready(signature)
        except VersionError as error:
            refused = refused or error
        else:
            return
    if refused is not None:
        raise refused


def _ordered(names: Mapping[str, int], order: Sequence[int]) -> Tensors:
    places = {index: place for place, index in enumerate(order)}
    ordered = dict(sorted(names.items(), key=lambda pair: places.get(pair[1], len(places))))
    return Tensors(tuple(ordered), tuple(ordered.values()))


def named(tensors: Tensors, name: str, side: str) -> int:
    """The tensor of a name.

    Raises:
        CompiledModelError: there is none, or there are several.
    """
    if name not in tensors.names:
        raise CompiledModelError(f"{side} tensor not found: {name}")
    found = {
        index for key, index in zip(tensors.names, tensors.indices, strict=True) if key == name
    }
    if len(found) > 1:
        raise CompiledModelError(f"{side} tensors {sorted(found)} have the same name: {name!r}")
    return found.pop()


def numbered(tensors: Tensors, number: int) -> int:
    """The tensor at a place.

    Raises:
        CompiledModelError: there are fewer.
    """
    if not 0 <= number < len(tensors.indices):
        raise CompiledModelError(f"Tensor {number} of {len(tensors.indices)}")
    return tensors.indices[number]


def same_memory(one: Array, other: Array) -> bool:
    """Whether both are the same memory."""
    if one is other:
        return True
    here, there = one.__array_interface__["data"][0], other.__array_interface__["data"][0]
    return here == there and one.nbytes == other.nbytes


def check_fits(tensor: Array, given: Array) -> None:
    """Refuse a buffer of another size than its tensor, or of a type that is not taken as bytes.

    Raises:
        CompiledModelError: it has.
    """
    if tensor.nbytes != given.nbytes or not taken_as(tensor.dtype, given.dtype):
        raise CompiledModelError(
            f"the buffer has {given.nbytes} bytes of {given.dtype}, its tensor "
            f"{list(tensor.shape)} has {tensor.nbytes} of {tensor.dtype}"
        )


class RuntimeErrors:
    """Errors of this library as the RuntimeError that LiteRT's class raises."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, BridgeError) and not isinstance(error, RuntimeError):
            raise CompiledModelError(str(error)) from error


RUNTIME_ERRORS = RuntimeErrors()
