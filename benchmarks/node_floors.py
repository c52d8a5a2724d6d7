"""The least time of small transformers: each node that ONNX Runtime runs, beside LiteRT.

    python -m benchmarks.node_floors [--models FOLDER] [--rounds 40] [NAME...]

Models: $TFLITE_ORT_MODELS2, else ../shared/models2; those with rounded activations, or those named.
Microseconds, one thread. `rows` is the sum over FULLY_CONNECTED, each layer by the fastest kernel,
see `benchmarks.product_floors`. `others` is the sum over all other nodes of the graph as ONNX
Runtime has optimised it: attention, norms, sums, tables. Each is timed as one of many copies, so
calls are in none of these sums. `bound` is LiteRT / (rows + others).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from ai_edge_litert.interpreter import Interpreter as LiteRT
from onnx import helper, numpy_helper

from benchmarks.kept_caches import FOLDER, timed
from benchmarks.product_floors import sums_of
from benchmarks.transformers import drawn
from tflite_ort import Interpreter
from tflite_ort.providers.settings import Settings

Array = npt.NDArray[Any]

COPIES = 12
# Nodes that multiply rows and weights; those that round the rows are named after the operator.
PRODUCTS = {
    "DynamicQuantizeMatMul",
    "FusedGemm",
    "Gemm",
    "MatMulIntegerToFloat",
    "MatMulNBits",
}


def graphs_of(path: Path, key: str, inputs: Mapping[str, Array]) -> list[onnx.ModelProto]:
    """The graphs that ONNX Runtime runs at a call, as it has optimised them."""

    def call() -> None:
        Interpreter(path, cache=False).get_signature_runner(key)(**inputs)

    # Others try the processor.
    return [model for model in optimized_graphs(call) if len(model.graph.node) > 1]


def optimized_graphs(make: Callable[[], object]) -> list[onnx.ModelProto]:
    """The graphs of the sessions that `make` makes, as ONNX Runtime has optimized them."""
    plain = onnxruntime.SessionOptions
    with TemporaryDirectory() as folder:

        def kept() -> onnxruntime.SessionOptions:
            options, made = plain(), len(list(Path(folder).iterdir()))
            options.optimized_model_filepath = str(Path(folder) / f"{made}.onnx")
            return options

        own = patch.object(Settings, "shared_options", Settings.options)
        with patch.object(onnxruntime, "SessionOptions", kept), own:
            make()
        return [onnx.load(file) for file in sorted(Path(folder).iterdir())]


def options() -> onnxruntime.SessionOptions:
    """One thread, and nodes as they are."""
    found = onnxruntime.SessionOptions()
    found.intra_op_num_threads, found.log_severity_level = 1, 3
    found.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return found


def values_of(model: onnx.ModelProto) -> dict[str, Array]:
    """Every value of a graph, with ones and zeros as its inputs."""
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    present = {each.name for each in whole.graph.output}
    made = [name for node in whole.graph.node for name in node.output if name]
    names = [name for name in made if name not in present]
    whole.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    session = onnxruntime.InferenceSession(whole.SerializeToString(), options())
    feeds = {}
    for each in model.graph.input:
        type_ = each.type.tensor_type
        shape = [size.dim_value for size in type_.shape.dim]
        feeds[each.name] = np.zeros(shape, helper.tensor_dtype_to_np_dtype(type_.elem_type))
    outputs = [each.name for each in session.get_outputs()]
    return feeds | dict(zip(outputs, session.run(outputs, feeds), strict=True))


def time_of_node(
    node: onnx.NodeProto,
    model: onnx.ModelProto,
    values: Mapping[str, Array],
    constants: Mapping[str, Array],
    rounds: int,
) -> float:
    """The microseconds of a node, as one of many copies that have operands of their own."""
    copies, inputs, initializers, outputs = [], {}, [], []
    for number in range(COPIES):
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.name = ""
        for place, name in enumerate(node.input):
            copy.input[place] = f"{name}_{number}" if name else ""
            if name in constants:
                constant = numpy_helper.from_array(constants[name], copy.input[place])
                initializers.append(constant)
            elif name:
                inputs[copy.input[place]] = values[name].copy()
        for place, name in enumerate(node.output):
            copy.output[place] = f"{name}_{number}" if name else ""
        outputs += [name for name in copy.output if name]
        copies.append(copy)
    graph = helper.make_graph(
        copies,
        "copies",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for name, x in inputs.items()
        ],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        {each.name: each for each in initializers}.values(),
    )
    whole = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    session = onnxruntime.InferenceSession(whole.SerializeToString(), options())
    binding = session.io_binding()
    for name, array in inputs.items():
        binding.bind_cpu_input(name, array)
    for name in outputs:
        binding.bind_output(name)
    run = partial(session.run_with_iobinding, binding)
    return timed({"run": run}, rounds)["run"] / COPIES


def times_of_nodes(
    path: Path, key: str, inputs: Mapping[str, Array], rounds: int
) -> Iterator[tuple[onnx.NodeProto, float]]:
    """Each node of a signature's graphs and its microseconds; equal ones are timed once."""
    known: dict[Any, float] = {}
    for model in graphs_of(path, key, inputs):
        constants = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
        values = values_of(model)
        for node in model.graph.node:
            operands = (constants.get(name, values.get(name)) for name in node.input)
            shapes = tuple(None if x is None else x.shape for x in operands)
            kind = (node.op_type, str(node.attribute), shapes)
            if kind not in known:
                known[kind] = time_of_node(node, model, values, constants, rounds)
            yield node, known[kind]


def line(path: Path, entry: Mapping[str, Any], key: str, rounds: int) -> str:
    """What is said of a signature."""
    given = drawn(entry, key)
    # Before an interpreter is there that has a session of this graph.
    nodes = list(times_of_nodes(path, key, given, rounds))
    others = sum(
        us
        for node, us in nodes
        if node.op_type not in PRODUCTS and "FULLY_CONNECTED" not in node.name
    )
    runners = [each(model_path=str(path), num_threads=1) for each in (LiteRT, Interpreter)]
    theirs, ours = (partial(each.get_signature_runner(key), **given) for each in runners)
    times = timed({"LiteRT": theirs, "ours": ours}, rounds)
    rows = sums_of(path, key, rounds)["rows"]
    bound = times["LiteRT"] / (rows + others)
    figures = f"{times['LiteRT']:.0f} | {times['ours']:.0f} | {len(nodes)} | {rows:.0f}"
    return f"| {entry['name']} | {key} | {figures} | {others:.0f} | {bound:.2f} |"


def main() -> None:
    """Print a line for each signature."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--models", type=Path, default=FOLDER)
    parser.add_argument("--rounds", type=int, default=40)
    arguments = parser.parse_args()
    print("| network | signature | LiteRT | ours | nodes | rows | others | bound |")
    print("| --- " * 8 + "|")
    for entry in json.loads((arguments.models / "index.json").read_text())["models"]:
        if arguments.names:
            wanted = any(name in entry["name"] for name in arguments.names)
        else:
            wanted = bool(entry.get("hybrid"))
        for key in entry["signatures"] if wanted else ():
            path = arguments.models / entry["file"]
            print(line(path, entry, key, arguments.rounds), flush=True)


if __name__ == "__main__":
    main()
