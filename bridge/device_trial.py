"""A device tried on a model, in a process of its own, which a provider may end.

``python -m tflite_ort.device_trial`` reads what to try as JSON and prints what it found as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.comparison.differences import difference
from tflite_ort.comparison.drawn import random_inputs
from tflite_ort.comparison.index_limits import index_limits
from tflite_ort.interpreter import Interpreter
from tflite_ort.providers.candidates import Candidate
from tflite_ort.providers.traits import CPU
from tflite_ort.resolvers import BuiltinOpResolver, WellKnownOpResolver
from tflite_ort.schema import BridgeError, Budgets
from tflite_ort.schema.values.resolve import tensor_views

Array = npt.NDArray[Any]

# What results may be off, see docs/delegates.md: floats by this share of the largest value, codes
# by so many quanta, and by so many in the mean.
RELATIVE, QUANTA, MEAN_QUANTA = 1e-3, 16.0, 1.0

_SAMPLES = 2
_BLOCKS, _SECONDS = 4, 0.1
_RESOLVERS = {kind.__name__: kind for kind in (BuiltinOpResolver, WellKnownOpResolver)}


def tried(request: Mapping[str, Any]) -> dict[str, Any]:
    """What became of a candidate.

    Args:
        request: ``candidate``, ``resolver`` and ``arguments`` of `Interpreter` as JSON has them.

    Returns:
        ``problem``, why it is none, or ``seconds`` and ``cpu_seconds`` of an invoke and how many
        ``operators`` it takes.
    """
    candidate, arguments = Candidate(*request["candidate"]), dict(request["arguments"])
    arguments["resolver"] = _RESOLVERS[request["resolver"]]()
    arguments["budgets"] = Budgets(**arguments["budgets"])
    warnings.simplefilter("ignore")  # what a delegate cannot run is in its rows
    try:
        with (
            Interpreter(**arguments, providers=[CPU]) as cpu,
            Interpreter(**arguments, providers=[candidate.delegate, CPU]) as other,
        ):
            return _compared(cpu, other, candidate)
    except BridgeError as error:
        return {"problem": str(error)}


def _compared(cpu: Interpreter, other: Interpreter, candidate: Candidate) -> dict[str, Any]:
    for each in (cpu, other):
        each.allocate_tensors()
    rows = [row for row in other.delegation() if row.runs_on != "constant"]
    taken = sum(row.provider == candidate.provider for row in rows)
    if not taken:
        reasons = (row.reason for row in rows if row.reason)
        return {"problem": next(reasons, "it takes no operator")}
    for seed in range(_SAMPLES):
        details, model = cpu.get_input_details(), cpu._model
        arrays = random_inputs(details, seed, limits=index_limits(model), budgets=model.budgets)
        results = [_outputs(each, arrays) for each in (cpu, other)]
        if problem := off(cpu, *results):
            return {"problem": problem}
    seconds, cpu_seconds = _times(other, cpu)
    return {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "operators": [taken, len(rows)],
    }


def _outputs(interpreter: Interpreter, arrays: Mapping[int, Array]) -> list[Array]:
    for index, array in arrays.items():
        interpreter.set_tensor(index, array)
    interpreter.invoke()
    details = interpreter.get_output_details()
    return [np.asarray(interpreter.get_tensor(each["index"])) for each in details]


def off(interpreter: Interpreter, right: Sequence[Array], got: Sequence[Array]) -> str:
    """Which output is wrong, and how far; empty where none is.

    Args:
        right: the outputs of `interpreter`.
    """
    views = tensor_views(interpreter._model, 0)
    details = interpreter.get_output_details()
    for detail, want, found in zip(details, right, got, strict=True):
        view = views[detail["index"]]
        far = difference(found, want, view.quantization if view.is_quantized else None)
        near = far.relative <= RELATIVE
        if far.quanta is not None:
            near = far.quanta <= QUANTA and (far.mean_quanta or 0) <= MEAN_QUANTA
        if not far.finite or not (near or far.exact):
            return f"its {detail['name']!r} differs from the CPU's by {far.words}"
    return ""


def _times(*interpreters: Interpreter) -> list[float]:
    """What an invoke of each takes: the best of some blocks, in turns, of invokes one after the
    other, as programs run them."""
    blocks = [[_block(each) for each in interpreters] for _ in range(_BLOCKS)]
    return [min(times) for times in zip(*blocks, strict=True)]


def _block(interpreter: Interpreter) -> float:
    times: list[float] = []
    end = time.perf_counter() + _SECONDS
    while not times or time.perf_counter() < end:
        started = time.perf_counter()
        interpreter.invoke()
        times.append(time.perf_counter() - started)
    return median(times)


def main() -> None:
    """The process."""
    # What a provider prints must not get into the answer.
    with os.fdopen(os.dup(sys.stdout.fileno()), "w") as answer:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        json.dump(tried(json.load(sys.stdin)), answer)


if __name__ == "__main__":
    main()
