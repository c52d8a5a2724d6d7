"""Batches against single runs over the real networks.

    python benchmarks/batches.py [FOLDER] [--sizes 4,3,1] [--open] [--all]

Prints a row a network whose inputs all lead with 1: right, refused with the reason, misgrouped
(another result than the single runs), or failing. `--open` runs the exported graph with an open
batch in place of the interpreter's. `--all` takes the networks with other inputs too, which get one
more axis in front.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime

from tflite_ort import BridgeError, Interpreter, Unbatchable, WellKnownOpResolver, export_onnx
from tflite_ort.comparison.differences import Tolerance, difference
from tflite_ort.comparison.drawn import random_input

Array = npt.NDArray[Any]
Draw = Callable[[Mapping[str, Any], np.random.Generator], Array]
# By input, the values of the samples.
Inputs = list[list[Array]]

# Sums of floats come in another order where there are more rows.
# One network, pose_landmark_lite, makes more of the last bits: docs/numbers.md has it up to 4e-4
# from LiteRT, and LiteRT's kernels as far from each other. All others are within 1e-4.
_TOLERANCE = Tolerance(relative=4e-4)
# Stateful models are run so many times.
_STEPS = 2


# Of an initializer that is an input too, as a state's first value is.
onnxruntime.set_default_logger_severity(3)


def main() -> None:
    """Print the table; the exit code is 1 if a network is misgrouped or fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(__file__).parents[2] / "shared" / "models"
    parser.add_argument("folder", nargs="?", type=Path, default=default)
    parser.add_argument("--sizes", default="4,3,1")
    parser.add_argument("--open", action="store_true", dest="is_open")
    parser.add_argument("--all", action="store_true", dest="any_shape")
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    outcomes: Counter[str] = Counter()
    for path in sorted(given.folder.glob("*.tflite")):
        if given.only not in path.name:
            continue
        outcome = judged(path, sizes, is_open=given.is_open, any_shape=given.any_shape)
        if outcome is not None:
            outcomes[outcome[0]] += 1
            print(f"| {path.stem} | {outcome[0]} | {outcome[1]} |", flush=True)
    total = outcomes.total()
    print(", ".join(f"{count} {what}" for what, count in outcomes.items()), f"of {total}")
    sys.exit(bool(outcomes["misgrouped"] or outcomes["failing"]))


def judged(
    path: Path, sizes: Sequence[int], *, is_open: bool, any_shape: bool
) -> tuple[str, str] | None:
    """The outcome for one network, and what is to be said of it; None if it does not run at all,
    or an input does not lead with 1."""
    try:
        single = opened(path)
    except BridgeError:
        return None
    details, outputs = single.get_input_details(), len(single.get_output_details())
    if not details or not (any_shape or all(map(leads, details))):
        return None
    drawn = runnable(path, details)
    if drawn is None or (is_open and not exports(path)):
        return None
    found = []
    for size in sizes:
        steps = inputs_of(details, size, drawn)
        wanted = singles(path, steps)
        try:
            made = batches(path, [[*map(joined, each)] for each in steps], size, is_open=is_open)
        except Unbatchable as error:
            return "refused", str(error)
        except (BridgeError, RuntimeError) as error:
            return "failing", f"{size}: {type(error).__name__}: {str(error)[:200]}"
        got = [each for step in made for each in step[:outputs]]  # counts of sizes come after
        found += [different(a, b) for a, b in zip(got, wanted, strict=True)]
    wrong = [words for words in found if words]
    return ("misgrouped", wrong[0]) if wrong else ("right", "")


def leads(details: Mapping[str, Any]) -> bool:
    """Whether an input has a batch of one."""
    return len(details["shape"]) > 0 and details["shape"][0] == 1


def small(details: Mapping[str, Any], generator: np.random.Generator, low: int) -> Array:
    """`low` and 1 more: numbers of rows that any table has, or codes of positive numbers."""
    return generator.integers(low, low + 2, details["shape"]).astype(details["dtype"])


