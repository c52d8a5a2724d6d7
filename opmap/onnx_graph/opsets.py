"""How a node is spelled in the opset that a graph is written for.

Translators write nodes as `OPSET` has them. Later opsets have them all, with more types. Where an
earlier one spells a node in another way, the table here says how; what it does not have is refused,
and so is the operator that needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import Untranslatable

OPSET = 21
# By opset, the IR version of the release of ONNX that brought it.
IR_VERSIONS = {17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11, 24: 12}

Inputs = Sequence[ir.Value | None]
Attributes = dict[str, Any]
Spelling = tuple[Inputs, Attributes]

# The opset that brought a node which is written here.
_SINCE = {
    **dict.fromkeys(("BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot", "Mish", "Col2Im"), 18),
    **dict.fromkeys(("Gelu", "StringConcat", "StringSplit", "RegexFullMatch"), 20),
}

# The opset that brought an attribute, or some values of it.
_ATTRIBUTES: Mapping[tuple[str, str], tuple[int, frozenset[Any] | None]] = {
    ("Cast", "saturate"): (19, None),
    ("QuantizeLinear", "saturate"): (19, None),
    ("QuantizeLinear", "block_size"): (21, None),
    ("QuantizeLinear", "output_dtype"): (21, None),
    ("DequantizeLinear", "block_size"): (21, None),
    ("AveragePool", "dilations"): (19, None),
    ("Pad", "mode"): (19, frozenset({"wrap"})),
    ("Resize", "antialias"): (18, None),
    ("Resize", "axes"): (18, None),
    ("Resize", "keep_aspect_ratio_policy"): (18, None),
    ("Resize", "coordinate_transformation_mode"): (19, frozenset({"half_pixel_symmetric"})),
    ("ScatterElements", "reduction"): (18, frozenset({"max", "min"})),
    ("ScatterND", "reduction"): (18, frozenset({"max", "min"})),
}

# The opset that brought an element type of constants and of casts, by node.
_D = ir.DataType
_FOUR_BITS = dict.fromkeys((_D.INT4, _D.UINT4), 21)
_WIDE = {**_FOUR_BITS, _D.INT16: 21, _D.UINT16: 21, _D.FLOAT16: 19}
_TYPES: Mapping[str, Mapping[ir.DataType, int]] = {
    "QuantizeLinear": _WIDE,
    "DequantizeLinear": _WIDE,
    "Cast": _FOUR_BITS,
}


def spelled(opset: int, op_type: str, inputs: Inputs, attributes: Attributes) -> Spelling:
    """The inputs and attributes of a node in `opset`.

    Raises:
        Untranslatable: it has no such node; the reason names the node and the opset that has it.
    """
    since = _SINCE.get(op_type, 0)
    for name, value in attributes.items():
        brought, values = _ATTRIBUTES.get((op_type, name), (0, None))
        if values is None or value in values:
            since = max(since, brought)
    types = _TYPES.get(op_type, {})
    for type_ in (*(_type(each) for each in inputs), attributes.get("to")):
        if type_ is not None and types.get(type_, 0) > opset:
            raise _refusal(f"{op_type} of {ir.DataType(type_).name}", types[type_], opset)
    if since > opset:
        raise _refusal(op_type, since, opset)
    for before, spelling in _SPELLINGS.get(op_type, ()):
        if opset < before:
            inputs, attributes = spelling(op_type, opset, inputs, attributes)
    return inputs, attributes


def _type(value: ir.Value | None) -> ir.DataType | None:
    return None if value is None or value.const_value is None else value.const_value.dtype


def _refusal(what: str, since: int, opset: int) -> Untranslatable:
    return Untranslatable(f"{what} needs opset {since}, the file is for opset {opset}")


# Other spellings ---------------------------------------------------------------------------------


def _axes_as_attribute(node: str, opset: int, inputs: Inputs, attributes: Attributes) -> Spelling:
    """Axes of a reduction as an attribute; they became an input in opset 18."""
    given = {key: value for key, value in attributes.items() if key != "noop_with_empty_axes"}
    axes = inputs[1] if len(inputs) > 1 else None
    if axes is None and given == attributes:
        return inputs, attributes
    if axes is None or not _numbers(axes):
        raise _refusal(f"{node} of computed axes, or of none,", 18, opset)
    return inputs[:1], {**given, "axes": _numbers(axes)}


def _without_axes(node: str, opset: int, inputs: Inputs, attributes: Attributes) -> Spelling:
    """Pad without its fourth input, which came in opset 18."""
    if len(inputs) > 3:
        raise _refusal(f"{node} of some axes", 18, opset)
    return inputs, attributes


def _equal_parts(node: str, opset: int, inputs: Inputs, attributes: Attributes) -> Spelling:
    """Split by its number of outputs: all parts that are written so are equal."""
    return inputs, {key: value for key, value in attributes.items() if key != "num_outputs"}


def _axis_as_attribute(node: str, opset: int, inputs: Inputs, attributes: Attributes) -> Spelling:
    """DFT with its axis as an attribute; it became an input in opset 20."""
    axis = _numbers(inputs[2]) if len(inputs) > 2 and inputs[2] is not None else [-2]
    if len(axis) != 1 or axis[0] < 0:
        raise _refusal(f"{node} along this axis", 20, opset)
    return inputs[:2], {**attributes, "axis": axis[0]}


def _old_modes(node: str, opset: int, inputs: Inputs, attributes: Attributes) -> Spelling:
    """GridSample with its older names of modes."""
    names = {"linear": "bilinear", "cubic": "bicubic"}
    mode = attributes.get("mode", "linear")
    return inputs, {**attributes, "mode": names.get(mode, mode)}


def _numbers(value: ir.Value) -> list[int]:
    """The elements of a constant; none of what is computed."""
    constant = value.const_value
    return [] if constant is None else [int(each) for each in constant.array.reshape(-1)]


# By node, the opset that spells it as `OPSET` does, and how it was spelled before.
_SPELLINGS: Mapping[str, Sequence[tuple[int, Callable[..., Spelling]]]] = {
    **dict.fromkeys(
        ("ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceL2"),
        ((18, _axes_as_attribute),),
    ),
    "Pad": ((18, _without_axes),),
    "Split": ((18, _equal_parts),),
    "DFT": ((20, _axis_as_attribute),),
    "GridSample": ((20, _old_modes),),
}
