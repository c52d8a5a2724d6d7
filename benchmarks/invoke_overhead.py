"""What a call takes beside ONNX Runtime's own bound run and beside LiteRT's, in microseconds.

    python benchmarks/invoke_overhead.py [--rounds N] [--json FILE]

All run the same graph of one ADD on one thread and take turns. First: what `Interpreter.invoke`
adds to a bound run, with a bar of 5 microseconds. Then come the calls of a program beside those of
LiteRT: of an interpreter, of a signature runner and of a CompiledModel.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ai_edge_litert.compiled_model
import ai_edge_litert.interpreter
import numpy as np
import onnxruntime

from tflite_ort import Interpreter, export_onnx
from tflite_ort.base.files import write_text
from tflite_ort.command.benchmark import interleaved, machine
from tflite_ort.compiled_model import CompiledModel
from tflite_ort.schema import AddOptions, ModelBuilder, Op

BAR_MICROSECONDS = 5.0


def one_add(shape: tuple[int, ...] = (1, 16)) -> bytes:
    """A model of one float ADD of two inputs."""
    builder = ModelBuilder()
    graph = builder.subgraph("main")
    for name in ("a", "b", "sum"):
        graph.tensor(name, shape)
    graph.operator(Op.ADD, ["a", "b"], ["sum"], AddOptions()).inputs("a", "b").outputs("sum")
    graph.signature("add", {"a": "a", "b": "b"}, {"sum": "sum"})
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


Calls = dict[str, Callable[[], Any]]


def interpreter_calls(kind: Callable[..., Any], model: bytes) -> Calls:
    """What a program calls of an interpreter, and all that one answer takes."""
    interpreter, other = (kind(model_content=model, num_threads=1) for _ in range(2))
    interpreter.allocate_tensors()
    first, second = (each["index"] for each in interpreter.get_input_details())
    (result,) = (each["index"] for each in interpreter.get_output_details())
    array = np.ones((1, 16), np.float32)

    def answer() -> Any:
        interpreter.set_tensor(first, array)
        interpreter.set_tensor(second, array)
        interpreter.invoke()
        return interpreter.get_tensor(result)

    runner = other.get_signature_runner()  # LiteRT's interpreter may not be used beside it
    return {
        "set_tensor": lambda: interpreter.set_tensor(first, array),
        "invoke": interpreter.invoke,
        "get_tensor": lambda: interpreter.get_tensor(result),
        "all four calls": answer,
        "signature runner": lambda: runner(a=array, b=array),
    }


def compiled_calls(model: Any) -> Calls:
    """What a program calls of a compiled model."""
    inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)
    array = np.ones(16, np.float32)

    def answer() -> Any:
        for each in inputs:
            each.write(array)
        model.run_by_index(0, inputs, outputs)
        return outputs[0].read(16, np.float32)

    return {
        "run_by_index": lambda: model.run_by_index(0, inputs, outputs),
        "write, run, read": answer,
    }


def measure_calls(rounds: int) -> dict[str, dict[str, float]]:
    """By call, the median microseconds of LiteRT and of this library."""
    model = one_add()
    litert = interpreter_calls(ai_edge_litert.interpreter.Interpreter, model)
    litert |= compiled_calls(ai_edge_litert.compiled_model.CompiledModel.from_buffer(model))
    ours = interpreter_calls(Interpreter, model)
    ours |= compiled_calls(CompiledModel.from_buffer(model))
    found = {}
    for name, call in ours.items():
        times = interleaved([litert[name], call], rounds, min_time=0.01)
        of_litert, of_ours = (statistics.median(each) * 1e6 for each in times)
        found[name] = {"litert_us": of_litert, "ours_us": of_ours}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=101)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    result = measure(arguments.rounds)
    for name, value in result.items():
        print(f"{name:14} {value:8.2f}")
    print("within" if result["overhead_us"] <= BAR_MICROSECONDS else "above", "the bar of 5 us")
    calls = measure_calls(arguments.rounds)
    print(f"{'call':18} {'LiteRT':>8} {'ours':>8}")
    for name, times in calls.items():
        print(f"{name:18} {times['litert_us']:8.2f} {times['ours_us']:8.2f}")
    if arguments.json:
        record = {**machine(), "result": result, "calls": calls}
        write_text(arguments.json, json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