def runnable(path: Path, details: Sequence[Mapping[str, Any]]) -> Draw | None:
    """The first way to draw inputs that the network takes; None if it takes none."""
    for draw in (random_input, partial(small, low=0), partial(small, low=1)):
        try:
            singles(path, inputs_of(details, 4, draw))
        except BridgeError:
            continue
        return draw
    return None


def exports(path: Path) -> bool:
    """Whether the network can be exported without a batch."""
    try:
        export_onnx(path, resolver=WellKnownOpResolver())
    except BridgeError:
        return False
    return True


def opened(path: Path, **arguments: Any) -> Interpreter:
    """An interpreter that is ready. `hybrid="auto"` would round by how many rows there are
    (docs/numbers.md): this is about which sample a result is of."""
    interpreter = Interpreter(path, resolver=WellKnownOpResolver(), hybrid="float", **arguments)
    interpreter.allocate_tensors()
    return interpreter


def inputs_of(details: Sequence[Mapping[str, Any]], size: int, draw: Draw) -> list[Inputs]:
    """By step and input, its values for each of `size` samples."""
    generator = np.random.default_rng(size)
    return [
        [[np.asarray(draw(each, generator)) for _ in range(size)] for each in details]
        for _ in range(_STEPS)
    ]


def singles(path: Path, steps: Sequence[Inputs]) -> list[Array]:
    """By step and output, the results of the samples one by one, each from a start of its own."""
    rows = []
    for sample in range(len(steps[0][0])):
        with opened(path) as interpreter:
            row = []
            for inputs in steps:
                row += run(interpreter, [each[sample] for each in inputs])
            rows.append(row)
    return [joined(results) for results in zip(*rows, strict=True)]


def joined(values: Sequence[Array]) -> Array:
    """Inputs or results of samples as a batch has them: padded with zeros to the largest."""
    if len({each.shape for each in values}) > 1:
        largest = np.max([each.shape for each in values], axis=0)
        values = [np.pad(each, [(0, n) for n in largest - each.shape]) for each in values]
    leads = values[0].ndim > 0 and values[0].shape[0] == 1
    return np.concatenate(values) if leads else np.stack(values)


def run(interpreter: Interpreter, inputs: Sequence[Array]) -> list[Array]:
    """The outputs."""
    for details, value in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(details["index"], value)
    interpreter.invoke()
    return [
        np.asarray(interpreter.get_tensor(details["index"]))
        for details in interpreter.get_output_details()
    ]


def batches(
    path: Path, steps: Sequence[Sequence[Array]], size: int, *, is_open: bool
) -> list[list[Array]]:
    """By step and output, the results of the whole batch."""
    if is_open:
        return open_batches(path, steps)
    with opened(path, batch=size) as interpreter:
        return [run(interpreter, inputs) for inputs in steps]


def open_batches(path: Path, steps: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """As `batches`, of the exported graph with an open batch."""
    proto = export_onnx(path, batch="N", resolver=WellKnownOpResolver(), state_defaults=True)
    session = onnxruntime.InferenceSession(proto.SerializeToString(), _options())
    pairs = [pair for pair in state_pairs(proto) if None not in pair]
    outputs = [each.name for each in proto.graph.output]
    names = [each.name for each in proto.graph.input]
    state: dict[str, Array] = {}
    results: list[list[Array]] = []
    for inputs in steps:
        feeds = {**dict(zip(names, inputs, strict=False)), **state}
        made = dict(zip(outputs, session.run(outputs, feeds), strict=True))
        state = {before: made.pop(after) for before, after in pairs}
        results.append([*made.values()])
    return results


def _options() -> onnxruntime.SessionOptions:
    """Products with packed 4-bit weights in float32, as the interpreter has them."""
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    return options


def state_pairs(proto: Any) -> list[list[str]]:
    """The inputs and outputs that are one run's and the next one's state."""
    for each in proto.metadata_props:
        if each.key == "tflite.state":
            return list(json.loads(each.value))
    return []


def different(got: Array, want: Array) -> str:
    """How far the batch is from the single runs, if too far."""
    found = difference(got, want)
    return "" if found.within(_TOLERANCE) else found.words


if __name__ == "__main__":
    main()
