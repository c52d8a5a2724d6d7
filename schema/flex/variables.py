"""TensorFlow's variables, as TFLite's own. What changes one reads it, computes, and assigns it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tflite_ort.schema.file.element_types import TensorType
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.flex_table import PREFIX
from tflite_ort.schema.file.flow import called_subgraphs
from tflite_ort.schema.file.model import Model
from tflite_ort.schema.file.options import (
    AddOptions,
    GatherOptions,
    ShapeOptions,
    SubOptions,
    VarHandleOptions,
)
from tflite_ort.schema.flex.rewriting import Site, rewriting
from tflite_ort.schema.values.flex import node_from

# Of which no two variables have to be one.
_ANONYMOUS = "cd2c89b7-88b7-44c8-ad83-06c2a9158347"
_NO_NUMBERS = (TensorType.BOOL, TensorType.STRING)
_SUMS = (TensorType.FLOAT32, TensorType.INT32, TensorType.INT64)


@rewriting("VarHandleOp")
def handle(site: Site) -> bool:
    """VAR_HANDLE of a variable that has a name. Those of TFLite itself are others, whatever their
    names are."""
    name = site.node["shared_name"]
    codes = site.drafts.model.operator_codes
    if name in ("", _ANONYMOUS) or any(code.builtin_code is Op.VAR_HANDLE for code in codes):
        return False
    options = VarHandleOptions(container=site.node["container"], shared_name=name)
    site.emit(Op.VAR_HANDLE, (), site.outputs, options)
    return True


@rewriting("ReadVariableOp")
def read(site: Site) -> bool:
    """READ_VARIABLE."""
    site.emit(Op.READ_VARIABLE, site.inputs, site.outputs)
    return True


@rewriting("AssignVariableOp")
def assign(site: Site) -> bool:
    """ASSIGN_VARIABLE."""
    site.emit(Op.ASSIGN_VARIABLE, site.inputs, ())
    return True


@rewriting("VarIsInitializedOp")
def is_initialized(site: Site) -> bool:
    """True of a variable that is assigned once at the start, or before; False of one that nothing
    assigns."""
    model, name = site.drafts.model, _variable(site.drafts.model, site.subgraph, site.inputs[0])
    if name is None:
        return False
    assigned = [
        (number, place)
        for number, place, other in _assigned(model)
        if other is None or other == name
    ]
    operators = model.subgraphs[site.subgraph].operators
    here = next(place for place, each in enumerate(operators) if each is site.operator)
    starts = set(_starts(model))
    known = any(n in starts or (n == site.subgraph and place < here) for n, place in assigned)
    if assigned and not known:
        return False
    told = site.add_constant(known, np.bool_)
    site.emit(Op.RESHAPE, [told, site.add_constant([])], site.outputs)
    return True


def _starts(model: Model) -> Iterator[int]:
    """The subgraphs that are run once, before all else."""
    for graph in model.subgraphs:
        for operator in graph.operators:
            code = model.operator_codes[operator.opcode_index].builtin_code
            if code is Op.CALL_ONCE and operator.options is not None:
                yield from (index for _, index in called_subgraphs(operator.options))


def _assigned(model: Model) -> Iterator[tuple[int, int, str | None]]:
    """The subgraph, the place and the variable of each assignment; None for one not told here."""
    for number, graph in enumerate(model.subgraphs):
        for place, operator in enumerate(graph.operators):
            code = model.operator_codes[operator.opcode_index]
            handle = operator.inputs[0] if operator.inputs else None
            name = code.custom_code or code.builtin_code._name_
            if name in _ASSIGNS and handle is not None:
                yield number, place, _variable(model, number, handle)


_ASSIGNS = ("ASSIGN_VARIABLE", "FlexAssignVariableOp")


def _variable(model: Model, subgraph: int, handle: int) -> str | None:
    """The name of the variable of a handle that its subgraph makes."""
    for operator in model.subgraphs[subgraph].operators:
        custom = model.operator_codes[operator.opcode_index].custom_code
        if custom == f"{PREFIX}VarHandleOp" and handle in operator.outputs:
            name: str = node_from(custom, custom, operator.custom_options)["shared_name"]
            return name
    return None


def _value(site: Site, kind: str = "dtype") -> int:
    return site.through(Op.READ_VARIABLE, site.inputs[:1], site.node.type(kind))


def change(site: Site, type: TensorType) -> None:
    """The operator on what the variables hold that are its first inputs; what it gives is assigned
    to them."""
    count = sum(site.type(index) is TensorType.RESOURCE for index in site.inputs)
    handles, rest = site.inputs[:count], site.inputs[count:]
    values = [site.through(Op.READ_VARIABLE, [handle], type) for handle in handles]
    changed = [site.add_tensor(type) for _ in handles]
    site.stay([*values, *rest], changed)
    for handle, value in zip(handles, changed, strict=True):
        site.emit(Op.ASSIGN_VARIABLE, [handle, value], ())


@rewriting(
    *("AssignAddVariableOp", "AssignSubVariableOp", "ResourceScatterDiv", "ResourceScatterMax"),
    *("ResourceScatterMin", "ResourceScatterMul", "ResourceScatterUpdate"),
    stays=True,
)
def changed(site: Site) -> bool:
    """The operator on what the variable holds: numbers, but where it only takes other values."""
    type = site.node.type("dtype")
    if type in _NO_NUMBERS and site.node.operator.name != "ResourceScatterUpdate":
        return False
    change(site, type)
    return True


@rewriting(
    *("ResourceScatterNdMax", "ResourceScatterNdMin", "ResourceScatterNdUpdate"),
    "ResourceStridedSliceAssign",
    stays=True,
)
def changed_places(site: Site) -> bool:
    """As `changed`."""
    change(site, site.node.type("T"))
    return True


def _change(site: Site, value: int, by: int) -> None:
    """Assign the sum of `value` and `by`, or their difference."""
    adds = site.node.operator.name.endswith("Add")
    op, options = (Op.ADD, AddOptions()) if adds else (Op.SUB, SubOptions())
    changed = site.through(op, [value, by], site.type(value), options)
    site.emit(Op.ASSIGN_VARIABLE, [site.inputs[0], changed], ())


@rewriting("VariableShape")
def shape(site: Site) -> bool:
    """SHAPE of what the variable holds, whose type nothing tells here."""
    type = _type_of_variable(site)
    if type is None:
        return False
    value = site.through(Op.READ_VARIABLE, site.inputs, type)
    options = ShapeOptions(out_type=site.node.type("out_type"))
    site.emit(Op.SHAPE, [value], site.outputs, options)
    return True


def _type_of_variable(site: Site) -> TensorType | None:
    """The type that an operator beside this one reads or assigns by the same handle."""
    model = site.drafts.model
    for operator in model.subgraphs[site.subgraph].operators:
        if operator.inputs[:1] != site.inputs[:1]:
            continue
        for index in (*operator.inputs[1:2], *operator.outputs[:1]):
            code = model.operator_codes[operator.opcode_index]
            name = code.custom_code or code.builtin_code._name_
            if name in _TELLING and index is not None:
                return site.type(index)
    return None


_TELLING = {"ASSIGN_VARIABLE", "FlexAssignVariableOp", "FlexReadVariableOp", "READ_VARIABLE"}


@rewriting("ResourceScatterAdd", "ResourceScatterSub")
def scatter_rows(site: Site) -> bool:
    """As `scatter`, of whole rows."""
    indices = site.input("indices")
    places = site.through(Op.EXPAND_DIMS, [indices, site.add_constant(-1)], site.type(indices))
    return bool(site.tensors[site.input("updates")].shape) and _scatter(site, places, "dtype")


@rewriting("ResourceScatterNdAdd", "ResourceScatterNdSub")
def scatter(site: Site) -> bool:
    """SCATTER_ND, which sums the updates of one place, and ADD or SUB."""
    if site.node["bad_indices_policy"] not in ("", "DEFAULT", "ERROR"):
        return False
    return _scatter(site, site.input("indices"), "T")


def _scatter(site: Site, indices: int, kind: str) -> bool:
    if site.node.type(kind) not in _SUMS:
        return False
    value, type = _value(site, kind), site.type(indices)
    shape = site.through(Op.SHAPE, [value], type, ShapeOptions(out_type=type))
    updates = [indices, site.input("updates"), shape]
    _change(site, value, site.through(Op.SCATTER_ND, updates, site.type(value)))
    return True


@rewriting("ResourceGather")
def gather(site: Site) -> bool:
    """GATHER of what the variable holds."""
    batch = site.node["batch_dims"]
    options = GatherOptions(axis=batch, batch_dims=batch)
    site.emit(Op.GATHER, [_value(site), site.input("indices")], site.outputs, options)
    return True


@rewriting("ResourceGatherNd")
def gather_nd(site: Site) -> bool:
    """GATHER_ND of what the variable holds."""
    site.emit(Op.GATHER_ND, [_value(site), site.input("indices")], site.outputs)
    return True
