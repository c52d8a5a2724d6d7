"""Who is told of the plans that run: how it is measured where operators run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tflite_ort.base.records import replace
from tflite_ort.plan.build import Plan
from tflite_ort.plan.context import PlanContext

Observer = Callable[[Plan, PlanContext], None]

_observers: list[Observer] = []


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Within the context `observer` is called for each plan that is made, once, when the plan has
    run for the first time without an error. A plan that the cache has was told when it was made."""
    _observers.append(observer)
    try:
        yield
    finally:
        _observers.remove(observer)


def observed(plan: Plan, context: PlanContext) -> Plan:
    """`plan`, whose first run without an error is told to all who observe now."""
    if not _observers:
        return plan
    waiting = list(_observers)

    def run() -> None:
        plan.run()
        while waiting:
            waiting.pop()(plan, context)

    return replace(plan, run=run)
