"""What it costs that calls of one interpreter that overlap are refused: ``set_tensor``, ``invoke``
and ``get_tensor`` of an interpreter whose model does nothing, with and without the guard, in turns;
the least time of each.

    python benchmarks/overlap_guard.py
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tflite_ort import Interpreter
from tflite_ort.command.demo import digits_model

ROUNDS, CALLS = 400, 500


class Nothing:
    """A subgraph whose calls do nothing."""

    def set(self, index: int, value: Any) -> None: ...

    def get(self, index: int) -> None: ...

    def invoke(self) -> None: ...


class Unguarded(Interpreter):
    """The three methods without the guard."""

    def set_tensor(self, tensor_index: Any, value: Any) -> None:
        self._subgraph(0).set(tensor_index, value)

    def get_tensor(self, tensor_index: Any, subgraph_index: int = 0) -> Any:
        return self._subgraph(subgraph_index).get(tensor_index)

    def invoke(self) -> None:
        if self._views.alive:
            self._ensure_safe()
        (self._subgraphs.get(0) or self._subgraph(0)).invoke()


def calls_of(interpreter: Interpreter) -> dict[str, Callable[[], None]]:
    """By name, what makes `CALLS` calls."""
    interpreter._subgraphs[0] = Nothing()  # type: ignore[assignment]

    def sets() -> None:
        for _ in range(CALLS):
            interpreter.set_tensor(0, None)  # type: ignore[arg-type]

    def invokes() -> None:
        for _ in range(CALLS):
            interpreter.invoke()

    def gets() -> None:
        for _ in range(CALLS):
            interpreter.get_tensor(0)

    return {"set_tensor": sets, "invoke": invokes, "get_tensor": gets}


def main() -> None:
    model = digits_model("float32")
    kinds = {"guarded": calls_of(Interpreter(model)), "plain": calls_of(Unguarded(model))}
    least: dict[tuple[str, str], float] = {}
    for _ in range(ROUNDS):
        for kind, calls in kinds.items():
            for name, call in calls.items():
                started = time.perf_counter()
                call()
                taken = 1e9 * (time.perf_counter() - started) / CALLS
                least[kind, name] = min(least.get((kind, name), taken), taken)
    for name in kinds["plain"]:
        guarded, plain = least["guarded", name], least["plain", name]
        print(f"{name}: {guarded:.0f} ns, {plain:.0f} without the guard: {guarded - plain:+.0f}")


if __name__ == "__main__":
    main()
