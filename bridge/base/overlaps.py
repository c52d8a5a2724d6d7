"""Calls of one interpreter that overlap in time: the later one is refused.

An interpreter has one set of arrays. A call that runs the model, or makes it ready, stands in
`running` while it lasts; one that copies a tensor stands in `copying`. A call that finds another
where it must be alone raises. It enters first and looks then, so that of two that begin at the same
time one sees the other. A list is entered inside the `try` that leaves it: no Ctrl-C comes between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from tflite_ort.base.forks import renew_in_children
from tflite_ort.schema import StateError

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class Calls:
    """The calls of one interpreter that have not ended.

    Attributes:
        running: those that no other may overlap.
        copying: those that may overlap each other.
    """

    __slots__ = ("__weakref__", "copying", "running")

    def __init__(self) -> None:
        self.running: list[None] = []
        self.copying: list[None] = []
        renew_in_children(self)

    def renew(self) -> None:
        """In the child of a fork the calls of other threads do not go on."""
        self.running.clear()
        self.copying.clear()

    def alone(
        self,
        call: Callable[_Arguments, _Result],
        *arguments: _Arguments.args,
        **named: _Arguments.kwargs,
    ) -> _Result:
        """The result of a call that no other may overlap.

        Raises:
            StateError: there is one.
        """
        try:
            self.running.append(None)
            if len(self.running) > 1 or self.copying:
                raise overlap()
            return call(*arguments, **named)
        finally:
            self.running.pop()


def overlap() -> StateError:
    """The error of a call that finds another."""
    return StateError(
        "The interpreter is in use: another call has not ended. Use an interpreter in one thread "
        "at a time, hold a lock from set_tensor to get_tensor, or give each thread a copy()."
    )
