"""The tuner: a chooser that times the lowerings of a layer that no table knows."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tflite_ort.base.records import record, replace
from tflite_ort.base.warned import warn_caller
from tflite_ort.opmap import Target, Translator
from tflite_ort.opmap.graph.choices import Chooser, Lowering
from tflite_ort.opmap.graph.costs import by_cost, modelled_chooser
from tflite_ort.schema import CacheWarning, DelegateError, OperatorView
from tflite_ort.tuning.table import TuningTable, layer_key
from tflite_ort.tuning.timing import lowering_times
from tflite_ort.versioning.registry import Registry

View = OperatorView[Any]
# How a layer's lowering was found: it was timed, was in the table, or there was no time left.
TIMED, KNOWN, LEFT = "timed", "known", "left"
# Of a layer's lowerings, how many are timed: those that cost least by the model, and the first.
_TIMED = 6


@record
class Tuning:
    """What `Interpreter(tune=...)` does.

    Args:
        file: where the results are kept; None for the file in the library's cache folder.
        seconds: after so long, layers that were not timed get what the cost model says.
        progress: is told the name of each operator before it is timed.
    """

    file: str | os.PathLike[str] | None = None
    seconds: float = 20.0
    progress: Callable[[str], None] | None = None


# What `Interpreter(tune=...)` takes: whether to tune, or the file with the results.
TuneChoice = bool | str | os.PathLike[str] | Tuning


class Tuner:
    """Chooses by a table, and times the layers that it lacks.

    Args:
        settings: see `Tuning`.
        path: of the table.
        translators: of the operators.

    Attributes:
        found: by layer, how its lowering was found.
    """

    def __init__(
        self, settings: Tuning, path: Path, num_threads: int, translators: Registry[Translator]
    ) -> None:
        self._settings, self._threads, self._translators = settings, num_threads, translators
        self.table = TuningTable(path, num_threads)
        self._left = settings.seconds
        self.found: dict[str, str] = {}

    def chooser(self, target: Target) -> Chooser:
        """Chooses lowerings for graphs that are made for `target`."""
        return partial(self._choose, target)

    def digest(self) -> str:
        """Changes when a choice does."""
        return self.table.digest()

    def save(self) -> None:
        """Keep what was found; a table that cannot be written is a CacheWarning."""
        try:
            self.table.save()
        except OSError as error:
            warn_caller(f"tuned layers are not kept: {error}", CacheWarning)

    def _choose(self, target: Target, op: View, lowerings: Sequence[Lowering]) -> str:
        modelled = modelled_chooser(target.weights)
        group = [
            op,
            *{each.behind.index: each.behind for each in lowerings if each.behind}.values(),
        ]
        tensors = [tensor for each in group for tensor in (*each.present_inputs(), *each.outputs)]
        if any(tensor.dynamic for tensor in tensors) or not all(each.alone for each in lowerings):
            return modelled(op, lowerings)
        layer = " + ".join(map(layer_key, group))
        known = self.table.get(layer)
        if known is not None and any(each.name == known for each in lowerings):
            self.found.setdefault(layer, KNOWN)
            return known
        if self._left <= 0:
            self.found.setdefault(layer, LEFT)
            return modelled(op, lowerings)
        started = time.perf_counter()
        name = self._fastest(target, group, lowerings) or modelled(op, lowerings)
        self._left -= time.perf_counter() - started
        self.table.set(layer, name)
        self.found[layer] = TIMED
        return name

    def _fastest(
        self, target: Target, group: Sequence[View], lowerings: Sequence[Lowering]
    ) -> str | None:
        """The lowering with the shortest time; None where a session cannot be made.

        Args:
            group: the operator, and the one behind it that lowerings are of too.
        """
        if self._settings.progress is not None:
            self._settings.progress(group[0].label)
        names = [each.name for each in by_cost(lowerings, target.weights)[:_TIMED]]
        names = list(dict.fromkeys([lowerings[0].name, *names]))
        plain = replace(target, carried_boundary=True)
        try:
            times = lowering_times(
                group, names, plain, self._translators, num_threads=self._threads
            )
        except DelegateError:
            return None
        return min(times, key=lambda name: times[name])
