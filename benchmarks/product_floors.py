"""The least time of transformers in ONNX Runtime: products and attention alone, beside LiteRT.

    python -m benchmarks.product_floors [--models FOLDER] [--rounds 40] [--decode] [NAME...]

Models: $TFLITE_ORT_MODELS2, else ../shared/models2. Microseconds, one thread. Of each signature:
LiteRT, ours, and the sums over its layers of what ONNX Runtime's kernels take, each layer by the
fastest one: FULLY_CONNECTED as Gemm, or in 8 bits with a scale for each row (`rows`); the same, or
in 8 bits with one scale for all rows, which is less exact than LiteRT (`tensor`); products of two
computed tensors, SOFTMAX and GELU (`rest`). A kernel is timed as one of many nodes of a graph, so
calls and copies are in none of these sums, and norms, sums and tables are not either. `bound` is
LiteRT / (rows + rest): no network of these nodes can be faster beside LiteRT.

With `--decode`, of decode signatures with caches: the same sums with 17 tokens in the caches and
with as many as fit but for 31, each product over as many rows of a cache as there are tokens.
`least` is the first sum as a part of the second: the ratio of a network whose other nodes take no
time.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
from ai_edge_litert.interpreter import Interpreter as LiteRT
from onnx import TensorProto, helper, numpy_helper

from benchmarks.kept_caches import FEW, FOLDER, FREE, timed
from benchmarks.transformers import drawn
from tflite_ort import Interpreter, WellKnownOpResolver
from tflite_ort.opmap.rules.operators.matching import Producers
from tflite_ort.opmap.rules.operators.unread_rows import without_unread_rows
from tflite_ort.providers.trials import exact_weight_type
from tflite_ort.schema import Op, OperatorView, read_model
from tflite_ort.schema.values.inlining import flat
from tflite_ort.specialize.specialization import specialize

Array = npt.NDArray[Any]
Nodes = list[Any]

COPIES = 12
_MICROSOFT = "com.microsoft"


class Copies:
    """A graph of equal layers, each with inputs and weights of its own."""

    def __init__(self) -> None:
        self.nodes: Nodes = []
        self.constants: dict[str, Array] = {}
        self.inputs: dict[str, Array] = {}
        self.outputs: list[str] = []
        self._rng = np.random.default_rng(0)

    def op(self, kind: str, *inputs: str, outputs: int = 1, domain: str = "", **given: Any) -> str:
        """Add a node: its first result."""
        names = [f"v{len(self.nodes)}_{number}" for number in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, domain=domain, **given))
        return names[0]

    def input(self, *shape: int) -> str:
        """A new input of normal numbers."""
        name = f"x{len(self.inputs)}"
        self.inputs[name] = self._rng.standard_normal(shape).astype(np.float32)
        return name

    def constant(self, array: Any) -> str:
        """A new constant."""
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name

    def weights(self, depth: int, units: int) -> tuple[str, str, str]:
        """New codes [depth, units] of the type that this CPU multiplies exactly, a scale for each
        unit, and the zero point; no name for 0."""
        codes = self._rng.integers(-127, 128, (depth, units)).astype(np.int8)
        scale = self.constant(np.full(units, 0.01, np.float32))
        if exact_weight_type() == "int8":
            return self.constant(codes), scale, ""
        moved = codes.view(np.uint8) ^ np.uint8(128)
        return self.constant(moved), scale, self.constant(np.uint8(128))

    def time(self, rounds: int) -> float:
        """The microseconds of one copy."""
        return timed({"run": self.run()}, rounds)["run"] / COPIES

    def run(self) -> Callable[[], object]:
        """A run of the graph."""
        graph = helper.make_graph(
            self.nodes,
            "copies",
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, x.shape) for n, x in self._in()],
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in self.outputs],
            [numpy_helper.from_array(each, name) for name, each in self.constants.items()],
        )
        sets = [helper.make_opsetid("", 21), helper.make_opsetid(_MICROSOFT, 1)]
        model = helper.make_model(graph, opset_imports=sets, ir_version=10)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 3
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        binding = session.io_binding()
        for name, array in self._in():
            binding.bind_cpu_input(name, array)
        for name in self.outputs:
            binding.bind_output(name)
        return partial(session.run_with_iobinding, binding)

    def _in(self) -> Sequence[tuple[str, Array]]:
        return list(self.inputs.items())


def gemm(g: Copies, rows: int, depth: int, units: int) -> str:
    """A product of floats."""
    weights = g.constant(np.full((units, depth), 0.1, np.float32))
    return g.op("Gemm", g.input(rows, depth), weights, transB=1)


def by_rows(g: Copies, rows: int, depth: int, units: int) -> str:
    """In 8 bits with a scale for each row."""
    rounded, steps = rounded_rows(g, rows, depth)
    return weighted(g, rounded, steps, depth, units)


def rounded_rows(g: Copies, rows: int, depth: int) -> tuple[str, str]:
    """Codes of new rows, and their steps."""
    x = g.input(rows, depth)
    largest = g.op("ReduceMax", g.op("Abs", x), g.constant(np.array([1])), keepdims=1)
    steps = g.op("Mul", largest, g.constant(np.float32(1 / 127)))
    zeros = g.constant(np.full((rows, 1), 128, np.uint8))
    return g.op("QuantizeLinear", x, steps, zeros, axis=1, block_size=depth), steps


def weighted(g: Copies, rounded: str, steps: str, depth: int, units: int) -> str:
    """The product of rounded rows and new weights."""
    codes, scale, middle = g.weights(depth, units)
    one, zero = g.constant(np.float32(1)), g.constant(np.uint8(128))
    operands = rounded, codes, one, scale, zero, middle
    y = g.op("MatMulIntegerToFloat", *operands, domain=_MICROSOFT)
    return g.op("Mul", y, steps)


def by_tensor(g: Copies, rows: int, depth: int, units: int) -> str:
    """In 8 bits with one scale for all rows."""
    x, (codes, scale, middle) = g.input(rows, depth), g.weights(depth, units)
    return g.op("DynamicQuantizeMatMul", x, codes, scale, middle, domain=_MICROSOFT)


def matmul(g: Copies, left: tuple[int, ...], right: tuple[int, ...]) -> str:
    """A product of two computed tensors."""
    return g.op("MatMul", g.input(*left), g.input(*right))


def single(kind: str, domain: str, g: Copies, shape: tuple[int, ...]) -> str:
    """An operator on one tensor."""
    return g.op(kind, g.input(*shape), domain=domain)


def by_runs(g: Copies, rows: int, depth: int, units: int) -> str:
    """In 8 bits with a scale for each run of 32 numbers or more of a row."""
    run = next((run for run in (128, 64, 32) if depth % run == 0), None)
    if run is None:
        return by_tensor(g, rows, depth, units)
    x, rng = g.input(rows, depth), np.random.default_rng(0)
    codes = rng.integers(0, 256, (units, depth // run, run)).astype(np.uint8)
    scales = np.full((units, depth // run), 0.01, np.float32)
    form = {"K": depth, "N": units, "bits": 8, "block_size": run, "accuracy_level": 4}
    operands = x, g.constant(codes), g.constant(scales)
    return g.op("MatMulNBits", *operands, domain=_MICROSOFT, **form)


PRODUCTS = {"gemm": gemm, "rows": by_rows, "tensor": by_tensor, "runs": by_runs}
SINGLE = {Op.SOFTMAX: ("Softmax", ""), Op.GELU: ("Gelu", _MICROSOFT)}


@cache
def time_of(layer: str, rounds: int, *sizes: Any) -> float:
    """The microseconds of a layer of these sizes by one kernel."""
    g = Copies()
    for _ in range(COPIES):
        if layer in PRODUCTS:
            g.outputs.append(PRODUCTS[layer](g, *sizes))
        elif layer == "matmul":
            g.outputs.append(matmul(g, *sizes))
        else:
            g.outputs.append(single(*SINGLE[Op[layer]], g, *sizes))
    return g.time(rounds)


def parts_of(
    op: OperatorView[Any], rounds: int, sizes_of: Mapping[int, int] | None = None
) -> dict[str, float]:
    """What an operator adds to each sum.

    Args:
        sizes_of: other sizes in place of some, in products of two tensors and in SOFTMAX.
    """
    other = dict(sizes_of or {})
    if op.op is Op.FULLY_CONNECTED and not op["input"].is_quantized:
        units, depth = op["filter"].shape
        sizes = math.prod(op["input"].shape) // depth, depth, units
        times = {kind: time_of(kind, rounds, *sizes) for kind in PRODUCTS}
        rounded = times["rows"] if sizes[0] > 1 else min(times["tensor"], times["runs"])
        exact = min(times["gemm"], rounded)
        return {"rows": exact, "tensor": min(exact, times["tensor"])}
    if op.op is Op.BATCH_MATMUL:
        factors = (_turned(op, name, adjoint) for name, adjoint in _factors(op))
        left, right = (tuple(other.get(size, size) for size in shape) for shape in factors)
        return {"rest": time_of("matmul", rounds, left, right)}
    if op.op in SINGLE:
        shape = tuple(other.get(size, size) for size in op["input"].shape)
        return {"rest": time_of(op.op.name, rounds, shape)}
    return {}


def _factors(op: OperatorView[Any]) -> Sequence[tuple[str, bool]]:
    return (("x", op.options.adj_x), ("y", op.options.adj_y))


def _turned(op: OperatorView[Any], name: str, adjoint: bool) -> tuple[int, ...]:
    shape = tuple(op[name].shape)
    return (*shape[:-2], shape[-1], shape[-2]) if adjoint else shape


def sums_of(
    path: Path, key: str, rounds: int, sizes_of: Mapping[int, int] | None = None
) -> dict[str, float]:
    """The sums over the layers of a signature; `sizes_of` as of `parts_of`."""
    model, resolver = flat(read_model(path)), WellKnownOpResolver()
    (found,) = (each for each in model.signature_defs if each.signature_key == key)
    sums = dict.fromkeys(("rows", "tensor", "rest"), 0.0)
    graph = specialize(model, found.subgraph_index, {}, resolver.kernels)
    results = [graph.tensors[index] for index in graph.outputs]
    # Rows that nothing reads are in no sum.
    kept = without_unread_rows(Producers(graph.operators, results), resolver.translators)
    for op in kept.operators:
        entry = resolver.translators.of(op)
        bound = op if entry is None else entry.inputs.bind(op)
        for name, us in parts_of(bound, rounds, sizes_of).items():
            sums[name] += us
    return sums


def lines(path: Path, entry: Mapping[str, Any], rounds: int) -> Iterator[str]:
    """A line for each signature."""
    for key in entry["signatures"]:
        given = drawn(entry, key)
        runners = [each(model_path=str(path), num_threads=1) for each in (LiteRT, Interpreter)]
        theirs, ours = (partial(each.get_signature_runner(key), **given) for each in runners)
        times = timed({"LiteRT": theirs, "ours": ours}, rounds) | sums_of(path, key, rounds)
        said = ", ".join(f"{name} {us:.0f}" for name, us in times.items())
        bound = times["LiteRT"] / (times["rows"] + times["rest"])
        yield f"{entry['name']:32} {key:16} {said}, bound {bound:.2f}"


def decode_lines(path: Path, entry: Mapping[str, Any], rounds: int) -> Iterator[str]:
    """A line for a decode signature with caches."""
    inputs = entry["signatures"].get("decode", {"inputs": {}})["inputs"]
    capacity = max(
        (size for name in inputs if "cache" in name for size in inputs[name][0]), default=0
    )
    if capacity <= FREE + FEW:
        return
    sums = {}
    for tokens in (FEW + 1, capacity - FREE + 1):
        parts = sums_of(path, "decode", rounds, {capacity: tokens})
        sums[tokens] = parts["rows"] + parts["rest"]
        products = parts["rows"]
    said = ", ".join(f"{tokens} tokens {us:.0f}" for tokens, us in sums.items())
    few, many = sums.values()
    yield f"{entry['name']:32} products with weights {products:.0f}, {said}, least {few / many:.2f}"


def main() -> None:
    """Print a line for each signature of networks with rounded activations, or of those named."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--models", type=Path, default=FOLDER)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--decode", action="store_true")
    arguments = parser.parse_args()
    for entry in json.loads((arguments.models / "index.json").read_text())["models"]:
        if arguments.names:
            wanted = any(name in entry["name"] for name in arguments.names)
        else:
            wanted = bool(entry.get("hybrid"))
        if wanted:
            said = decode_lines if arguments.decode else lines
            for line in said(arguments.models / entry["file"], entry, arguments.rounds):
                print(line, flush=True)


if __name__ == "__main__":
    main()
