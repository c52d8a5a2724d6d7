"""Custom operators as ONNX nodes of a domain of their own, for an ORT library that has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tflite_ort.opmap import Domain, Graph
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import Model, Op, OperatorView
from tflite_ort.schema.values.inputs import Inputs
from tflite_ort.schema.values.sizes import is_known
from tflite_ort.versioning.registry import Entry, Pair
from tflite_ort.versioning.resolver import MutableOpResolver, OpResolver, operator_key

DOMAIN = "tflite.custom"

_INT64 = range(-(2**63), 2**63)
_FLOAT32_MAX = float(np.finfo(np.float32).max)


def untranslated(model: Model, resolver: OpResolver) -> set[Pair]:
    """The custom operators of `model` that `resolver` has no translator for."""
    custom = (code for code in model.operator_codes if code.builtin_code is Op.CUSTOM)
    pairs = {(operator_key(code), code.version) for code in custom}
    return {pair for pair in pairs if resolver.translators.find(*pair) is None}


def with_custom_nodes(resolver: OpResolver, pairs: Iterable[Pair]) -> OpResolver:
    """`resolver`, but every operator of `pairs` becomes a node of the domain ``tflite.custom``."""
    extended, inputs = MutableOpResolver(), Inputs.parse("inputs*")
    extended.add_all(resolver)
    for name, version in pairs:
        extended.translators.replace(Entry(name, version, version, inputs, custom_node))
    return extended


def custom_node(op: OperatorView[Any], g: Graph) -> None:
    """A node of the operator's name with its inputs and outputs as the file has them."""
    inputs = [
        None if tensor is None else g.read(tensor, domain=Domain.FILE) for tensor in op.inputs
    ]
    values = g.op_multi(op.name, *inputs, outputs=len(op.outputs), domain=DOMAIN)
    for tensor, value in zip(op.outputs, values, strict=True):
        value.dtype = ir.DataType.from_numpy(tensor.dtype)
        if tensor.ranked:
            value.shape = tuple(size if is_known(size) else None for size in tensor.shape)
        g.write(tensor, value, domain=Domain.FILE)
    for node in {value.producer() for value in values}:
        assert node is not None
        node.attributes.update(attributes(op))


def attributes(op: OperatorView[Any]) -> Mapping[str, ir.Attribute]:
    """The fields of an option map that ONNX has attributes for; or else all options as one
    attribute ``custom_options``, a tensor of their bytes."""
    if isinstance(op.options, Mapping):
        fields = {name: _attribute(value) for name, value in op.options.items() if name}
        known = {name: value for name, value in fields.items() if value is not None}
        if len(known) == len(op.options):
            return known
    assert op.custom_options is not None
    return {"custom_options": _bytes(op.custom_options.tobytes())}


def _attribute(value: Any) -> ir.Attribute | None:
    """None for what no attribute can hold: nested maps, mixed lists, numbers out of range."""
    if isinstance(value, bytes):
        return _bytes(value)
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return _list_attribute(value)
    if isinstance(value, int):
        return int(value) if value in _INT64 else None
    return float(value) if _is_number(value) else None


def _list_attribute(values: Sequence[Any]) -> ir.Attribute | None:
    if all(isinstance(value, int) and value in _INT64 for value in values):
        return [int(value) for value in values]
    if all(isinstance(value, str) for value in values):
        return values
    return list(map(float, values)) if all(map(_is_number, values)) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not _FLOAT32_MAX < abs(value) < float("inf")


def _bytes(data: bytes) -> ir.Tensor:
    return ir.Tensor(np.frombuffer(data, np.uint8))
