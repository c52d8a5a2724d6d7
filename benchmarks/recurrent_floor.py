"""What ONNX Runtime takes at least for recurrent layers, WHILE and IF, beside LiteRT.

    python -m benchmarks.recurrent_floor [--rounds N] [--json FILE]

For each case one thread's microseconds of LiteRT, of this library, and of a session that has only
the nodes that no graph of the case can be without: the floor. For float LSTMs that is the LSTM
node, and a GRU where states reach their clip; for one step of a hybrid LSTM the product of floats;
for integer ones a Scan of the product, its lookup in a table of gates, and that of tanh,
without any of the roundings; for SVDF the product, the joined state and its weighted sum; for WHILE
a Scan of the body; for IF an If of the branches. A run of any session takes 2 to 3 microseconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
from ai_edge_litert.interpreter import Interpreter as LiteRT
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from benchmarks.control_flow import branch, loop, small
from benchmarks.lowerings import svdf
from benchmarks.recurrent import Network
from tflite_ort import Interpreter
from tflite_ort.base.files import write_text
from tflite_ort.command.benchmark import interleaved, machine

Array = npt.NDArray[Any]
_UNITS, _STEPS, _ITERATIONS = (16, 20, 64), 30, 100
_FILTERS = ((64, 8), (32, 32))  # those of a keyword spotter, over so many steps
_PLACES = 4 * 65536
_GROWING = 3.0  # a bias that keeps gates open


@dataclass(frozen=True)
class Case:
    """A network, and the nodes that it cannot be without.

    Args:
        inputs: of the nodes, with their values.
        outputs: of the nodes.
    """

    name: str
    model: bytes
    nodes: Sequence[NodeProto]
    inputs: dict[str, Array]
    outputs: Sequence[str]
    constants: dict[str, Array]


def value(name: str, array: Array) -> ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, kind, array.shape)


def graph(
    nodes: Sequence[NodeProto],
    inputs: dict[str, Array],
    outputs: Sequence[str],
    constants: dict[str, Array],
) -> GraphProto:
    return helper.make_graph(
        nodes,
        "floor",
        [value(name, array) for name, array in inputs.items()],
        [ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )


def scan(
    nodes: Sequence[NodeProto],
    state: dict[str, Array],
    x: Array,
    results: Sequence[str],
    constants: dict[str, Array],
) -> NodeProto:
    """A Scan of `nodes`, which see a row of `x` as `slice` and the state as `NAME_in`."""
    inside = {f"{name}_in": array for name, array in state.items()} | {"slice": x[0]}
    body = graph(nodes, inside, results, constants)
    for output in body.output:
        output.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(x.dtype)
    finals = [f"{name}_final" for name in results]
    return helper.make_node("Scan", [*state, "x"], finals, body=body, num_scan_inputs=1)


def float_lstm(units: int, steps: int) -> Case:
    ones = np.full((1, 4 * units, units), 0.01, np.float32)
    state = np.zeros((1, 1, units), np.float32)
    names = ["x", "w", "r", "", "", "h", "c"]
    node = helper.make_node("LSTM", names, ["y", "yh", "yc"], hidden_size=units)
    inputs = {"x": np.ones((steps, 1, units), np.float32), "h": state, "c": state}
    model = Network("float", units, np.random.default_rng(0)).model(steps, layers=1)
    name = f"float LSTM of {units} units, {steps} steps"
    return Case(name, model, [node], inputs, ["y", "yh", "yc"], {"w": ones, "r": ones})


def clipped_lstm(units: int, steps: int) -> Case:
    """Biases that let the states grow to their clip: LSTM, the gates of all steps, and a GRU."""
    case = float_lstm(units, steps)
    network = Network("float", units, np.random.default_rng(0), mean_bias=_GROWING)
    gemm = helper.make_node("Gemm", ["read", "gates"], ["sums"])
    gru = helper.make_node(
        "GRU",
        ["added", "pass", "keep", "", "", "c"],
        ["states"],
        hidden_size=units,
        clip=10.0,
        activations=["Relu", "Affine"],
        activation_alpha=[1.0],
        activation_beta=[0.0],
    )
    constants = {
        "gates": np.full((2 * units, 3 * units), 0.01, np.float32),
        "pass": np.full((1, 3 * units, 2 * units), 0.01, np.float32),
        "keep": np.full((1, 3 * units, units), 0.01, np.float32),
    }
    added = np.ones((steps, 1, 2 * units), np.float32)
    inputs = {"read": added[:, 0], "added": added}
    return Case(
        f"{case.name}, at the clip of its state",
        network.model(steps, layers=1),
        [*case.nodes, gemm, gru],
        case.inputs | inputs,
        [*case.outputs, "sums", "states"],
        case.constants | constants,
    )


def hybrid_step(units: int) -> Case:
    """One step without a sequence: the product of the input and the last output."""
    node = helper.make_node("Gemm", ["read", "gates"], ["sums"])
    model = Network("hybrid", units, np.random.default_rng(0)).model(1, layers=1)
    gates = np.full((2 * units, 4 * units), 0.01, np.float32)
    inputs = {"read": np.ones((1, 2 * units), np.float32)}
    name = f"hybrid LSTM of {units} units, one step"
    return Case(name, model, [node], inputs, ["sums"], {"gates": gates})


def integer_lstm(units: int, steps: int) -> Case:
    node = helper.make_node
    nodes = [
        node("Gemm", ["h_in", "r", "slice"], ["sums"]),
        node("Cast", ["sums"], ["places"], to=TensorProto.INT32),
        node("Gather", ["gates", "places"], ["opened"]),
        node("Split", ["opened"], ["i", "f", "u", "o"], axis=1, num_outputs=4),
        node("Mul", ["f", "c_in"], ["c_out"]),
        node("Cast", ["c_out"], ["place"], to=TensorProto.INT32),
        node("Gather", ["tanh", "place"], ["h_out"]),
        node("Mul", ["o", "h_out"], ["y"]),
    ]
    zeros = np.zeros((1, units))
    state = {"h": zeros, "c": zeros}
    constants = {
        "r": np.zeros((units, 4 * units)),
        "gates": np.zeros(_PLACES),
        "tanh": np.zeros(_PLACES),
    }
    x = np.zeros((steps, 1, 4 * units))
    made = scan(nodes, state, x, ["h_out", "c_out", "y"], constants)
    model = Network("integer", units, np.random.default_rng(0)).model(steps, layers=1)
    name = f"integer LSTM of {units} units, {steps} steps"
    return Case(name, model, [made], state | {"x": x}, list(made.output), {})


def state_of_svdf(filters: int, memory: int) -> Case:
    node = helper.make_node
    nodes = [
        node("Cast", ["x"], ["wide"], to=TensorProto.DOUBLE),
        node("Gemm", ["wide", "feature"], ["newest"]),
        node("Concat", ["kept", "newest"], ["after"], axis=0),
        node("Mul", ["after", "time"], ["steps"]),
        node("Gemm", ["ones", "steps"], ["y"]),
    ]
    inputs = {"x": np.zeros((1, 16), np.int8), "kept": np.zeros((memory - 1, filters))}
    constants = {
        "feature": np.zeros((16, filters)),
        "time": np.zeros((memory, filters)),
        "ones": np.ones((1, memory)),
    }
    model = svdf(np.random.default_rng(0), 16, filters, memory)
    name = f"SVDF of {filters} filters over {memory} steps"
    return Case(name, model, nodes, inputs, ["after", "y"], constants)


def while_() -> Case:
    node = helper.make_node
    nodes = [
        node("Tanh", ["s_in"], ["a"]),
        node("Mul", ["a", "k"], ["b"]),
        node("Add", ["b", "l"], ["s_out"]),
    ]
    x, state = np.zeros((_ITERATIONS, 1), np.float32), {"s": np.zeros((4, 8), np.float32)}
    constants = {"k": np.array(0.9, np.float32), "l": np.array(0.1, np.float32)}
    made = scan(nodes, state, x, ["s_out"], constants)
    model = loop(small, (4, 8), (1,), _ITERATIONS)
    name = f"WHILE of 3 operators, {_ITERATIONS} times"
    return Case(name, model, [made], state | {"x": x}, list(made.output), {})


def if_() -> Case:
    node, one, two = helper.make_node, np.array(1, np.float32), np.array(2, np.float32)
    then = graph(
        [node("Tanh", ["x"], ["a"]), node("Add", ["a", "k"], ["t"])], {}, ["t"], {"k": one}
    )
    other = graph([node("Mul", ["x", "l"], ["e"])], {}, ["e"], {"l": two})
    made = node("If", ["flag"], ["y"], then_branch=then, else_branch=other)
    inputs = {"flag": np.array(True), "x": np.zeros((4, 8), np.float32)}
    return Case("IF of two operators or one", branch(), [made], inputs, ["y"], {})


def cases() -> Iterator[Case]:
    for lstm in (float_lstm, integer_lstm):
        yield from (lstm(units, _STEPS) for units in _UNITS)
    yield clipped_lstm(20, _STEPS)
    yield hybrid_step(128)
    for filters, memory in _FILTERS:
        yield state_of_svdf(filters, memory)
    yield while_()
    yield if_()


def bound(case: Case) -> Callable[[], None]:
    """One run of the floor's session."""
    made = graph(case.nodes, case.inputs, case.outputs, case.constants)
    opsets = [helper.make_opsetid("", 21)]
    model = helper.make_model(made, opset_imports=opsets, ir_version=10)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    binding = session.io_binding()
    for name, array in case.inputs.items():
        binding.bind_cpu_input(name, array)
    for name in case.outputs:
        binding.bind_output(name, "cpu")

    def run() -> None:
        session.run_with_iobinding(binding)

    return run


def measure(case: Case, rounds: int) -> dict[str, Any]:
    runtimes = [
        LiteRT(model_content=case.model, num_threads=1),
        Interpreter(model_content=case.model, num_threads=1),
    ]
    for runtime in runtimes:
        runtime.allocate_tensors()
    runs = [*(runtime.invoke for runtime in runtimes), bound(case)]
    times = interleaved(runs, rounds, min_time=0.01)
    names = ("litert_us", "ours_us", "floor_us")
    medians = (round(statistics.median(seconds) * 1e6, 1) for seconds in times)
    return {"name": case.name, **dict(zip(names, medians, strict=True))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = []
    print("| case | LiteRT | here | floor |\n|---|---|---|---|")
    for case in cases():
        row = measure(case, arguments.rounds)
        print("| {name} | {litert_us} | {ours_us} | {floor_us} |".format(**row))
        rows.append(row)
    if arguments.json:
        write_text(arguments.json, json.dumps({**machine(), "results": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
