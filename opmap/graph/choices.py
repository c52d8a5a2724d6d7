"""The lowerings that an operator can get, of which the target chooses one.

All lowerings of an operator give the same numbers. Which one is the fastest depends on the shape of
the layer and on the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tflite_ort.base.records import record
from tflite_ort.schema import OperatorView


@record
class Lowering:
    """One way to translate an operator.

    Args:
        name: unlike the names of the operator's other lowerings.
        work: what its nodes do, by what is counted; a cost model has a time for each.
        build: adds its nodes to the graph.
        alone: whether its time can be measured without the operators before it.
        behind: the operator that reads the result, if this is a lowering of both.
    """

    name: str
    work: Mapping[str, float]
    build: Callable[[], None]
    alone: bool = True
    behind: OperatorView[Any] | None = None


# Returns the name of one of the lowerings.
Chooser = Callable[[OperatorView[Any], Sequence[Lowering]], str]


def plainest(op: OperatorView[Any], lowerings: Sequence[Lowering]) -> str:
    """The first lowering, which suits every machine."""
    return lowerings[0].name


def build_chosen(
    op: OperatorView[Any], lowerings: Sequence[Lowering], choose: Chooser = plainest
) -> None:
    """Add the nodes of the lowering that `choose` prefers."""
    chosen = choose(op, lowerings) if len(lowerings) > 1 else lowerings[0].name
    next((each for each in lowerings if each.name == chosen), lowerings[0]).build()
