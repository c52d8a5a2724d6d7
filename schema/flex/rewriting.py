"""Puts TFLite's own operators into the place of TensorFlow's that compute the same.

A model's Flex operators are looked at before anything else is. A file of this folder says for some
operators of its family which of TFLite's take their place::

    @rewriting("Transpose")
    def transpose(site: Site) -> bool:
        site.emit(Op.TRANSPOSE, site.inputs, site.outputs)
        return True

These have the translators, kernels, shape rules and patterns of TFLite's operators. They take every
type that these have code for, which are more than TFLite's own take.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.optional import load
from tflite_ort.base.records import field, record, replace
from tflite_ort.schema.file.element_types import TensorType, type_of
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.file.external import ExternalData
from tflite_ort.schema.file.flex_table import PREFIX, family_of
from tflite_ort.schema.file.model import Buffer, Model, Operator, OperatorCode, SubGraph, Tensor
from tflite_ort.schema.file.operators import options_of
from tflite_ort.schema.file.tables import Table
from tflite_ort.schema.values.flex import Node, is_of_type, node_from
from tflite_ort.schema.values.resolve import CODES, constant_data
from tflite_ort.schema.values.view import Origin

Array = npt.NDArray[Any]
Rewriting = Callable[["Site"], bool]

_REWRITINGS: dict[str, Rewriting] = {}
_STAYING: set[str] = set()


def rewriting(*names: str, stays: bool = False) -> Callable[[Rewriting], Rewriting]:
    """Registers what puts other operators into the place of TensorFlow's of these names; it returns
    False where it cannot.

    Args:
        stays: the operator itself is among them, and has a kernel; see `Site.stay`.
    """

    def register(function: Rewriting) -> Rewriting:
        for name in names:
            if name in _REWRITINGS:
                raise ValueError(f"{name} is rewritten already")
            _REWRITINGS[name] = function
        _STAYING.update(names if stays else ())
        return function

    return register


def rewritten_names(family: str) -> list[str]:
    """The operators of a family that have a rewriting."""
    load(f"tflite_ort.schema.flex.{family}")
    return [name for name in _REWRITINGS if family_of(name) == family]


def rewriting_of(name: str) -> Rewriting | None:
    """What rewrites TensorFlow's operator `name`, if there is something."""
    family = family_of(name)
    if family:
        load(f"tflite_ort.schema.flex.{family}")
    return _REWRITINGS.get(name)


def is_replaced(name: str) -> bool:
    """Whether TFLite's own operators alone take the place of TensorFlow's operator `name`."""
    return rewriting_of(name) is not None and name not in _STAYING


@record(frozen=False)
class Drafts:
    """A model under rewriting.

    Args:
        codes, buffers: those of the model, and the ones that are added.
        turns: by subgraph, what the last of its operators gave that have an order.
    """

    model: Model
    codes: list[OperatorCode]
    buffers: list[Buffer]
    turns: dict[int, int] = field(default_factory=dict)
    _indices: dict[tuple[Any, ...], int] = field(default_factory=dict)

    @classmethod
    def of(cls, model: Model) -> Drafts:
        """Nothing is changed yet."""
        return cls(model, list(model.operator_codes), list(model.buffers))

    def code(self, code: OperatorCode) -> int:
        """The index of an operator code, which is added if it is not there."""
        key = (code.builtin_code, code.custom_code, code.version)
        if key not in self._indices:
            self._indices[key] = len(self.codes)
            self.codes.append(code)
        return self._indices[key]

    def buffer(self, content: bytes) -> int:
        """The index of a new buffer."""
        self.buffers.append(Buffer(data=np.frombuffer(content, np.uint8)))
        return len(self.buffers) - 1

    def whole(self, subgraphs: Sequence[SubGraph]) -> Model:
        """The model with these subgraphs."""
        return replace(
            self.model,
            operator_codes=tuple(self.codes),
            buffers=tuple(self.buffers),
            subgraphs=tuple(subgraphs),
        )


