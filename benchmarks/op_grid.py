"""How many one-operator models of a folder are right, against LiteRT.

    python benchmarks/op_grid.py FOLDER [--only PATTERN] [--show VERDICT] [--json FILE]

FOLDER has one folder per model, with `model.tflite` and `inputs.npz` (`in_0`, `in_1`, ...). Each
model runs through `Interpreter` and through `export_onnx` with a plain ONNX Runtime session; both
are held against LiteRT's default, optimised and reference kernels. README.md says how such a
folder is made from TFLite's own operator tests, and what counts as right.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import multiprocessing
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
from ai_edge_litert.interpreter import Interpreter as LiteRT
from ai_edge_litert.interpreter import OpResolverType

from tflite_ort import BridgeError, Interpreter, export_onnx
from tflite_ort.base.files import write_text
from tflite_ort.command.benchmark import machine
from tflite_ort.providers.session import ORT_ERRORS
from tflite_ort.schema import Model, Op, TensorType, read_model
from tflite_ort.schema.values.complex_pairs import paired

Array = npt.NDArray[Any]

ROUTES = ("interpreter", "export")
FAMILIES = ("float", "integer", "8-bit", "16x8", "string", "complex")
KERNELS = (
    OpResolverType.AUTO,
    OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    OpResolverType.BUILTIN_REF,
)
RANDOM = {Op.RANDOM_UNIFORM, Op.RANDOM_STANDARD_NORMAL, Op.MULTINOMIAL}
COMPLEX = {TensorType.COMPLEX64: np.complex64, TensorType.COMPLEX128: np.complex128}
RELATIVE = 1e-4
# LiteRT's own kernels may be this far from each other before they are no measure any more.
DISAGREEMENT = 1e-2
SECONDS = 60.0
_SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True, slots=True)
class Verdict:
    """`kind`: right, wrong, refused (one of our errors), broken (any other), crashed, not run."""

    kind: str = "not run"
    detail: str = ""


@dataclass(slots=True)
class Row:
    """One model; `litert` says why LiteRT does not run it, and is empty where it does."""

    name: str
    family: str = "float"
    operators: Sequence[str] = ()
    litert: str = "crashed"
    routes: dict[str, Verdict] = field(default_factory=lambda: dict.fromkeys(ROUTES, Verdict()))

    @property
    def is_right(self) -> bool:
        return all(verdict.kind == "right" for verdict in self.routes.values())


# One model --------------------------------------------------------------------------------------


def examine(folder: Path, report: Callable[[Row], None]) -> None:
    """Judge one model; `report` gets the row again after every step, in case the next crashes."""
    content = (folder / "model.tflite").read_bytes()
    try:
        model = read_model(content)
    except BridgeError as error:
        report(Row(folder.name, routes=dict.fromkeys(ROUTES, refusal(error)), litert="not tried"))
        return
    operators = [code.builtin_code for code in model.operator_codes]
    row = Row(folder.name, family(model), [op.name for op in operators])
    report(row)
    with np.load(folder / "inputs.npz", allow_pickle=True) as archive:
        arrays = [archive[f"in_{i}"] for i in range(len(archive.files))]
    expected: list[list[Array]] = []
    feeds = arrays
    for kernels in KERNELS:
        try:
            litert = LiteRT(
                model_content=content, experimental_op_resolver_type=kernels, num_threads=1
            )
            feeds = fitted(litert.get_input_details(), arrays)
            expected.append(outputs(litert, feeds))
        except (RuntimeError, ValueError) as error:
            row.litert = last_line(error)
    row.litert = "" if expected else row.litert
    report(row)
    quanta = [quantum(model, index) for index in model.subgraphs[0].outputs]
    free = bool(RANDOM.intersection(operators)) and not alike(expected)
    for route, run in (("interpreter", by_interpreter), ("export", by_export)):
        row.routes[route] = Verdict("crashed")
        report(row)
        row.routes[route] = judged(partial(run, content, feeds), expected, quanta, free)
        report(row)


def alike(expected: Sequence[list[Array]]) -> bool:
    """Whether all kernels of LiteRT give the same: random numbers of a fixed seed."""
    return all(
        np.array_equal(one, other)
        for outputs in expected
        for one, other in zip(expected[0], outputs, strict=True)
    )


def judged(
    run: Callable[[], list[Array]], expected: list[list[Array]], quanta: list[float], free: bool
) -> Verdict:
    try:
        found = run()
    except BridgeError as error:
        return refusal(error)
    except (*ORT_ERRORS, ArithmeticError, LookupError, TypeError, ValueError) as error:
        return Verdict("broken", f"{type(error).__name__}: {error}"[:2000])
    if not expected:
        return Verdict("accepted")
    for i, got in enumerate(found):
        fault = difference(got, [each[i] for each in expected], quanta[i], free)
        if fault:
            return Verdict("wrong", f"output {i}: {fault}")
    return Verdict("right")


def refusal(error: BridgeError) -> Verdict:
    return Verdict("refused", f"{type(error).__name__}: {error}"[:2000])


def by_interpreter(content: bytes, feeds: Sequence[Array]) -> list[Array]:
    return outputs(Interpreter(model_content=content, num_threads=1), feeds)


def by_export(content: bytes, feeds: Sequence[Array]) -> list[Array]:
    """By the exported file, in which a complex tensor is a float one with a last dimension of 2."""
    model = read_model(content)
    details = Interpreter(model_content=content).get_input_details()
    shapes = {
        detail["name"]: array.shape
        for detail, array in zip(details, feeds, strict=True)
        if tuple(detail["shape"]) != array.shape
    }
    proto = export_onnx(content, input_shapes=shapes, state_defaults=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [each.name for each in session.get_inputs()]
    given = [as_text(array) if array.dtype.kind in "OS" else paired(array) for array in feeds]
    ends = [model.subgraphs[0].tensors[index].type for index in model.subgraphs[0].outputs]
    results = [each.name for each in session.get_outputs()][: len(ends)]  # the state comes after
    found = session.run(results, dict(zip(names, given, strict=False)))
    return [
        np.ascontiguousarray(value).view(COMPLEX[end])[..., 0] if end in COMPLEX else value
        for value, end in zip(found, ends, strict=True)
    ]


def as_text(array: Array) -> Array:
    words = np.empty(array.shape, np.object_)
    for at in np.ndindex(array.shape):
        words[at] = bytes(array[at]).decode()
    return words


def outputs(interpreter: Any, feeds: Sequence[Array]) -> list[Array]:
    """The outputs of an interpreter, LiteRT's or ours."""
    details = interpreter.get_input_details()
    for detail, array in zip(details, feeds, strict=True):
        if tuple(detail["shape"]) != array.shape:
            interpreter.resize_tensor_input(detail["index"], array.shape)
    interpreter.allocate_tensors()
    for detail, array in zip(details, feeds, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [
        # LiteRT hands out no tensor without elements.
        np.zeros(d["shape"], d["dtype"])
        if 0 in d["shape"]
        else np.array(interpreter.get_tensor(d["index"]))
        for d in interpreter.get_output_details()
    ]


def fitted(details: Sequence[dict[str, Any]], arrays: Sequence[Array]) -> list[Array]:
    """The arrays in the dtypes of the inputs; reals are quantised for inputs of codes."""
    feeds = []
    for detail, array in zip(details, arrays, strict=True):
        dtype = np.dtype(detail["dtype"])
        scale, zero_point = detail["quantization"]
        if array.dtype.kind == "f" and dtype.kind in "iu" and scale:
            limits = np.iinfo(dtype)
            array = np.clip(np.round(array / scale) + zero_point, limits.min, limits.max)
        feeds.append(array if dtype.kind in "OS" else np.asarray(array, dtype))
    return feeds


# What is right ----------------------------------------------------------------------------------


def difference(got: Array, wanted: Sequence[Array], quantum: float, free: bool) -> str:
    """What is wrong with `got`, where it is like none of `wanted`; empty if it is like one.

    Args:
        quantum: what one code more is worth in this output, 0 if it is not quantised.
        free: random numbers without a seed, of which only shape and type can be compared.
    """
    want = wanted[0]
    if got.dtype.kind in "OSU" and want.dtype.kind in "OSU":
        same = got.shape == want.shape and [*map(as_bytes, got.flat)] == [*map(bytes, want.flat)]
        return "" if same else f"{got.tolist()}, expected {want.tolist()}"[:200]
    if got.dtype != want.dtype or got.shape not in {each.shape for each in wanted}:
        return f"{got.dtype} {got.shape}, expected {want.dtype} {want.shape}"
    if free:
        return ""
    wanted = [each for each in wanted if each.shape == got.shape]
    want = wanted[0]
    worst = min(apart(got, each) for each in wanted)
    magnitude = float(np.max(np.abs(want[np.isfinite(want)]), initial=0)) or 1e-30
    limit = max(RELATIVE * magnitude if want.dtype.kind in "fcV" else 0.0, quantum * 1.001)
    own = max(apart(each, want) for each in wanted)
    if own <= max(DISAGREEMENT * magnitude, 2 * quantum) and want.dtype.kind in "fc":
        limit = max(limit, 1.5 * own)
    return "" if worst <= limit else f"off by {worst:.6g}, {limit:.3g} allowed of {magnitude:.3g}"


def as_bytes(word: str | bytes) -> bytes:
    return word.encode() if isinstance(word, str) else bytes(word)


def apart(got: Array, want: Array) -> float:
    """The largest difference; infinite where only one is finite or they differ beyond that."""
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    if want.dtype.kind in "iub" and want.dtype.itemsize == 8:
        pairs = zip(got.flat, want.flat, strict=True)
        return float(max((abs(int(a) - int(b)) for a, b in pairs), default=0))
    left, right = got.astype(wide), want.astype(wide)
    finite = np.isfinite(right)
    if not np.array_equal(left[~finite], right[~finite], equal_nan=True):
        return float("inf")
    worst = np.max(np.abs(left[finite] - right[finite]), initial=0.0)
    return float(worst) if np.isfinite(worst) else float("inf")


def quantum(model: Model, output: int) -> float:
    """What one code more is worth in output tensor `output`: 1 for codes, the scale for reals made
    from codes, 0 if nothing is quantised."""
    graph = model.subgraphs[0]
    tensor = graph.tensors[output]
    if is_quantized(tensor):
        return 1.0
    for op in graph.operators:
        if output in op.outputs and op.inputs and op.inputs[0] is not None:
            source = graph.tensors[op.inputs[0]]
            if is_quantized(source) and source.quantization is not None:
                scale = source.quantization.scale
                return float(scale.max()) if scale is not None and scale.size == 1 else 0.0
    return 0.0


def is_quantized(tensor: Any) -> bool:
    scale = None if tensor.quantization is None else tensor.quantization.scale
    codes = (TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.INT4)
    return scale is not None and scale.size > 0 and tensor.type in codes


def family(model: Model) -> str:
    """complex, string, 16x8 or 8-bit if any tensor is; else by inputs and outputs."""
    tensors = [tensor for graph in model.subgraphs for tensor in graph.tensors]
    types = {tensor.type for tensor in tensors}
    if types & set(COMPLEX):
        return "complex"
    if TensorType.STRING in types:
        return "string"
    codes = {tensor.type for tensor in tensors if is_quantized(tensor)}
    if codes:
        return "16x8" if TensorType.INT16 in codes else "8-bit"
    graph = model.subgraphs[0]
    ends = {graph.tensors[index].type for index in (*graph.inputs, *graph.outputs)}
    floats = {TensorType.FLOAT16, TensorType.FLOAT32, TensorType.FLOAT64, TensorType.BFLOAT16}
    return "float" if ends & floats else "integer"


def last_line(error: Exception) -> str:
    return str(error).strip().splitlines()[-1][:300] if str(error).strip() else repr(error)


# All models -------------------------------------------------------------------------------------


def rows(folders: Sequence[Path]) -> Iterator[Row]:
    """One row per model. A crash or hang of a runtime costs its process and its model only."""
    waiting = list(folders)
    while waiting:
        receiver, sender = _SPAWN.Pipe(duplex=False)
        process = _SPAWN.Process(target=_work, args=(list(waiting), sender), daemon=True)
        process.start()
        sender.close()
        last: Row | None = None
        while waiting:
            try:
                message = receiver.recv() if receiver.poll(SECONDS) else None
            except EOFError:
                message = None
            if isinstance(message, Row):
                last = message
                continue
            yield last if last and last.name == waiting[0].name else Row(waiting[0].name)
            waiting.pop(0)
            if message is None:
                break
        process.kill()
        process.join()


def _work(folders: Sequence[Path], pipe: Connection) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # LiteRT logs there
    for folder in folders:
        examine(folder, pipe.send)
        pipe.send("next")


def counts(found: Sequence[Row]) -> dict[str, dict[str, Counter[str]]]:
    """By route and family, how many of the models that LiteRT runs got which verdict."""
    runs = [row for row in found if not row.litert]
    return {
        route: {
            name: Counter(row.routes[route].kind for row in runs if name in (row.family, "all"))
            for name in (*FAMILIES, "all")
        }
        for route in ROUTES
    }


def table(found: Sequence[Row]) -> str:
    """The counts, with the share of those that are right."""
    kinds = ("right", "wrong", "refused", "broken", "crashed")
    lines = [f"{'':22}{'models':>8}" + "".join(f"{kind:>9}" for kind in kinds) + f"{'share':>9}"]
    for route, families in counts(found).items():
        for name, count in families.items():
            if count:
                cells = "".join(f"{count[kind]:9}" for kind in kinds)
                share = count["right"] / count.total()
                lines.append(f"{route:12}{name:10}{count.total():8}{cells}{share:9.2%}")
    refused = [row.routes["interpreter"].kind for row in found if row.litert]
    rest = ", ".join(f"{kind} {n}" for kind, n in sorted(Counter(refused).items()))
    return "\n".join([*lines, f"LiteRT does not run {len(refused)} more; of these, ours: {rest}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="*", metavar="PATTERN", help="names, such as 'conv*'")
    parser.add_argument("--show", default="wrong", metavar="VERDICT", help="list these models")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    folders = sorted(
        path.parent
        for path in arguments.folder.glob("*/model.tflite")
        if fnmatch.fnmatch(path.parent.name, arguments.only)
    )
    found = []
    for row in rows(folders):
        found.append(row)
        for route, verdict in row.routes.items():
            if verdict.kind == arguments.show and not row.litert:
                print(f"{row.name} {route}: {verdict.detail.partition(chr(10))[0]}", flush=True)
    print(table(found))
    if arguments.json:
        missed = [row for row in found if not row.litert and not row.is_right]
        record = {**machine(), "counts": counts(found)}
        record["not right"] = [asdict(row) for row in missed]
        write_text(arguments.json, json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
