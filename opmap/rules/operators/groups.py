"""The groups of operators in a graph that a pattern of the table matches."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from tflite_ort.opmap.graph import Graph, Target
from tflite_ort.opmap.registry import Translator, translator
from tflite_ort.opmap.rules.operators.matching import Producers, may_follow
from tflite_ort.opmap.rules.operators.pattern import Emit, Pattern, Surroundings, View
from tflite_ort.optional import late, load
from tflite_ort.records import record
from tflite_ort.schema import Op, TensorView
from tflite_ort.versioning.registry import Registry

if TYPE_CHECKING:
    from tflite_ort.opmap.rules.operators import (
        paired_cells,
        pooled_columns,
        returns,
        unrolled_nodes,
    )
else:
    unrolled_nodes = late("tflite_ort.opmap.rules.operators.unrolled_nodes")
    paired_cells = late("tflite_ort.opmap.rules.operators.paired_cells")
    pooled_columns = late("tflite_ort.opmap.rules.operators.pooled_columns")
    returns = late("tflite_ort.opmap.rules.operators.returns")


@record
class Family:
    """Patterns of one module, which is imported for graphs in which one of them may be.

    Args:
        table: the name of the patterns in the module.
        needs: each pattern has all operators of one of these sets.
    """

    module: str
    table: str
    needs: tuple[frozenset[Op], ...]

    def patterns(self) -> Sequence[Pattern]:
        """Its patterns."""
        found: Sequence[Pattern] = vars(load(f"{__package__}.{self.module}"))[self.table]
        return found


_ACTIVATIONS = (Op.TANH, Op.LOGISTIC, Op.RELU, Op.ADD)
_MATMULS = frozenset({Op.BATCH_MATMUL, Op.SOFTMAX})
_ROOTS = frozenset({Op.MEAN, Op.RSQRT}), frozenset({Op.MEAN, Op.SQRT})
# Of two patterns that match, the first one is taken.
FAMILIES: tuple[Family, ...] = (
    Family("group_normalization", "GROUP_NORMS", _ROOTS[:1]),
    Family("normalization", "NORMS", _ROOTS),
    Family("sigmoid", "SIGMOIDS", (frozenset({Op.LOGISTIC}),)),
    Family("cached_attention", "CACHED_ATTENTION", (_MATMULS,)),
    Family("attention", "ATTENTION", (_MATMULS,)),
    Family("rotation", "ROTATIONS", (frozenset({Op.CONCATENATION, Op.MUL, Op.SLICE}),)),
    Family(
        *("cache_rows", "CACHE_ROWS"),
        (frozenset({Op.DYNAMIC_UPDATE_SLICE}), frozenset({Op.GATHER_ND, Op.REDUCE_ALL})),
    ),
)


@record
class Group:
    """Operators that are translated together.

    Args:
        operators: in execution order where the nodes are added at the last one. Of a tree only the
            output of the last one is used outside.
        place: the one of them where the nodes are added.
    """

    operators: Sequence[View]
    plan: Emit
    place: View

    def emit(self, g: Graph) -> None:
        """Add the nodes of the group.

        Raises:
            Untranslatable: the operators have to be translated one by one.
        """
        self.plan(g, self.place)


def groups(
    operators: Sequence[View],
    results: Sequence[TensorView],
    registry: Registry[Translator],
    target: Target,
) -> dict[int, Group]:
    """By index of an operator, the group that it is in.

    An operator whose translator was replaced is in no group: it is to be translated by that.

    Args:
        operators: in execution order.
        results: the tensors that are read from outside.
    """
    kinds = [op.op for op in operators]
    present, grouped = frozenset(kinds), dict[int, Group]()
    if kinds.count(Op.UNIDIRECTIONAL_SEQUENCE_LSTM) > 1:
        for pair, plan in paired_cells.pairs(operators, target):
            if all(registry.shares(translator, each) for each in pair):
                _add(grouped, Group(pair, plan, pair[-1]))
    if Op.MAX_POOL_2D in present and Op.CONV_2D in present:
        for pair, plan in pooled_columns.pooled(operators, results, target):
            if all(registry.shares(translator, each) for each in pair):
                _add(grouped, Group(pair, plan, pair[-1]))
    if kinds.count(Op.FULLY_CONNECTED) > 1 and _may_be_unrolled(operators, present):
        emitted = {index: group.place for index, group in grouped.items()}
        for members, place, plan in unrolled_nodes.unrolled(operators, results, emitted, target):
            if all(registry.shares(translator, each) for each in members):
                _add(grouped, Group(members, plan, place))
    _add_trees(grouped, operators, results, registry, target, present)
    if kinds.count(Op.TRANSPOSE) > 1:
        for chain in returns.chains(operators, results):
            known = all(registry.shares(translator, each) for each in chain.operators)
            if known and not any(each.index in grouped for each in chain.operators):
                _add(grouped, Group(chain.members, chain.plan, chain.operators[-1]))
    return grouped


def _add(grouped: dict[int, Group], group: Group) -> None:
    grouped.update((each.index, group) for each in group.operators)


def _may_be_unrolled(operators: Sequence[View], present: frozenset[Op]) -> bool:
    """Whether a matrix multiplies rows more than once, as in the steps of a recurrent cell."""
    if present.isdisjoint(_ACTIVATIONS):
        return False
    products = [op for op in operators if op.op is Op.FULLY_CONNECTED and len(op.inputs) > 1]
    filters = Counter(op.inputs[1].index for op in products if op.inputs[1] is not None)
    return max(filters.values(), default=0) > 1


def _add_trees(
    grouped: dict[int, Group],
    operators: Sequence[View],
    results: Sequence[TensorView],
    registry: Registry[Translator],
    target: Target,
    present: frozenset[Op],
) -> None:
    """Add the groups that are trees of the table; `present` are all kinds of operators."""
    families = _families(present)
    if not families:
        return
    table, producers = _by_root(families), Producers(operators, results)
    around = Surroundings(producers, target)
    place = {op.index: number for number, op in enumerate(operators)}
    possible: dict[tuple[Op, frozenset[Op]], Sequence[Pattern]] = {}
    for op in reversed(operators):  # the largest groups end last
        if op.op not in table or op.index in grouped:
            continue
        kinds = op.op, producers.kinds(op)
        if kinds not in possible:
            possible[kinds] = [each for each in table[op.op] if may_follow(each.root, kinds[1])]
        for pattern in possible[kinds]:
            found = producers.find(pattern.root, op)
            if found is None or not found.operators.keys().isdisjoint(grouped):
                continue
            members = sorted(found.operators.values(), key=lambda each: place[each.index])
            if not all(registry.shares(translator, each) for each in members):
                continue
            plan = pattern.plan(found, around)
            if plan is not None:
                _add(grouped, Group(members, plan, members[-1]))
                break


@lru_cache(maxsize=256)
def _families(present: frozenset[Op]) -> tuple[int, ...]:
    """The numbers of the families of which a pattern may be in a graph of these operators."""
    needs = ((number, family.needs) for number, family in enumerate(FAMILIES))
    return tuple(number for number, each in needs if any(needed <= present for needed in each))


@cache
def _by_root(families: tuple[int, ...]) -> Mapping[Op, Sequence[Pattern]]:
    """The patterns of some families by the operator at the root."""
    rows: dict[Op, list[Pattern]] = defaultdict(list)
    for number in families:
        for pattern in FAMILIES[number].patterns():
            for op in pattern.root.operators:
                rows[op].append(pattern)
    return rows
