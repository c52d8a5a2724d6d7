"""A device tried on a model, in a process of its own, which a provider may end.

``python -m tflite_ort.interpreter.device_trial`` reads what to try as JSON and prints what it
found as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.comparison.differences import difference
from tflite_ort.comparison.drawn import random_inputs
from tflite_ort.comparison.index_limits import index_limits
from tflite_ort.interpreter.interpreter import Interpreter
from tflite_ort.model.resolvers import BuiltinOpResolver, WellKnownOpResolver
from tflite_ort.providers.candidates import Candidate
from tflite_ort.providers.delegates import of_candidate
from tflite_ort.providers.precision import PRECISIONS, has_precision
from tflite_ort.providers.traits import CPU, FULL_PRECISION
from tflite_ort.schema import BridgeError, Budgets
from tflite_ort.schema.values.resolve import tensor_views

Array = npt.NDArray[Any]

# What results may be off, see docs/delegates.md: floats of a precision by this share of the largest
# value, codes by so many quanta, and by so many in the mean.
RELATIVE = {FULL_PRECISION: 1e-3, "fp16": 1e-2, "bf16": 1e-1}
QUANTA, MEAN_QUANTA = 16.0, 1.0

_SAMPLES = 2
_BLOCKS, _SECONDS = 4, 0.1
_RESOLVERS = {kind.__name__: kind for kind in (BuiltinOpResolver, WellKnownOpResolver)}


def tried(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What became of a candidate.

    Args:
        request: ``candidate``, ``resolver`` and ``arguments`` of `Interpreter` as JSON has them.

    Yields:
        ``problem``, why it is none, or ``seconds`` and ``cpu_seconds`` of an invoke, how many
        ``operators`` it takes, and what is known by then of its ``others``, in less precision.
    """
    answer: dict[str, Any] | None = None
    candidate, arguments = Candidate(*request["candidate"]), dict(request["arguments"])
    arguments["resolver"] = _RESOLVERS[request["resolver"]]()
    arguments["budgets"] = Budgets(**arguments["budgets"])
    precision = arguments.pop("precision", FULL_PRECISION)
    warnings.simplefilter("ignore")  # what a delegate cannot run is in its rows
    try:
        with Interpreter(**arguments, providers=[CPU]) as cpu:
            with _opened(candidate, precision, arguments) as other:
                answer = _compared(cpu, other, candidate, RELATIVE[precision])
            yield answer
            less = PRECISIONS[1:] if precision == FULL_PRECISION and "others" in answer else ()
            for each in less:
                if has_precision(candidate.provider, each):
                    with _opened(candidate, each, arguments) as other:
                        answer["others"] += _gain(cpu, other, candidate, each)
                    yield answer
    except BridgeError as error:
        if answer is None:
            yield {"problem": str(error)}


def _opened(candidate: Candidate, precision: str, arguments: Mapping[str, Any]) -> Interpreter:
    return Interpreter(**arguments, providers=[of_candidate(candidate, precision), CPU])


def _gain(cpu: Interpreter, other: Interpreter, candidate: Candidate, precision: str) -> list[str]:
    """What a candidate takes in another precision, and how far its results are off; nothing where
    it cannot compute so."""
    other.allocate_tensors()
    if candidate.provider not in {row.provider for row in other.delegation()}:
        return []
    (arrays,) = _drawn(cpu, [0])
    pairs = zip(_outputs(other, arrays), _outputs(cpu, arrays), strict=True)
    far = max((difference(*pair, None).relative for pair in pairs), default=0.0)
    taken = f"{1000 * _times(other)[0]:.3g} ms with precision={precision!r}"
    return [f"{taken}, which is off by {far:.1g} of the largest value"]


def _drawn(interpreter: Interpreter, seeds: Iterable[int]) -> Iterator[Mapping[int, Array]]:
    """Random inputs."""
    details, model = interpreter.get_input_details(), interpreter._model
    limits = index_limits(model)
    for seed in seeds:
        yield random_inputs(details, seed, limits=limits, budgets=model.budgets)


def _compared(
    cpu: Interpreter, other: Interpreter, candidate: Candidate, relative: float
) -> dict[str, Any]:
    for each in (cpu, other):
        each.allocate_tensors()
    rows = [row for row in other.delegation() if row.runs_on != "constant"]
    taken = sum(row.provider == candidate.provider for row in rows)
    if not taken:
        reasons = (row.reason for row in rows if row.reason)
        return {"problem": next(reasons, "it takes no operator")}
    for arrays in _drawn(cpu, range(_SAMPLES)):
        right, got = (_outputs(each, arrays) for each in (cpu, other))
        if problem := off(cpu, right, got, relative):
            return {"problem": problem}
    seconds, cpu_seconds = _times(other, cpu)
    return {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "operators": [taken, len(rows)],
        "others": [],
    }


def _outputs(interpreter: Interpreter, arrays: Mapping[int, Array]) -> list[Array]:
    for index, array in arrays.items():
        interpreter.set_tensor(index, array)
    interpreter.invoke()
    details = interpreter.get_output_details()
    return [np.asarray(interpreter.get_tensor(each["index"])) for each in details]


def off(
    interpreter: Interpreter, right: Sequence[Array], got: Sequence[Array], relative: float
) -> str:
    """Which output is wrong, and how far; empty where none is.

    Args:
        right: the outputs of `interpreter`.
        relative: what floats may be off.
    """
    views = tensor_views(interpreter._model, 0)
    details = interpreter.get_output_details()
    for detail, want, found in zip(details, right, got, strict=True):
        view = views[detail["index"]]
        far = difference(found, want, view.quantization if view.is_quantized else None)
        near = far.relative <= relative
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
        for each in tried(json.load(sys.stdin)):
            print(json.dumps(each), file=answer, flush=True)


if __name__ == "__main__":
    main()
