"""Faults planted in an ONNX model: one constant, attribute or scale of one operator."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from tflite_ort.providers.onnx_file import OnnxSession
from tflite_ort.schema import DelegateError

Array = npt.NDArray[Any]
_SCALED = frozenset({"QuantizeLinear", "DequantizeLinear"})
_ATTEMPTS = 40


@dataclass(frozen=True)
class Fault:
    """A model with a fault; `what` was changed, in words."""

    model: onnx.ModelProto
    what: str


def operators(model: onnx.ModelProto) -> dict[str, list[int]]:
    """The TFLite operators that nodes of an export are named after, and these nodes."""
    found: dict[str, list[int]] = {}
    for at, node in enumerate(model.graph.node):
        label = node.name.partition("/")[0]
        if label != "boundary":
            found.setdefault(label, []).append(at)
    return found


def owners(model: onnx.ModelProto, makers: Mapping[str, str]) -> dict[int, set[str]]:
    """The TFLite operators that each node of another tool's file may be of: those whose tensors its
    results lead to; and, of a node whose result has no name, that of the value that it reads, since
    a name may stand before the activation.

    Args:
        makers: labels of operators by the names of their results.
    """
    made: dict[str, str] = {}
    for output in (output for node in model.graph.node for output in node.output):
        name = output if output in makers else output.partition(":")[0]
        if name in makers:
            made[output] = makers[name]
    after: dict[str, set[str]] = {}
    found: dict[int, set[str]] = {}
    for at, node in reversed(list(enumerate(model.graph.node))):
        labels = set[str]()
        for output in node.output:
            labels |= {made[output]} if output in made else after.get(output, set())
        named = any(output in made for output in node.output)
        before = {made[each] for each in node.input if each in made}
        found[at] = labels if named else labels | before
        for each in node.input:
            after[each] = after.get(each, set()) | labels
    return found


def plant(
    model: onnx.ModelProto,
    nodes: Collection[int],
    feeds: Mapping[str, Array],
    rng: np.random.Generator,
) -> Fault | None:
    """A fault in one of `nodes` that changes an output; None where none of many attempts does."""
    right = OnnxSession(model).run(feeds)
    for _ in range(_ATTEMPTS):
        changed = onnx.ModelProto()
        changed.CopyFrom(model)
        choices = list(_changes(changed, nodes, rng))
        if not choices:
            return None
        what = choices[rng.integers(len(choices))]()
        try:
            outputs = OnnxSession(changed).run(feeds)
        except DelegateError:
            continue
        if _differ(right, outputs):
            return Fault(changed, what)
    return None


def _differ(right: list[Array], outputs: list[Array]) -> bool:
    pairs = list(zip(right, outputs, strict=True))
    if any(a.shape != b.shape for a, b in pairs):
        return False
    return any(not np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)


def _changes(
    model: onnx.ModelProto, nodes: Collection[int], rng: np.random.Generator
) -> Iterator[Any]:
    """Functions that make a change each and tell what it is."""
    initializers = {each.name: each for each in model.graph.initializer}
    for number, node in enumerate(model.graph.node):
        if number not in nodes:
            continue
        for at, name in enumerate(node.input):
            if name in initializers:
                scale = at == 1 and node.op_type in _SCALED
                yield lambda n=node, i=at, t=initializers[name], s=scale: _constant(
                    model, n, i, t, s, rng
                )
        for attribute in node.attribute:
            if attribute.type in (onnx.AttributeProto.INTS, onnx.AttributeProto.FLOAT):
                yield lambda n=node, a=attribute: _attribute(n, a, rng)


def _constant(
    model: onnx.ModelProto,
    node: onnx.NodeProto,
    at: int,
    tensor: onnx.TensorProto,
    scale: bool,
    rng: np.random.Generator,
) -> str:
    """Give one node another constant; others that have the same one keep it."""
    array = onnx.numpy_helper.to_array(tensor).copy()
    if scale or (array.dtype.kind == "f" and rng.integers(2)):
        array = (array * rng.uniform(1.05, 2.0)).astype(array.dtype)
    elif array.size:
        place = np.unravel_index(rng.integers(array.size), array.shape)
        array[place] = _other(array, array[place], rng)
    name = f"{tensor.name}/fault"
    model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    node.input[at] = name
    return f"{'scale' if scale else 'constant'} {at} of {node.name}"


def _other(array: Array, value: Any, rng: np.random.Generator) -> Any:
    """Another value for one element, in the range of the others."""
    if array.dtype.kind == "f":
        return value + float(np.abs(array).max() or 1.0) * rng.uniform(0.5, 1.0)
    if array.dtype.itemsize == 1:
        return np.bitwise_xor(value, array.dtype.type(64))
    return value + array.dtype.type(rng.integers(1, 3))


def _attribute(
    node: onnx.NodeProto, attribute: onnx.AttributeProto, rng: np.random.Generator
) -> str:
    if attribute.type == onnx.AttributeProto.FLOAT:
        attribute.f = attribute.f * float(rng.uniform(1.5, 3.0)) + 0.1
    else:
        values = list(attribute.ints)
        rng.shuffle(values)
        attribute.ints[:] = values
    return f"attribute {attribute.name} of {node.name}"
