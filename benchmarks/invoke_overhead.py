"""What `Interpreter.invoke` adds to ONNX Runtime's own bound run, in microseconds.

    python benchmarks/invoke_overhead.py [--rounds N] [--json FILE]

Both run the same graph of one ADD on one thread and take turns; the bar is 5 microseconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from tflite_ort import Interpreter, export_onnx
from tflite_ort.base.files import write_text
from tflite_ort.command.benchmark import interleaved, machine
from tflite_ort.schema import AddOptions, ModelBuilder, Op

BAR_MICROSECONDS = 5.0


def one_add(shape: tuple[int, ...] = (1, 16)) -> bytes:
    """A model of one float ADD of two inputs."""
    builder = ModelBuilder()
    graph = builder.subgraph("main")
    for name in ("a", "b", "sum"):
        graph.tensor(name, shape)
    graph.operator(Op.ADD, ["a", "b"], ["sum"], AddOptions()).inputs("a", "b").outputs("sum")
    return builder.write()


def bound_session(model: bytes) -> tuple[Any, Any]:
    """A plain ONNX Runtime session of the exported model, and its binding."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        export_onnx(model, state_defaults=True).SerializeToString(),
        options,
        providers=["CPUExecutionProvider"],
    )
    binding = session.io_binding()
    for value in session.get_inputs():
        array = onnxruntime.OrtValue.ortvalue_from_numpy(np.ones(value.shape, np.float32))
        binding.bind_ortvalue_input(value.name, array)
    for value in session.get_outputs():
        array = onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(value.shape, np.float32))
        binding.bind_ortvalue_output(value.name, array)
    return session, binding


def measure(rounds: int) -> dict[str, float]:
    """Median microseconds of an invoke, of a bound run, and of their difference per round."""
    model = one_add()
    interpreter = Interpreter(model_content=model, num_threads=1)
    interpreter.allocate_tensors()
    session, binding = bound_session(model)

    def bound_run() -> None:
        session.run_with_iobinding(binding)

    invokes, runs = interleaved([interpreter.invoke, bound_run], rounds, min_time=0.02)
    return {
        "invoke_us": statistics.median(invokes) * 1e6,
        "bound_run_us": statistics.median(runs) * 1e6,
        "overhead_us": statistics.median(a - b for a, b in zip(invokes, runs, strict=True)) * 1e6,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=101)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    result = measure(arguments.rounds)
    for name, value in result.items():
        print(f"{name:14} {value:8.2f}")
    print("within" if result["overhead_us"] <= BAR_MICROSECONDS else "above", "the bar of 5 us")
    if arguments.json:
        write_text(arguments.json, json.dumps({**machine(), "result": result}, indent=2) + "\n")


if __name__ == "__main__":
    main()
