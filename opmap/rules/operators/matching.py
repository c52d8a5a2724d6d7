"""Trees of TFLite operators, and where they stand in a graph.

A pattern is a tree of `Node` over `Leaf`: `MEAN(x)` is the operator MEAN of something called x. A
part that is mentioned twice is the same tensor both times. RESHAPE and its kin may stand anywhere
in between: who takes a match looks at the shapes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Any

from tflite_ort.base.records import field, record
from tflite_ort.opmap.graph.def_use import DefUse
from tflite_ort.opmap.graph.rows import RESHAPES
from tflite_ort.schema import ActivationFunctionType, Op, OperatorView, TensorView

View = OperatorView[Any]

_COMMUTATIVE = frozenset({Op.ADD, Op.MUL, Op.SQUARED_DIFFERENCE})
# Their further operands are options, which who takes a match looks at.
_FIRST_OPERAND_ONLY = frozenset({Op.MEAN, Op.TRANSPOSE, Op.SLICE})


@record(eq=False)
class Leaf:
    """Any tensor.

    Args:
        constant: it has to be a constant.
    """

    constant: bool = False


@record(eq=False)
class Node:
    """One of several operators on these operands.

    Args:
        activations: those that may be fused with it, besides none; at the root any may be.
    """

    operators: frozenset[Op]
    operands: tuple[Tree, ...]
    activations: frozenset[ActivationFunctionType] = frozenset()


Tree = Leaf | Node


def node(*operators: Op, activations: Collection[ActivationFunctionType] = ()) -> Any:
    """A maker of nodes of one of these operators."""

    def make(*operands: Tree) -> Node:
        return Node(frozenset(operators), operands, frozenset(activations))

    return make


@record
class Found:
    """A tree found in a graph.

    Args:
        tensors: the tensor of each part of the tree.
        operators: those of the nodes, by index, and the reshapes between them.
    """

    tensors: Mapping[Tree, TensorView] = field(default_factory=dict)
    operators: Mapping[int, View] = field(default_factory=dict)

    def __getitem__(self, part: Tree) -> TensorView:
        return self.tensors[part]

    def get(self, part: Tree | None) -> TensorView | None:
        """The tensor of a part, None where there is no such part."""
        return None if part is None else self.tensors.get(part)

    def operator(self, part: Node) -> View:
        """The operator of a node."""
        index = self.tensors[part].index
        return next(op for op in self.operators.values() if op.makes(index))


class Producers(DefUse):
    """What makes and reads the tensors of a run of operators, and the trees that stand there.

    Args:
        operators: in execution order.
        results: the tensors that are read from outside.
    """

    def __init__(self, operators: Sequence[View], results: Sequence[TensorView]) -> None:
        super().__init__(operators, results)
        self._sources: dict[int, list[View]] = {}

    def replaced(self, made: Mapping[int, View], gone: Collection[int]) -> Sequence[View]:
        """The operators, by index with others in the place of some, and without some."""
        if not made:
            return self.operators
        return [made.get(op.index, op) for op in self.operators if op.index not in gone]

    def fresh(self) -> Iterator[int]:
        """Indices for new tensors."""
        tensors = chain.from_iterable((*op.present_inputs(), *op.outputs) for op in self.operators)
        return count(1 + max(tensor.index for tensor in tensors))

    def find(self, tree: Node, op: View) -> Found | None:
        """`tree` with `op` at its root; None where it does not stand there, or where something
        else reads what is made inside."""
        if not self._may_be(tree, op):
            return None
        for found in self._of_operator(tree, op, op.output, Found()):
            if self._is_closed(found, op):
                return found
        return None

    def kinds(self, op: View) -> frozenset[Op]:
        """The operators that make the operands of `op`, before reshapes."""
        return frozenset([each.op for each in self._sources_of(op)])

    def _may_be(self, tree: Node, op: View) -> bool:
        """Whether the operators before `op` are those of `tree`, whatever their operands: most that
        are not can be told from this."""
        sources = self._sources_of(op)
        for part in tree.operands:
            if isinstance(part, Leaf):
                continue
            for each in sources:
                if each.op in part.operators and self._may_be(part, each):
                    break
            else:
                return False
        return True

    def _sources_of(self, op: View) -> Sequence[View]:
        """The operators that make the operands of `op`, before reshapes."""
        known = self._sources.get(op.index)
        if known is not None:
            return known
        sources = self._sources[op.index] = []
        for tensor in op.present_inputs():
            maker = self._makers.get(tensor.index)
            while maker is not None and maker.op in RESHAPES and maker.inputs[0] is not None:
                maker = self._makers.get(maker.inputs[0].index)
            if maker is not None:
                sources.append(maker)
        return sources

    def _is_closed(self, found: Found, root: View) -> bool:
        """Whether nothing outside of a match reads what it makes, but for its result, and it can
        be computed where the last operator is."""
        if any(op.variables() for op in found.operators.values()):
            return False  # it is set anew, perhaps before the last operator
        made = [out for op in found.operators.values() if op is not root for out in op.outputs]
        readers = (op for out in made for op in self.readers(out))
        if any(out.is_variable or self.is_result(out) for out in made):
            return False
        return all(op.index in found.operators for op in readers)

    def _of_operator(
        self, tree: Node, op: View, tensor: TensorView, found: Found
    ) -> Iterator[Found]:
        """The ways in which `op` is `tree`, together with what was found by now."""
        if op.op not in tree.operators or (found.operators and not _is_plain(op, tree)):
            return
        inputs = op.present_inputs()
        if op.op in _FIRST_OPERAND_ONLY:
            inputs = inputs[:1]
        if len(inputs) != len(tree.operands) or len(op.outputs) != 1:
            return
        taken = Found({**found.tensors, tree: tensor}, {**found.operators, op.index: op})
        orders = [tree.operands]
        if op.op in _COMMUTATIVE and len(inputs) == 2:
            orders.append(tree.operands[::-1])
        for order in orders:
            yield from self._all(order, inputs, taken)

    def _all(
        self, trees: Sequence[Tree], tensors: Sequence[TensorView], found: Found
    ) -> Iterator[Found]:
        if not trees:
            yield found
            return
        for each in self._one(trees[0], tensors[0], found):
            yield from self._all(trees[1:], tensors[1:], each)

    def _before_reshapes(self, tensor: TensorView) -> set[int]:
        """`tensor`, and the tensors that are reshaped to it."""
        known = {tensor.index}
        maker = self.maker(tensor)
        while maker is not None and maker.op in RESHAPES and maker.inputs[0] is not None:
            known.add(maker.inputs[0].index)
            maker = self.maker(maker.inputs[0])
        return known

    def _one(self, tree: Tree, tensor: TensorView, found: Found) -> Iterator[Found]:
        """The ways in which `tensor` is `tree`, reshaped or not."""
        before = found.get(tree)
        known = set() if before is None else self._before_reshapes(before)
        while True:
            if before is not None:
                if tensor.index in known:
                    yield found
                    return
            elif isinstance(tree, Leaf):
                if tensor.is_constant or not tree.constant:
                    yield Found({**found.tensors, tree: tensor}, found.operators)
                return
            maker = self.maker(tensor)
            if maker is None:
                return
            if maker.op not in RESHAPES:
                if before is None and isinstance(tree, Node):
                    yield from self._of_operator(tree, maker, tensor, found)
                return
            found = Found(found.tensors, {**found.operators, maker.index: maker})
            tensor = maker.inputs[0] or tensor


def may_follow(tree: Node, kinds: Collection[Op]) -> bool:
    """Whether the root of `tree` may have operands that operators of these `kinds` make."""
    return not any(
        isinstance(part, Node) and part.operators.isdisjoint(kinds) for part in tree.operands
    )


def _is_plain(op: View, tree: Node) -> bool:
    """Whether `op` has no fused activation, or one that `tree` may have."""
    activation = getattr(op.options, "fused_activation_function", ActivationFunctionType.NONE)
    return not activation or activation in tree.activations
