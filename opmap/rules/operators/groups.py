"""The groups of operators in a graph that a pattern of the table matches."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from operator import attrgetter

from tflite_ort.base.optional import late
from tflite_ort.base.records import record
from tflite_ort.opmap.graph import Graph, Target
from tflite_ort.opmap.registry import Translator, translator
from tflite_ort.opmap.rules.operators.matching import Producers, may_follow
from tflite_ort.opmap.rules.operators.pattern import Emit, Pattern, Surroundings, View
from tflite_ort.opmap.rules.rule import Rule, Stage
from tflite_ort.opmap.rules.table import RULES
from tflite_ort.schema import Op, TensorType
from tflite_ort.versioning.registry import Registry

with late:
    from tflite_ort.opmap.rules.operators import returns, unrolled_nodes


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


@record
class GroupsAround:
    """What rules on groups know.

    Args:
        producers: what makes and reads the tensors.
        grouped: by index of an operator, the group that it is in by now.
    """

    producers: Producers
    registry: Registry[Translator]
    target: Target
    grouped: dict[int, Group]

    @property
    def operators(self) -> Sequence[View]:
        """In execution order."""
        return self.producers.operators

    def own(self, operators: Sequence[View]) -> bool:
        """Whether the library's translators are those of `operators`."""
        return all(self.registry.shares(translator, each) for each in operators)


def groups(
    producers: Producers, registry: Registry[Translator], target: Target
) -> dict[int, Group]:
    """By index of an operator, the group that it is in.

    An operator whose translator was replaced is in no group: it is to be translated by that.
    """
    around = GroupsAround(producers, registry, target, {})
    for stage, rules in _in_order(frozenset([op.op for op in producers.operators])):
        asked = [rule for rule in rules if rule.applies(target)]
        if stage is Stage.TREES:
            _add_trees(around, asked)
            continue
        for rule in asked:
            for group in rule.loaded()(around):
                _add(around.grouped, group)
    return around.grouped


@lru_cache(maxsize=256)
def _in_order(present: frozenset[Op]) -> Sequence[tuple[Stage, Sequence[Rule]]]:
    """The rules that may find something among these operators: runs of one stage."""
    known = (rule for rule in RULES if rule.stage in (Stage.GROUPS, Stage.TREES))
    found = (rule for rule in known if rule.may_be_in(present))
    return [(stage, tuple(run)) for stage, run in groupby(found, attrgetter("stage"))]


def _add(grouped: dict[int, Group], group: Group) -> None:
    grouped.update((each.index, group) for each in group.operators)


def unrolled(around: GroupsAround) -> Iterator[Group]:
    """Recurrent cells that a converter has unrolled."""
    if not _may_be_unrolled(around.operators):
        return
    emitted = {index: group.place for index, group in around.grouped.items()}
    found = unrolled_nodes.unrolled(around.producers, emitted, around.target)
    for members, place, plan in found:
        if around.own(members):
            yield Group(members, plan, place)


def returned(around: GroupsAround) -> Iterator[Group]:
    """Chains of movements after which elements stand where they stood."""
    if sum(op.op is Op.TRANSPOSE for op in around.operators) > 1:
        for chain in returns.chains(around.producers):
            taken = any(each.index in around.grouped for each in chain.operators)
            floats = chain.operators[0].output.type is TensorType.FLOAT32
            if floats and around.target.no_floats:
                continue  # each is asked whether it moves codes
            if around.own(chain.operators) and not taken:
                yield Group(chain.members, chain.plan, chain.operators[-1])


def _may_be_unrolled(operators: Sequence[View]) -> bool:
    """Whether a matrix multiplies rows more than once, as in the steps of a recurrent cell."""
    products = [op for op in operators if op.op is Op.FULLY_CONNECTED and len(op.inputs) > 1]
    filters = Counter(op.inputs[1].index for op in products if op.inputs[1] is not None)
    return max(filters.values(), default=0) > 1


def _add_trees(around: GroupsAround, rules: Sequence[Rule]) -> None:
    """Add the groups that are trees of the tables of `rules`."""
    if not rules:
        return
    operators, grouped = around.operators, around.grouped
    table, producers = _by_root(tuple(rules)), around.producers
    surroundings = Surroundings(producers, around.target)
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
            if not around.own(members):
                continue
            plan = pattern.plan(found, surroundings)
            if plan is not None:
                _add(grouped, Group(members, plan, members[-1]))
                break


@lru_cache(maxsize=64)
def _by_root(rules: tuple[Rule, ...]) -> Mapping[Op, Sequence[Pattern]]:
    """The patterns of some rules by the operator at the root."""
    rows: dict[Op, list[Pattern]] = defaultdict(list)
    for rule in rules:
        for pattern in rule.loaded():
            for op in pattern.root.operators:
                rows[op].append(pattern)
    return rows
