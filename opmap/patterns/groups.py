"""The groups of operators in a graph that a pattern of the table matches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache

from tflite_ort.opmap.graph import Graph, Target
from tflite_ort.opmap.patterns.attention import ATTENTION
from tflite_ort.opmap.patterns.cache_rows import CACHE_ROWS
from tflite_ort.opmap.patterns.cached_attention import CACHED_ATTENTION
from tflite_ort.opmap.patterns.group_normalization import GROUP_NORMS
from tflite_ort.opmap.patterns.matching import Producers
from tflite_ort.opmap.patterns.normalization import NORMS
from tflite_ort.opmap.patterns.pattern import Emit, Pattern, Surroundings, View
from tflite_ort.opmap.patterns.rotation import ROTATIONS
from tflite_ort.opmap.patterns.sigmoid import SIGMOIDS
from tflite_ort.opmap.registry import Translator, translator
from tflite_ort.records import record
from tflite_ort.schema import Op, TensorView
from tflite_ort.versioning.registry import Registry

# Of two patterns that match, the first one is taken.
TABLE: tuple[Pattern, ...] = (
    *GROUP_NORMS,
    *NORMS,
    *SIGMOIDS,
    *CACHED_ATTENTION,
    *ATTENTION,
    *ROTATIONS,
    *CACHE_ROWS,
)


@record
class Group:
    """Operators that are translated together.

    Args:
        operators: in execution order; only the output of the last one is used outside.
    """

    operators: Sequence[View]
    plan: Emit

    def emit(self, g: Graph) -> None:
        """Add the nodes of the group.

        Raises:
            Untranslatable: the operators have to be translated one by one.
        """
        self.plan(g, self.operators[-1])


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
    table, producers = _by_root(), Producers(operators, results)
    around = Surroundings(producers, target)
    place = {op.index: number for number, op in enumerate(operators)}
    grouped: dict[int, Group] = {}
    for op in reversed(operators):  # the largest groups end last
        if op.index in grouped:
            continue
        for pattern in table.get(op.op, ()):
            found = producers.find(pattern.root, op)
            if found is None or not found.operators.keys().isdisjoint(grouped):
                continue
            members = sorted(found.operators.values(), key=lambda each: place[each.index])
            if not all(registry.shares(translator, each) for each in members):
                continue
            plan = pattern.plan(found, around)
            if plan is not None:
                group = Group(members, plan)
                grouped.update((each.index, group) for each in members)
                break
    return grouped


@cache
def _by_root() -> Mapping[Op, Sequence[Pattern]]:
    """The table by the operator at the root."""
    rows: dict[Op, list[Pattern]] = defaultdict(list)
    for pattern in TABLE:
        for op in pattern.root.operators:
            rows[op].append(pattern)
    return rows
