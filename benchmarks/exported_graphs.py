"""Exported files in plain ONNX Runtime beside `Interpreter`: their graphs, and the time of a run.

    python -m benchmarks.exported_graphs [NETWORK...] [--for NAME] [--turns N]

NETWORK is a part of a name; by default all of `benchmarks.consumers` run. `--for default` is a file
that is made for no destination. A run gives all inputs and takes all outputs. Both run in one
process, with one thread, in short turns one after the other; the shortest turn of each counts.
`--turns 0` times nothing.

"equal": ONNX Runtime optimizes both to the same graph, node for node with the same constants. What
changes codes at the inputs and outputs, and shapes, does not count: `Interpreter` does that outside
of the graph, and an export joins reshapes. Otherwise nodes that one of them has are listed, the
interpreter's first.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Set
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime

from benchmarks.consumers import WHOLE
from benchmarks.how_close import MODELS
from tests.optimised import optimised_graphs, try_processor
from tflite_ort import BridgeError, Interpreter, export_onnx
from tflite_ort.comparison.drawn import random_inputs
from tflite_ort.comparison.index_limits import index_limits
from tflite_ort.providers.exported_state import first_state
from tflite_ort.schema import TensorType, read_model
from tflite_ort.schema.file.model import stored_data

Array = npt.NDArray[Any]
# A node is its operator and a digest of all that leads to it.
Nodes = Counter[tuple[str, str]]

DEFAULT = "default"
_TURN_SECONDS = 0.02
_AT_BOUNDARY = frozenset({"DequantizeLinear", "Identity", "QuantizeLinear", "Reshape"})
_RESHAPES = frozenset({"Reshape", "Squeeze", "Unsqueeze"})


# Graphs ------------------------------------------------------------------------------------------


def nodes_of(graph: onnx.GraphProto) -> Nodes:
    """The nodes of a graph by all that leads to them, without those that change codes or shapes at
    its inputs and outputs."""
    makers = {name: node for node in graph.node for name in node.output}
    at_end, ends = set[str](), list[str]()
    for output in graph.output:
        name = output.name
        while (node := makers.get(name)) is not None and node.op_type in _AT_BOUNDARY:
            at_end.add(name)
            name = node.input[0]
        ends.append(name)
    found, known = _nodes(graph, {}, at_end)
    found.update(("output", known[name]) for name in ends)
    return found


def _nodes(
    graph: onnx.GraphProto, outer: Mapping[str, str], at_end: Set[str] = frozenset()
) -> tuple[Nodes, dict[str, str]]:
    """
    Returns:
        the nodes, but for those at the boundary of a whole graph, and digests of all values.
    """
    known, found = dict(outer), Nodes()
    for each in graph.initializer:
        array = onnx.numpy_helper.to_array(each)
        known[each.name] = _digest(each.data_type, array.shape, _sum(array.tobytes()))
    for place, each in enumerate(graph.input):
        sizes = [size.dim_value or 1 for size in each.type.tensor_type.shape.dim]
        known[each.name] = f"argument {place}" if outer else f"input of {prod(sizes)} elements"
    inputs = {known[each.name] for each in graph.input}
    for node in graph.node:
        given = [known.get(name, "") for name in node.input]
        if not outer and node.op_type in _AT_BOUNDARY and given[0] in inputs:
            known[node.output[0]] = given[0]
            continue
        if node.op_type in _RESHAPES:  # an export joins those in a row
            known[node.output[0]] = given[0]
            continue
        attributes = sorted((each.name, _attribute(each, known)) for each in node.attribute)
        digest = _digest(node.domain, node.op_type, attributes, given)
        known |= {name: f"{digest} {place}" for place, name in enumerate(node.output) if name}
        if at_end.isdisjoint(node.output):
            found[node.op_type, digest] += 1
    return found, known


def _attribute(attribute: onnx.AttributeProto, known: Mapping[str, str]) -> str:
    if attribute.type != onnx.AttributeProto.GRAPH:
        return repr(onnx.helper.get_attribute_value(attribute))
    nodes, values = _nodes(attribute.g, known or {"": ""})
    return _digest(sorted(nodes.elements()), [values[each.name] for each in attribute.g.output])


def _digest(*parts: object) -> str:
    return _sum(repr(parts).encode())


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


# Networks ----------------------------------------------------------------------------------------


def compared(model: Path, destination: str, turns: int) -> dict[str, Any]:
    """The two graphs of a network, and the times where there are turns."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        proto = export_onnx(model, for_=None if destination == DEFAULT else destination)
        options = plain_options()
        options.optimized_model_filepath = f"{folder}/file.onnx"
        exported = onnxruntime.InferenceSession(proto.SerializeToString(), options)
        file = nodes_of(onnx.load(options.optimized_model_filepath).graph)
        graphs = optimised_graphs(model, num_threads=1)
        ours = sum((nodes_of(each.graph) for each in graphs), Nodes())
        row: dict[str, Any] = {"sessions": len(graphs), "nodes": sum(file.values())}
        row |= {"ours": _kinds(ours - file), "file": _kinds(file - ours)}
        if turns:
            row["codes"] = has_codes(model)
            with Interpreter(model, num_threads=1) as interpreter:
                interpreter.allocate_tensors()
                row["times"] = timed(interpreter, exported, proto, model, turns)
    return row