@record(frozen=False)
class Site:
    """One of TensorFlow's operators in its subgraph, and what takes its place.

    Args:
        subgraph: its number.
        name: as the model calls it.
        tensors: of the subgraph; more can be added.
        inputs, outputs: indices of tensors.
        operators: those emitted so far.
    """

    drafts: Drafts
    subgraph: int
    operator: Operator
    name: str
    node: Node
    tensors: list[Tensor]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: list[Operator] = field(default_factory=list)

    def input(self, name: str) -> int:
        """The tensor of a single input."""
        (index,) = self.node.inputs(self.inputs, name)
        return index

    def all(self, name: str) -> list[int]:
        """The tensors of an input that stands for several."""
        return self.node.inputs(self.inputs, name)

    def type(self, index: int) -> TensorType:
        """The type of a tensor."""
        return self.tensors[index].type

    def is_of(self, *types: TensorType) -> bool:
        """Whether the first input has one of these types."""
        return self.tensors[self.inputs[0]].type in types

    def constant(self, index: int) -> Array | None:
        """The values of a tensor, if they are in the file."""
        tensor = self.tensors[index]
        model = self.drafts.model
        if tensor.buffer >= len(model.buffers):
            return None
        return constant_data(model, tensor, ExternalData(model))

    def add_constant(self, values: npt.ArrayLike, dtype: npt.DTypeLike = np.int32) -> int:
        """A new tensor of these values."""
        array = np.asarray(values, dtype)
        type = type_of(array.dtype)
        if type is None:
            raise TypeError(f"no tensor has {array.dtype}")
        buffer = self.drafts.buffer(array.tobytes())
        self.tensors.append(
            Tensor(shape=array.shape, type=type, buffer=buffer, name=self.name, has_rank=True)
        )
        return len(self.tensors) - 1

    def add_tensor(self, type: TensorType) -> int:
        """A new tensor, whose shape follows from the operator that makes it."""
        self.tensors.append(Tensor(type=type, name=self.name))
        return len(self.tensors) - 1

    def emit(
        self,
        op: Op,
        inputs: Sequence[int | None],
        outputs: Sequence[int],
        options: Table | None = None,
        version: int = 1,
    ) -> None:
        """One operator more."""
        code = OperatorCode(builtin_code=op, custom_code=Origin(self.name), version=version)
        self.operators.append(
            Operator(
                opcode_index=self.drafts.code(code),
                inputs=tuple(inputs),
                outputs=tuple(outputs),
                options=options if options is not None else options_of(op, None),
            )
        )

    def stay(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """The operator itself, with other inputs and outputs than its node says."""
        code = OperatorCode(builtin_code=Op.CUSTOM, custom_code=Origin(self.name), version=1)
        self.operators.append(
            replace(
                self.operator,
                opcode_index=self.drafts.code(code),
                inputs=tuple(inputs),
                outputs=tuple(outputs),
            )
        )

    def through(
        self,
        op: Op,
        inputs: Sequence[int | None],
        type: TensorType,
        options: Table | None = None,
        version: int = 1,
    ) -> int:
        """The result, of `type`, of one operator more."""
        made = self.add_tensor(type)
        self.emit(op, inputs, [made], options, version)
        return made


def rewritten(model: Model, kept: Collection[str] = ()) -> Model:
    """`model` with TFLite's operators in the place of those of TensorFlow's that have such ones.

    Args:
        kept: names of operators that stay, since a user registered code for them.
    """
    drafts = Drafts.of(model)
    rules = {
        index: rule
        for index, code in enumerate(model.operator_codes)
        if (rule := _rule(code, kept)) is not None
    }
    if not rules:
        return model
    numbers = range(len(model.subgraphs))
    return drafts.whole([_rewritten(number, drafts, rules) for number in numbers])


def _rule(code: OperatorCode, kept: Collection[str]) -> Rewriting | None:
    name = code.custom_code or ""
    if code.builtin_code is not Op.CUSTOM or not name.startswith(PREFIX) or name in kept:
        return None
    return rewriting_of(name.removeprefix(PREFIX)) if code.version == 1 else None


def _rewritten(subgraph: int, drafts: Drafts, rules: Mapping[int, Rewriting]) -> SubGraph:
    graph = drafts.model.subgraphs[subgraph]
    operators: list[Operator] = []
    tensors = list(graph.tensors)
    for number, operator in enumerate(graph.operators):
        rule = rules.get(operator.opcode_index)
        place = (subgraph, number)
        made = None if rule is None else _place(rule, operator, place, tensors, drafts)
        operators += [operator] if made is None else made
    return replace(graph, tensors=tuple(tensors), operators=tuple(operators))


def _place(
    rule: Rewriting,
    operator: Operator,
    place: tuple[int, int],
    tensors: list[Tensor],
    drafts: Drafts,
) -> list[Operator] | None:
    """What takes the place of `operator`; None where it stays. What is wrong with its node is told
    when its subgraph is made ready."""
    name = drafts.model.operator_codes[operator.opcode_index].custom_code or ""
    inputs = tuple(index for index in operator.inputs if index is not None)
    if len(inputs) < len(operator.inputs) or any(_has_codes(tensors[index]) for index in inputs):
        return None
    try:
        node = node_from(f"{name}_{place[1]}", name, operator.custom_options)
        site = Site(drafts, place[0], operator, name, node, tensors, inputs, operator.outputs)
        _check_numbers(site)
        return site.operators if rule(site) else None
    except ModelError:
        return None


def _check_numbers(site: Site) -> None:
    pairs = (
        (site.inputs, site.node.operator.inputs),
        (site.outputs, site.node.operator.outputs),
    )
    for given, arguments in pairs:
        types = [type for _, type in site.node.types(arguments)]
        found = [site.tensors[index].type for index in given]
        if len(types) != len(found) or any(
            name != "variant" and not is_of_type(type, name)
            for name, type in zip(types, found, strict=True)
        ):
            raise ModelError("other inputs or outputs than the node says")


def _has_codes(tensor: Tensor) -> bool:
    """TensorFlow takes integers as they are, whatever scale a tensor has."""
    quantization = tensor.quantization
    return tensor.type in CODES and quantization is not None and quantization.scale is not None
