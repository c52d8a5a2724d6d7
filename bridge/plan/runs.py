"""What an invoke runs, as functions without arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tflite_ort.schema import BridgeError, DelegateError

Run = Callable[[], object]


def sequence(steps: Sequence[Run]) -> Run:
    """A run of all `steps` in order; it stops at the first that raises."""
    if len(steps) == 1:
        return steps[0]

    def run() -> None:
        for step in steps:
            step()

    return run


def at_first_run(make: Callable[[], Run]) -> Run:
    """A run that is made when it first runs."""
    steps: list[Run] = []
    makers = [make]

    def run() -> None:
        if makers:  # what it is made of goes with its maker
            steps.append(makers[0]())
            makers.clear()
        steps[0]()

    return run


def explained(run: Run, explain: Callable[[DelegateError], BridgeError]) -> Run:
    """`run`, whose errors are explained."""

    def run_or_explain() -> None:
        try:
            run()
        except DelegateError as error:
            raise explain(error) from error.__cause__

    return run_or_explain
