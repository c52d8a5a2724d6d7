"""How many nodes exports have, and which of them a simplifier takes away.

    pip install onnxsim onnxslim
    python -m benchmarks.export_nodes [--tf2onnx T/bin/python] [--json FILE] [NAME...]

Networks: those of `benchmarks.consumers`; ``--folder FOLDER...`` takes all of some folders. A row
is a network: the nodes of the default export, bodies too, how many of them onnxsim leaves, the part
that it takes away, what onnxslim, ONNX Runtime's basic optimizations and tf2onnx have, the size of
the file in parts of the ``.tflite``, and the node types that onnxsim takes away and adds. Below it
stands what other readers of ONNX than ONNX Runtime stumble over, see `obstacles`; ``--obstacles``
counts nothing else.
``--tf2onnx`` is the Python of an environment that has it; the sum beside ours is over the networks
whose files load in ONNX Runtime.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import onnx
import onnxruntime

from benchmarks.consumers import WHOLE
from benchmarks.how_close import MODELS
from benchmarks.other_converters import converted_elsewhere
from tflite_ort import BridgeError, export_onnx
from tflite_ort.base.files import write_text
from tflite_ort.command.benchmark import machine

# Files above this are not simplified: it takes minutes.
_MOST_BYTES = 200 << 20
Row = dict[str, Any]


def node_types(graph: onnx.GraphProto) -> Counter[str]:
    """How often a graph and its bodies have each type of node."""
    found = Counter(node.op_type for node in graph.node)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                found += node_types(attribute.g)
    return found


_CALLS = frozenset({"DFT", "If", "Loop", "Scan", "CastLike"})


def obstacles(proto: onnx.ModelProto) -> Counter[str]:
    """What few readers know, and how often a file has it: nodes with bodies, DFT, CastLike, 64-bit
    floats, tuples that pick from booleans, a Reshape with ``allowzero``, and attributes that equal
    their default."""
    opset = next(each.version for each in proto.opset_import if not each.domain)
    found = Counter[str]()
    _note_obstacles(onnx.shape_inference.infer_shapes(proto).graph, opset, {}, found)
    return found


def _note_obstacles(
    graph: onnx.GraphProto, opset: int, outer: Mapping[str, int], found: Counter[str]
) -> None:
    told = (*graph.input, *graph.output, *graph.value_info)
    types = {**outer, **{each.name: each.type.tensor_type.elem_type for each in told}}
    types.update((each.name, each.data_type) for each in graph.initializer)
    for node in graph.node:
        if node.op_type in _CALLS:
            found[node.op_type] += 1
        made = {types.get(name) for name in node.output}
        found["float64"] += onnx.TensorProto.DOUBLE in made
        found["bool GatherND"] += node.op_type == "GatherND" and onnx.TensorProto.BOOL in made
        given = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
        found["allowzero"] += bool(given.get("allowzero"))
        usual = {} if node.domain else _defaults(node.op_type, opset)
        found["defaults"] += sum(usual.get(name) == value for name, value in given.items())
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _note_obstacles(attribute.g, opset, types, found)


@cache
def _defaults(op_type: str, opset: int) -> dict[str, Any]:
    """The attributes of a node that have a default."""
    attributes = onnx.defs.get_schema(op_type, opset).attributes
    return {
        name: onnx.helper.get_attribute_value(each.default_value)
        for name, each in attributes.items()
        if each.default_value.type
    }


def _onnxsim(proto: onnx.ModelProto) -> onnx.ModelProto:
    import onnxsim  # of the environment of whoever measures

    return onnxsim.simplify(proto)[0]


def _onnxslim(proto: onnx.ModelProto) -> onnx.ModelProto:
    import onnxslim

    copy = onnx.ModelProto()
    copy.CopyFrom(proto)
    return onnxslim.slim(copy)


def _basic(proto: onnx.ModelProto) -> onnx.ModelProto:
    """ONNX Runtime's basic optimizations, but for those that fuse."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.log_severity_level = 4
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        options.optimized_model_filepath = file.name
        onnxruntime.InferenceSession(
            proto.SerializeToString(), options, disabled_optimizers=_FUSIONS
        )
        return onnx.load(file.name)


_FUSIONS = [
    "ConvActivationFusion",
    "ConvAddFusion",
    "ConvMulFusion",
    "GemmActivationFusion",
    "MatMulAddFusion",
    "QDQPropagationTransformer",
    "ReluQuantFusion",
    "DoubleQDQPairsRemover",
]
SIMPLIFIERS: dict[str, Callable[[onnx.ModelProto], onnx.ModelProto]] = {
    "onnxsim": _onnxsim,
    "onnxslim": _onnxslim,
    "basic": _basic,
}