def plain_options() -> onnxruntime.SessionOptions:
    """ONNX Runtime's own, with one thread."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    return options


def has_codes(model: Path) -> bool:
    """Whether activations are quantized: a tensor of 8 or 16 bits that is no constant."""
    read = read_model(model)
    return any(
        tensor.type in (TensorType.INT8, TensorType.UINT8, TensorType.INT16)
        and tensor.quantization is not None
        and stored_data(read, tensor) is None
        for graph in read.subgraphs
        for tensor in graph.tensors
    )


def _kinds(nodes: Nodes) -> dict[str, int]:
    """By operator, how many nodes there are."""
    kinds = Counter[str]()
    for (kind, _), count in nodes.items():
        kinds[kind] += count
    return dict(kinds)


def timed(
    interpreter: Interpreter,
    exported: onnxruntime.InferenceSession,
    proto: onnx.ModelProto,
    model: Path,
    turns: int,
) -> tuple[float, float]:
    """Seconds of a run: of the interpreter, and of the file."""
    details, results = interpreter.get_input_details(), interpreter.get_output_details()
    drawn = random_inputs(details, 0, limits=index_limits(read_model(model)))
    arrays = [(int(each["index"]), drawn[int(each["index"])]) for each in details]
    names = [each.name for each in exported.get_inputs()]
    feeds = {**first_state(proto), **dict(zip(names, (a for _, a in arrays), strict=False))}
    wanted = [int(each["index"]) for each in results]

    def ours() -> None:
        for index, array in arrays:
            interpreter.set_tensor(index, array)
        interpreter.invoke()
        for index in wanted:
            interpreter.get_tensor(index)

    def file() -> None:
        exported.run(None, feeds)

    best = [float("inf"), float("inf")]
    for run in (ours, file):
        run()
    for turn in range(2 * turns):
        best[turn % 2] = min(best[turn % 2], _per_run((ours, file)[turn % 2]))
    return best[0], best[1]


def _per_run(run: Callable[[], None]) -> float:
    """The shortest run of a turn."""
    best, end = float("inf"), time.perf_counter() + _TURN_SECONDS
    while True:
        started = time.perf_counter()
        run()
        now = time.perf_counter()
        best = min(best, now - started)
        if now > end:
            return best


def _row(given: tuple[str, str, int]) -> tuple[str, dict[str, Any]]:
    network, destination, turns = given
    try:
        return network, compared(MODELS / f"{network}.tflite", destination, turns)
    except BridgeError as error:
        return network, {"refused": str(error).splitlines()[0]}


def _line(network: str, row: Mapping[str, Any]) -> str:
    if "refused" in row:
        return f"{network:60} refused: {row['refused'][:100]}"
    ours, file = row.get("times", (0.0, 0.0))
    ratio = f"{file / ours:6.2f} {ours * 1e6:9.0f} us" if ours else ""
    same = "equal" if is_equal(row) else f"{row['sessions']} sessions {row['ours']} | {row['file']}"
    return f"{network:60} {ratio} {row['nodes']:5} nodes, {same}"


def is_equal(row: Mapping[str, Any]) -> bool:
    """Whether both graphs are the same."""
    return row["sessions"] == 1 and not (row["ours"] or row["file"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*")
    parser.add_argument("--for", dest="destination", default="onnxruntime")
    parser.add_argument("--turns", type=int, default=15)
    given = parser.parse_args()
    chosen = [n for n in WHOLE if not given.networks or any(each in n for each in given.networks)]
    try_processor()
    rows = dict[str, dict[str, Any]]()
    context = multiprocessing.get_context("fork")
    with context.Pool(1, maxtasksperchild=1) as pool:
        tasks = [(network, given.destination, given.turns) for network in chosen]
        for network, row in pool.imap(_row, tasks):
            rows[network] = row
            print(_line(network, row), flush=True)
    written = [row for row in rows.values() if "refused" not in row]
    single = sum(row["sessions"] == 1 for row in written)
    equal = sum(map(is_equal, written))
    print(f"{equal} equal of {single} networks that are one session, of {len(written)}")
    for name, codes in (("floats", False), ("quantized", True)):
        times = [row["times"] for row in written if "times" in row and row["codes"] is codes]
        if times:
            mean = np.exp(np.mean([np.log(file / ours) for ours, file in times]))
            print(f"{name}: the file takes {mean:.2f} of the interpreter's time ({len(times)})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
