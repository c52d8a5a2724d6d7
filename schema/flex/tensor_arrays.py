"""TensorFlow 1's arrays of tensors, as lists: the flow that goes from one of their operators to the
next is the list, and nothing reads the handle."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import field, record, replace
from tflite_ort.schema.file.element_types import TensorType
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.file.flex_table import PREFIX
from tflite_ort.schema.file.model import Model, Operator, OperatorCode, SubGraph, Tensor
from tflite_ort.schema.file.node_def import Value, node_options
from tflite_ort.schema.flex.lists import Place, through
from tflite_ort.schema.flex.rewriting import Drafts, Site, rewriting
from tflite_ort.schema.values.flex import Node, node_from

_ARRAY = f"{PREFIX}TensorArray"
_FLOWS, _HANDLES = ("flow", "flow_in", "flow_out"), ("handle",)


@record(frozen=False)
class _Arrays:
    """The tensors of a model that are flows, and those that are handles."""

    flows: set[Place] = field(default_factory=set)
    handles: set[Place] = field(default_factory=set)
    grows: bool = False

    def size(self) -> int:
        """How many there are."""
        return len(self.flows) + len(self.handles)


def as_lists(model: Model) -> Model:
    """`model` with lists in the place of its arrays, unless something is wrong with a node: that is
    told when its subgraph is made ready."""
    if not any((code.custom_code or "").startswith(_ARRAY) for code in model.operator_codes):
        return model
    try:
        arrays = _arrays_of(model)
        drafts = Drafts.of(model)
        graphs = range(len(model.subgraphs))
        return drafts.whole([_Graph(drafts, arrays, number).made() for number in graphs])
    except ModelError:
        return model


def _node(model: Model, operator: Operator) -> Node | None:
    """The node of an operator on an array."""
    name = model.operator_codes[operator.opcode_index].custom_code or ""
    return node_from(name, name, operator.custom_options) if name.startswith(_ARRAY) else None


def _arrays_of(model: Model) -> _Arrays:
    arrays, groups = _Arrays(), list[list[Place]]()
    for number, graph in enumerate(model.subgraphs):
        for operator in graph.operators:
            code = model.operator_codes[operator.opcode_index].builtin_code
            if code in (Op.WHILE, Op.IF):
                types = (TensorType.FLOAT32, TensorType.RESOURCE)
                groups += through(model, number, operator, types)
            node = _node(model, operator)
            if node is None:
                continue
            arrays.grows |= bool(node.attributes.get("dynamic_size"))
            inputs = node.parts(node.operator.inputs, [i or 0 for i in operator.inputs])
            ends = {**inputs, **node.parts(node.operator.outputs, operator.outputs)}
            arrays.flows |= {(number, i) for name in _FLOWS for i in ends.get(name, ())}
            arrays.handles |= {(number, i) for name in _HANDLES for i in ends.get(name, ())}
    before = -1
    while before < arrays.size():
        before = arrays.size()
        for group in groups:
            for known in (arrays.flows, arrays.handles):
                if not known.isdisjoint(group):
                    known.update(group)
    return arrays


class _Graph:
    """A subgraph whose arrays become lists."""

    def __init__(self, drafts: Drafts, arrays: _Arrays, number: int) -> None:
        self._drafts, self._arrays = drafts, arrays
        self._graph: SubGraph = drafts.model.subgraphs[number]
        self._tensors = [
            self._tensor(tensor, (number, index))
            for index, tensor in enumerate(self._graph.tensors)
        ]

    def made(self) -> SubGraph:
        """The subgraph with lists."""
        operators = list[Operator]()
        for operator in self._graph.operators:
            node = _node(self._drafts.model, operator)
            if node is None:
                operators.append(operator)
            elif node.operator.name != "TensorArrayCloseV3":
                operators.append(self._operator(operator, node))
        return replace(self._graph, tensors=tuple(self._tensors), operators=tuple(operators))

    def _tensor(self, tensor: Tensor, place: Place) -> Tensor:
        if place in self._arrays.flows:
            return replace(tensor, type=TensorType.VARIANT, shape=(), shape_signature=None)
        if place in self._arrays.handles:
            return replace(tensor, type=TensorType.INT32, shape=(), shape_signature=None)
        return tensor

    def _constant(self, values: npt.ArrayLike) -> int:
        array = np.asarray(values, np.int32)
        buffer = self._drafts.buffer(array.tobytes())
        type = TensorType.INT32
        self._tensors.append(Tensor(shape=array.shape, type=type, buffer=buffer, has_rank=True))
        return len(self._tensors) - 1

    def _element(self, node: Node, name: str = "element_shape") -> int:
        shape = node.attributes.get(name)
        return self._constant(-1 if shape is None else shape)

    def _operator(self, operator: Operator, node: Node) -> Operator:
        """The operator on a list."""
        name, make = _LISTS[node.operator.name]
        given = {
            key: values[0]
            for key, values in node.parts(node.operator.inputs, operator.inputs).items()
        }
        inputs = make(self, node, {key: index or 0 for key, index in given.items()})
        outputs = list(operator.outputs)
        if node.operator.name == "TensorArrayV3":
            handle, flow = outputs
            zero = self._drafts.buffer(np.int32(0).tobytes())
            self._tensors[handle] = replace(self._tensors[handle], buffer=zero, has_rank=True)
            outputs = [flow]
        attributes = dict[str, tuple[str, Value]]()
        type = node.attributes.get("dtype") or node.attributes.get("T")
        if type:
            attributes["element_dtype"] = ("type", type)
        if name in _WITH_SHAPE:
            attributes["shape_type"] = ("type", "int32")
        if name == "TensorListSetItem" and self._arrays.grows:
            attributes["resize_if_index_out_of_bounds"] = ("bool", True)
        code = OperatorCode(builtin_code=Op.CUSTOM, custom_code=PREFIX + name, version=1)
        return replace(
            operator,
            opcode_index=self._drafts.code(code),
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            custom_options=np.frombuffer(node_options(name, attributes), np.uint8),
        )

    def reserve(self, node: Node, given: dict[str, int]) -> Sequence[int]:
        """A list of so many elements."""
        return self._element(node), given["size"]

    def with_item(self, node: Node, given: dict[str, int]) -> Sequence[int]:
        """The list with an element."""
        return given["flow_in"], given["index"], given["value"]

    def item(self, node: Node, given: dict[str, int]) -> Sequence[int]:
        """One of its elements, or several."""
        place = given["index"] if "index" in given else given["indices"]
        return given["flow_in"], place, self._element(node)

    def scattered(self, node: Node, given: dict[str, int]) -> Sequence[int]:
        """The list with several elements."""
        return given["flow_in"], given["value"], given["indices"]

    def joined(self, node: Node, given: dict[str, int]) -> Sequence[int]:
        """All elements along their first dimension."""
        rest = node["element_shape_except0"]
        shape = self._constant(-1 if rest is None else (-1, *rest))
        lengths = self._drafts.buffer(b"")
        type = TensorType.INT64
        self._tensors.append(Tensor(shape=(0,), type=type, buffer=lengths, has_rank=True))
        return given["flow_in"], shape, len(self._tensors) - 1

    def split(self, node: Node, given: dict[str, int]) -> Sequence[int]:
        """A list of parts of a tensor."""
        return given["value"], self._constant(-1), given["lengths"]

    def alone(self, node: Node, given: dict[str, int]) -> Sequence[int]:
        """The list."""
        return (given["flow_in"],)


_Make = Callable[[_Graph, Node, dict[str, int]], Sequence[int]]
_WITH_SHAPE = ("TensorListReserve", "TensorListConcatV2", "TensorListSplit")
_LISTS: dict[str, tuple[str, _Make]] = {
    "TensorArrayV3": ("TensorListReserve", _Graph.reserve),
    "TensorArrayWriteV3": ("TensorListSetItem", _Graph.with_item),
    "TensorArrayReadV3": ("TensorListGetItem", _Graph.item),
    "TensorArrayGatherV3": ("TensorListGather", _Graph.item),
    "TensorArrayScatterV3": ("TensorListScatterIntoExistingList", _Graph.scattered),
    "TensorArrayConcatV3": ("TensorListConcatV2", _Graph.joined),
    "TensorArraySplitV3": ("TensorListSplit", _Graph.split),
    "TensorArraySizeV3": ("TensorListLength", _Graph.alone),
}


@rewriting(*_LISTS, "TensorArrayCloseV3")
def left(site: Site) -> bool:
    """An array that is no list, see `as_lists`, stays one, and is refused."""
    return False