def measured(path: Path, simplifiers: Iterable[str], preset: str | None) -> Row:
    """The row of one network."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            proto = export_onnx(path, for_=preset)
    except BridgeError as error:
        return {"refused": str(error)[:200]}
    types, size = node_types(proto.graph), proto.ByteSize()
    row: Row = {"nodes": types.total(), "size": size / path.stat().st_size}
    row["obstacles"] = dict(+obstacles(proto))
    for name in simplifiers if size < _MOST_BYTES else ():
        try:
            left = node_types(SIMPLIFIERS[name](proto).graph)
        except Exception as failed:  # whatever a simplifier says of a file
            row[name] = f"fails: {str(failed)[:80]}"
            continue
        row[name] = left.total()
        if name == "onnxsim":
            row["gone"], row["new"] = dict(types - left), dict(left - types)
    return row


def other_nodes(python: str, paths: Sequence[Path]) -> dict[str, int]:
    """By network, the nodes of tf2onnx's files that load."""
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        converted_elsewhere("tf2onnx", python, list(paths), folder)
        for path in paths:
            file = folder / f"{path.stem}.onnx"
            if not file.exists():
                continue
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 4
            try:
                onnxruntime.InferenceSession(file, options)
            except Exception:  # ONNX Runtime does not load it
                continue
            found[path.stem] = node_types(onnx.load(file).graph).total()
    return found


def show(name: str, row: Row) -> None:
    if "refused" in row:
        print(f"{name}: refused: {row['refused']}", flush=True)
        return
    left = row.get("onnxsim")
    part = f"{1 - left / row['nodes']:6.1%}" if isinstance(left, int) and row["nodes"] else "     -"
    others = " ".join(str(row.get(each, "-")) for each in ("onnxslim", "basic", "tf2onnx"))
    gone = " ".join(f"{count} {kind}" for kind, count in row.get("gone", {}).items())
    new = " ".join(f"{count} {kind}" for kind, count in row.get("new", {}).items())
    print(
        f"{row['nodes']:5} {left!s:>5} {part} [{others}] {row['size']:.2f} {name}: -{gone} +{new}",
        flush=True,
    )
    if row["obstacles"]:
        print("     ", _listed(row["obstacles"]), flush=True)


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))


def summary(rows: dict[str, Row]) -> str:
    made = [row for row in rows.values() if "nodes" in row]
    both = [row for row in made if "tf2onnx" in row]
    ours, theirs = (sum(row[key] for row in both) for key in ("nodes", "tf2onnx"))
    gone = [
        1 - row["onnxsim"] / row["nodes"] for row in made if isinstance(row.get("onnxsim"), int)
    ]
    sizes = [row["size"] for row in made]
    stumbled = sum((Counter(row["obstacles"]) for row in made), Counter[str]())
    return (
        f"{len(made)} networks, {sum(row['nodes'] for row in made)} nodes; {len(both)} that both "
        f"convert: {ours}, tf2onnx {theirs}; onnxsim takes at most {max(gone, default=0):.1%}, "
        f"2 % and more of {sum(part >= 0.02 for part in gone)}; "
        f"size {statistics.geometric_mean(sizes):.2f}, at most {max(sizes):.2f}; "
        f"{_listed(stumbled)}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--folder", type=Path, nargs="*", help="all networks of these folders")
    parser.add_argument("--for", dest="preset", help="a preset in the place of the default")
    parser.add_argument("--tf2onnx", help="the Python of an environment that has it")
    parser.add_argument("--with", dest="simplifiers", nargs="*", default=list(SIMPLIFIERS))
    parser.add_argument("--obstacles", action="store_true", help="run no simplifier")
    parser.add_argument("--json", type=Path)
    parser.add_argument("names", nargs="*", help="parts of the networks' names")
    given = parser.parse_args()
    if given.folder:
        paths = [path for folder in given.folder for path in sorted(folder.glob("*.tflite"))]
    else:
        paths = [MODELS / f"{name}.tflite" for name in WHOLE]
    paths = [p for p in paths if not given.names or any(name in p.stem for name in given.names)]
    others = other_nodes(given.tf2onnx, paths) if given.tf2onnx else {}
    rows = {}
    for path in paths:
        row = measured(path, () if given.obstacles else given.simplifiers, given.preset)
        if path.stem in others:
            row["tf2onnx"] = others[path.stem]
        rows[path.stem] = row
        show(path.stem, row)
    print(summary(rows))
    if given.json:
        write_text(given.json, json.dumps({**machine(), "rows": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
