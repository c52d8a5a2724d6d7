"""Nodes without the numbers that ONNX gives them anyway: some readers know few attributes.

Texts stay, such as the mode of a Resize, which OpenCV wants to be told.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import onnx

from tflite_ort.opmap.onnx_graph import ir

Number = int | float


def leave_out_defaults(graph: ir.Graph) -> None:
    """Leave out numbers that every version of a node takes where nothing is said."""
    for node in graph.all_nodes():
        if node.domain or not node.attributes:
            continue
        usual = _defaults(node.op_type)
        node.attributes = {
            name: value
            for name, value in node.attributes.items()
            if name not in usual or not _is_equal(value, usual[name])
        }


@cache
def _defaults(op_type: str) -> Mapping[str, Number]:
    """The attributes of a node whose default is the same number in all versions: who reads an
    earlier one takes its default, such as that of the axis of a Softmax."""
    found, others = dict[str, Number](), set[str]()
    version = onnx.defs.onnx_opset_version()
    while version and onnx.defs.has(op_type, version, ""):
        schema = onnx.defs.get_schema(op_type, version, "")
        for name, attribute in schema.attributes.items():
            default = attribute.default_value
            value = onnx.helper.get_attribute_value(default) if default.type else None
            if not isinstance(value, Number) or found.setdefault(name, value) != value:
                others.add(name)
        version = schema.since_version - 1
    return {name: value for name, value in found.items() if name not in others}


def _is_equal(value: ir.Attribute, default: Number) -> bool:
    """Whether an attribute has its default; a float has 32 bits in a file."""
    return isinstance(value, Number) and np.float32(value) == np.float32(default)
