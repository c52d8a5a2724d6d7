"""TensorList as tensors: a list of elements of one shape is a tensor with one dimension more.

Which tensors are lists, and of what, is found for the whole model, since lists go through WHILE and
IF. Lists of lists, and those that enter or leave the model, stay as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from tflite_ort.base.records import field, record, replace
from tflite_ort.schema.file.element_types import TensorType
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.file.external import ExternalData
from tflite_ort.schema.file.flex_table import PREFIX, family_of
from tflite_ort.schema.file.flow import called_subgraphs
from tflite_ort.schema.file.model import Model, Operator, SubGraph, Tensor
from tflite_ort.schema.file.options import (
    ConcatenationOptions,
    GatherOptions,
    ShapeOptions,
    StridedSliceOptions,
)
from tflite_ort.schema.flex.rewriting import Site, rewriting
from tflite_ort.schema.values.flex import Node, node_from
from tflite_ort.schema.values.resolve import constant_data

_VARIANT = TensorType.VARIANT
Place = tuple[int, int]  # a subgraph and a tensor of it
Sizes = (
    tuple[int, ...] | None
)  # of an element, -1 for an open one; None where the rank is not known

# What the operators that take or give an element, or all of them, call these tensors, and how many
# dimensions more than an element they have.
_ELEMENTS: Mapping[str, tuple[tuple[str, int], ...]] = {
    "TensorListFromTensor": (("tensor", 1),),
    "TensorListGather": (("values", 1),),
    "TensorListGetItem": (("item", 0),),
    "TensorListPopBack": (("tensor", 0),),
    "TensorListPushBack": (("tensor", 0),),
    "TensorListScatter": (("tensor", 1),),
    "TensorListScatterV2": (("tensor", 1),),
    "TensorListScatterIntoExistingList": (("tensor", 1),),
    "TensorListSetItem": (("item", 0),),
    "TensorListStack": (("tensor", 1),),
}


# The tensor of these has the elements one after the other along its first dimension.
_JOINED = frozenset({"TensorListConcat", "TensorListConcatV2", "TensorListSplit"})
_MAKERS = frozenset({"TensorListReserve", "EmptyTensorList"})
_NO_ELEMENTS = frozenset({TensorType.RESOURCE})
# What may be a variant that is no list, but an element of one.
_ITEMS = ("item", "tensor", "values")


@record(frozen=False)
class _Lists:
    """The variants of a model in groups that have to be of one kind.

    Args:
        types: by the first of a group, the types of elements that its operators name.
        shapes: by the first of a group, what they say of the shape of an element.
        other: the groups that are no lists of tensors.
    """

    parents: dict[Place, Place] = field(default_factory=dict)
    types: dict[Place, set[str]] = field(default_factory=dict)
    shapes: dict[Place, list[Sizes]] = field(default_factory=dict)
    other: set[Place] = field(default_factory=set)

    def first(self, place: Place) -> Place:
        """The first of the group of `place`."""
        path = [place]
        while (parent := self.parents.setdefault(path[-1], path[-1])) != path[-1]:
            path.append(parent)
        for each in path:
            self.parents[each] = path[-1]
        return path[-1]

    def join(self, *places: Place) -> None:
        """Let all be of one kind."""
        one, *others = (self.first(place) for place in places)
        for other in others:
            self.parents[other] = one

    def groups(self) -> dict[Place, list[Place]]:
        """The members of each group, by its first."""
        found: dict[Place, list[Place]] = {}
        for place in list(self.parents):
            found.setdefault(self.first(place), []).append(place)
        return found


def with_tensors(model: Model) -> Model:
    """`model` with tensors in the place of its lists, where that is possible."""
    model = _each_its_own(model)
    lists = _Lists()
    called = {0, *(signature.subgraph_index for signature in model.signature_defs)}
    for number, graph in enumerate(model.subgraphs):
        ends = (*graph.inputs, *graph.outputs) if number in called else ()
        lists.other |= {(number, i) for i in ends if graph.tensors[i].type is _VARIANT}
        for position, operator in enumerate(graph.operators):
            _collect(model, number, position, operator, lists)
    retyped: dict[Place, Tensor] = {}
    other = {lists.first(place) for place in lists.other}
    for first, members in lists.groups().items():
        types = {type for place in members for type in lists.types.get(place, ())}
        shapes = [shape for place in members for shape in lists.shapes.get(place, ())]
        kind = Node.type_of(types.pop()) if len(types) == 1 else TensorType.RESOURCE
        element = _merged(shapes)
        if first in other or kind in _NO_ELEMENTS or element is None:
            continue
        for place in members:
            retyped[place] = _as_tensor(model.subgraphs[place[0]].tensors[place[1]], kind, element)
    if not retyped:
        return model
    graphs = [_retyped(graph, number, retyped) for number, graph in enumerate(model.subgraphs)]
    return replace(model, subgraphs=tuple(graphs))


def _each_its_own(model: Model) -> Model:
    """`model` with a list for each that reads one without elements: TensorFlow makes one for all,
    whatever elements they will have."""
    makers = {
        index
        for index, code in enumerate(model.operator_codes)
        if (code.custom_code or "").removeprefix(PREFIX) in _MAKERS
    }
    graphs = [_with_own_lists(graph, makers) for graph in model.subgraphs] if makers else []
    return replace(model, subgraphs=tuple(graphs)) if makers else model


def _with_own_lists(graph: SubGraph, makers: Collection[int]) -> SubGraph:
    """A subgraph in which each list that one of `makers` makes is read once."""
    tensors, operators = list(graph.tensors), list[Operator]()
    made = {op.outputs[0]: op for op in graph.operators if op.opcode_index in makers and op.outputs}
    read = {index for index in graph.outputs if index in made}
    for operator in graph.operators:
        inputs = list(operator.inputs)
        for place, index in enumerate(inputs):
            if index in made and index in read:
                tensors.append(tensors[index])
                inputs[place] = len(tensors) - 1
                operators.append(replace(made[index], outputs=(len(tensors) - 1,)))
            elif index in made:
                read.add(index)
        operators.append(replace(operator, inputs=tuple(inputs)))
    return replace(graph, tensors=tuple(tensors), operators=tuple(operators))


def _retyped(graph: SubGraph, number: int, retyped: Mapping[Place, Tensor]) -> SubGraph:
    pairs = enumerate(graph.tensors)
    tensors = tuple(retyped.get((number, index), tensor) for index, tensor in pairs)
    return replace(graph, tensors=tensors)


def _as_tensor(tensor: Tensor, type: TensorType, element: Sequence[int]) -> Tensor:
    return replace(
        tensor,
        type=type,
        shape=(1, *(max(size, 1) for size in element)),
        shape_signature=(-1, *element),
        has_rank=True,
    )


def _merged(shapes: Sequence[Sizes]) -> Sizes:
    """What all that is said of the shape of an element comes to; None where it contradicts, or
    nothing is said."""
    known = [shape for shape in shapes if shape is not None]
    if not known or len({len(shape) for shape in known}) > 1:
        return None
    sizes = []
    for column in zip(*known, strict=True):
        told = {size for size in column if size >= 0}
        if len(told) > 1:
            return None
        sizes.append(told.pop() if told else -1)
    return tuple(sizes)


def _collect(model: Model, number: int, position: int, operator: Operator, lists: _Lists) -> None:
    """Add what one operator says of the variants that it has."""
    graph = model.subgraphs[number]
    tensors = [index for index in (*operator.inputs, *operator.outputs) if index is not None]
    variants = [(number, i) for i in tensors if graph.tensors[i].type is _VARIANT]
    if not variants:
        return
    code = model.operator_codes[operator.opcode_index]
    name = (code.custom_code or "").removeprefix(PREFIX) if code.builtin_code is Op.CUSTOM else ""
    if code.builtin_code in (Op.WHILE, Op.IF):
        for group in through(model, number, operator):
            lists.join(*group)
    elif name and family_of(name) == "lists":
        try:
            node = node_from(f"{name}_{position}", f"{PREFIX}{name}", operator.custom_options)
        except ModelError:  # told when its subgraph is made ready
            lists.other |= set(variants)
            return
        type = node.attributes.get("element_dtype", "")
        if type == "variant":  # of ragged tensors; lists of lists stay as they are
            items = {(number, index) for index in _items(operator, node)}
            lists.other |= items
            variants = [place for place in variants if place not in items]
        lists.join(*variants)
        lists.types.setdefault(variants[0], set()).add(type)
        lists.types[variants[0]].discard("")
        shapes = lists.shapes.setdefault(variants[0], [])
        shapes += [()] if type == "variant" else _element_shapes(model, graph, operator, node)
    else:
        lists.other |= set(variants)


def _items(operator: Operator, node: Node) -> Iterator[int]:
    """The tensors of an operator that are elements of a list, or all of them."""
    inputs = node.parts(node.operator.inputs, [i for i in operator.inputs if i is not None])
    outputs = node.parts(node.operator.outputs, operator.outputs)
    for name in _ITEMS:
        yield from (*inputs.get(name, ()), *outputs.get(name, ()))


def through(
    model: Model, number: int, operator: Operator, types: Collection[TensorType] = (_VARIANT,)
) -> Iterator[list[Place]]:
    """The tensors of some types, variants else, that are one and the same inside and outside of
    what an operator calls."""
    code = model.operator_codes[operator.opcode_index].builtin_code
    graph = model.subgraphs[number]
    called = [] if operator.options is None else [i for _, i in called_subgraphs(operator.options)]
    bodies = [(index, model.subgraphs[index]) for index in called]
    inputs = operator.inputs if code is Op.WHILE else operator.inputs[1:]
    for place, index in enumerate(inputs):
        if index is None or graph.tensors[index].type not in types:
            continue
        group = [(number, index)]
        group += [(body, each.inputs[place]) for body, each in bodies if place < len(each.inputs)]
        if code is Op.WHILE:
            group += [(number, i) for i in operator.outputs[place : place + 1]]
            group += [
                (body, i) for body, each in bodies[1:] for i in each.outputs[place : place + 1]
            ]
        yield group
    for place, index in enumerate(operator.outputs if code is Op.IF else ()):
        if graph.tensors[index].type in types:
            made = [(body, i) for body, each in bodies for i in each.outputs[place : place + 1]]
            yield [(number, index), *made]


def _element_shapes(
    model: Model, graph: SubGraph, operator: Operator, node: Node
) -> Iterator[Sizes]:
    """What an operator says of the shape of an element."""
    inputs = node.parts(node.operator.inputs, [i for i in operator.inputs if i is not None])
    outputs = node.parts(node.operator.outputs, operator.outputs)
    for index in inputs.get("element_shape", ()):
        data = constant_data(model, graph.tensors[index], ExternalData(model))
        if data is not None and data.ndim == 1:
            yield tuple(max(int(size), -1) for size in data)
        elif data is None and len(graph.tensors[index].shape) == 1:
            yield (-1,) * graph.tensors[index].shape[0]
    for index in (*inputs.get("tensor", ()), *outputs.get("tensor", ())):
        sizes = graph.tensors[index].shape_signature or graph.tensors[index].shape
        if node.operator.name in _JOINED and sizes:
            yield (-1, *sizes[1:])
    for name, more in _ELEMENTS.get(node.operator.name, ()):
        for index in (*inputs.get(name, ()), *outputs.get(name, ())):
            tensor = graph.tensors[index]
            sizes = tensor.shape_signature or tensor.shape
            if sizes or tensor.has_rank:
                yield tuple(sizes[more:]) if len(sizes) >= more else None


# What takes the place of operators on lists that are tensors ------------------------------------


def _list(site: Site) -> int | None:
    """The tensor that the first input is; None where it is a list still."""
    index = site.inputs[0]
    is_list = site.type(index) is _VARIANT and not site.tensors[index].shape_signature
    return None if is_list else index


@rewriting("TensorListGetItem", "TensorListGather")
def rows(site: Site) -> bool:
    """GATHER of one element, or of several."""
    if _list(site) is None:
        return False
    site.emit(Op.GATHER, site.inputs[:2], site.outputs, GatherOptions())
    return True


@rewriting("TensorListLength")
def length(site: Site) -> bool:
    """The first of the sizes."""
    if (whole := _list(site)) is None:
        return False
    _sizes(site, whole, 0, StridedSliceOptions(shrink_axis_mask=1), TensorType.INT32)
    return True


@rewriting("TensorListElementShape")
def element_shape(site: Site) -> bool:
    """All sizes but the first."""
    if (whole := _list(site)) is None:
        return False
    type = site.node.type("shape_type")
    _sizes(site, whole, 1, StridedSliceOptions(end_mask=1), type)
    return True


def _sizes(
    site: Site, whole: int, start: int, options: StridedSliceOptions, type: TensorType
) -> None:
    shape = site.through(Op.SHAPE, [whole], type, ShapeOptions(out_type=type))
    bounds = [site.add_constant([number]) for number in (start, start + 1, 1)]
    site.emit(Op.STRIDED_SLICE, [shape, *bounds], site.outputs, options)


@rewriting("TensorListConcatLists")
def joined(site: Site) -> bool:
    """CONCATENATION."""
    if _list(site) is None:
        return False
    site.emit(Op.CONCATENATION, site.inputs, site.outputs, ConcatenationOptions(axis=0))
    return True


@rewriting("TensorListPopBack")
def popped(site: Site) -> bool:
    """The list without its last element, and that element."""
    if (whole := _list(site)) is None:
        return False
    minus, zero, one = (site.add_constant([number]) for number in (-1, 0, 1))
    rest, last = site.outputs
    kept: Any = StridedSliceOptions(begin_mask=1)
    site.emit(Op.STRIDED_SLICE, [whole, zero, minus, one], [rest], kept)
    taken: Any = StridedSliceOptions(end_mask=1, shrink_axis_mask=1)
    site.emit(Op.STRIDED_SLICE, [whole, minus, zero, one], [last], taken)
    return True
