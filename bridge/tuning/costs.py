"""The cost model: what each kind of work takes, by kind of CPU."""

from __future__ import annotations

import ast
import math
import platform
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from tflite_ort.base.shipped import shipped
from tflite_ort.opmap.graph.choices import Chooser, Lowering, plainest
from tflite_ort.schema import OperatorView

_MACHINES = {"AMD64": "x86_64", "arm64": "aarch64"}
# Another lowering than the first has to be better by this factor, or the model may be wrong.
_MARGIN = 0.93


def kind_of_cpu(weights: str) -> str:
    """The kind of this CPU that the model distinguishes, such as ``"x86_64 int8"``.

    Args:
        weights: the type of weights that it multiplies exactly and fast.
    """
    machine = platform.machine()
    return f"{_MACHINES.get(machine, machine)} {weights}"


@cache
def modelled_chooser(weights: str) -> Chooser:
    """Takes the lowering that costs least by the model that ships with the library; the first one
    on a kind of CPU on which nothing was measured."""
    costs = _costs().get(kind_of_cpu(weights))
    if costs is None:
        return plainest

    def choose(op: OperatorView[Any], lowerings: Sequence[Lowering]) -> str:
        return cheapest(lowerings, costs).name

    return choose


def cheapest(lowerings: Sequence[Lowering], costs: Mapping[str, float]) -> Lowering:
    """The lowering with the least cost; the first one unless another is clearly better."""
    found = [cost_of(each, costs) for each in lowerings]
    least = min(found)
    return lowerings[found.index(least)] if least < _MARGIN * found[0] else lowerings[0]


def by_cost(lowerings: Sequence[Lowering], weights: str) -> list[Lowering]:
    """The lowerings, the cheapest by the model first; as they are where there is no model."""
    costs = _costs().get(kind_of_cpu(weights))
    if costs is None:
        return list(lowerings)
    return sorted(lowerings, key=lambda each: cost_of(each, costs))


def cost_of(lowering: Lowering, costs: Mapping[str, float]) -> float:
    """Microseconds by the model; infinite for work that it has no cost of."""
    try:
        return sum([costs[what] * amount for what, amount in lowering.work.items()])
    except KeyError:
        return math.inf


@cache
def _costs() -> Mapping[str, Mapping[str, float]]:
    """Microseconds for one of each kind of work, by kind of CPU."""
    # Texts and numbers in JSON are such in Python, and numpy has imported `ast` already.
    costs: dict[str, dict[str, float]] = ast.literal_eval(
        shipped("tflite_ort.tuning", "costs.json").decode()
    )
    return costs
