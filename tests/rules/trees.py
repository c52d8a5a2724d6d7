"""Models made of the trees of patterns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.one_op import Node as Operator
from tests.one_op import T, graph_model
from tflite_ort import Interpreter
from tflite_ort.opmap.rules.operators.matching import Leaf, Node, Tree
from tflite_ort.schema import Op, ReducerOptions, SubOptions

Array = npt.NDArray[Any]


class TreeModel:
    """The operators of a tree over given leaves; each part is named after its place.

    Args:
        leaves: the array of each constant, and the shape of each other leaf.
        axes: over which MEAN is taken; its dimensions are kept.
    """

    def __init__(
        self, root: Node, leaves: Mapping[Leaf, Array | tuple[int, ...]], axes: tuple[int, ...] = ()
    ) -> None:
        self.tensors: dict[str, T] = {}
        self.operators: list[Operator] = []
        self._names: dict[Tree, str] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._leaves, self._axes = leaves, axes
        if axes:
            self.tensors["axes"] = T.constant(np.int32(axes))
        self.result = self._add(root)

    def _add(self, part: Tree) -> str:
        if part in self._names:
            return self._names[part]
        name = self._leaf(part) if isinstance(part, Leaf) else self._node(part)
        self._names[part] = name
        return name

    def _leaf(self, part: Leaf) -> str:
        name, given = f"leaf{len(self._names)}", self._leaves[part]
        is_shape = isinstance(given, tuple)
        self.tensors[name] = T(given) if is_shape else T.constant(given)
        self._shapes[name] = self.tensors[name].shape
        return name

    def _node(self, part: Node) -> str:
        inputs = [self._add(each) for each in part.operands]
        op, name = min(part.operators), f"y{len(self.operators)}"
        shape = np.broadcast_shapes(*(self._shapes[each] for each in inputs))
        options: Any = None
        if op is Op.MEAN:
            inputs, options = [*inputs, "axes"], ReducerOptions(keep_dims=True)
            shape = tuple(1 if i in self._axes else n for i, n in enumerate(shape))
        if op is Op.SUB and part.activations:
            options = SubOptions(fused_activation_function=min(part.activations))
        self.tensors[name], self._shapes[name] = T(shape), shape
        self.operators.append(Operator(op, inputs, [name], options))
        return name

    def content(self, *more: str) -> bytes:
        """The model; `more` names further outputs."""
        return graph_model(self.tensors, self.operators, [self.result, *more])


def answers(model: bytes, inputs: list[Array], **arguments: Any) -> list[Array]:
    """The outputs of our interpreter."""
    interpreter = Interpreter(model_content=model, cache=False, **arguments)
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]


def unfused(model: bytes, inputs: list[Array]) -> list[Array]:
    """The outputs of the graph in which every operator is translated by itself."""
    return answers(model, inputs, experimental_preserve_all_tensors=True)
