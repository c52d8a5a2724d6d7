"""Which kernels of ONNX Runtime's CPU provider are wrong at the edges of a type.

    python -m benchmarks.kernel_edges [--only OPERATOR] [--all] [--json FILE]

Each ONNX operator that a translator names runs alone, with each element type that ONNX Runtime has
a kernel for, over the least and the largest number, -1, 0, the powers of two at which types end and
their neighbours, infinities, subnormal numbers, -0.0 and what is no number; numpy says what is
right. Shapes are such that vectors, their ends, and each kind of broadcasting are tried. What is
found is compared with `WRONG_KERNELS` in `benchmarks/wrong_kernels.py`: the command fails
where something is not there. `--all` shows what is there too.
"""

from __future__ import annotations

import argparse
import ast
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import helper

import tflite_ort.opmap
from benchmarks.kernel_trials import CHECKS, UNTRIED, Check, Trial
from benchmarks.wrong_kernels import wrong_kernel
from tflite_ort.base.files import write_text
from tflite_ort.command.benchmark import machine
from tflite_ort.opmap.rules.lowering import OPSET
from tflite_ort.providers.session import ORT_ERRORS, ORT_VERSION
from tflite_ort.providers.traits import CPU

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Finding:
    """A kernel that is wrong, with an example.

    Args:
        wrong, of: how many elements of all differ.
    """

    operator: str
    type: str
    wrong: int
    of: int
    example: str

    @property
    def known(self) -> bool:
        return wrong_kernel(self.operator, self.type) is not None


class Missing(Exception):
    """ONNX Runtime has no kernel of the type."""


def named_operators() -> list[str]:
    """The ONNX operators that the translators name, in any string of their sources."""
    known = {schema.name for schema in onnx.defs.get_all_schemas() if not schema.domain}
    sources = [path for folder in tflite_ort.opmap.__path__ for path in Path(folder).rglob("*.py")]
    return sorted(known & {text for path in sources for text in _strings(path)})


def _strings(source: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def findings(names: Iterable[str] = CHECKS) -> Iterator[Finding]:
    """The kernels of these rows of `CHECKS` that are wrong."""
    for name in names:
        check = CHECKS[name]
        for dtype in check.types:
            with np.errstate(all="ignore"):
                found = _finding(name, dtype, check)
            if found is not None:
                yield found


def _finding(name: str, dtype: np.dtype[Any], check: Check) -> Finding | None:
    wrong = of = 0
    example = ""
    for trial in check.trials(dtype):
        try:
            got = run(name.partition("/")[0], trial)
        except Missing:
            continue
        differs = differing(got, trial.wanted, check.tolerance, zeros=check.zeros)
        wrong, of = wrong + np.count_nonzero(differs), of + differs.size
        if differs.any() and not example:
            example = _example(trial, got, differs)
    return Finding(name, dtype.name, int(wrong), of, example) if wrong else None


def _example(trial: Trial, got: Array, differs: npt.NDArray[np.bool_]) -> str:
    """The first element that differs, with its operands where they stand in the same place."""
    if got.shape != trial.wanted.shape:
        return f"shape {got.shape}, expected {trial.wanted.shape}"
    place = tuple(int(axis[0]) for axis in np.nonzero(differs))
    operands = [
        np.broadcast_to(array, got.shape)[place]
        for array in trial.arrays
        if _broadcasts(array, got)
    ]
    given = ", ".join(str(operand) for operand in operands)
    return f"({given}) gives {got[place]}, expected {trial.wanted[place]}"


def _broadcasts(array: Array, to: Array) -> bool:
    sizes = zip(reversed(array.shape), reversed(to.shape), strict=False)
    return array.ndim <= to.ndim and all(size in (1, other) for size, other in sizes)


def run(operator: str, trial: Trial) -> Array:
    """What ONNX Runtime makes of a trial.

    Raises:
        Missing: there is no such kernel.
    """
    types = tuple(array.dtype for array in trial.arrays)
    attributes = json.dumps(dict(trial.attributes), sort_keys=True)
    session = _session(operator, types, attributes, trial.wanted.dtype)
    feeds = {f"x{i}": array for i, array in enumerate(trial.arrays)}
    try:
        return np.asarray(session.run(None, feeds)[0])
    except ORT_ERRORS as error:  # some types are refused as late as this
        raise Missing(str(error)) from error


@cache
def _session(
    operator: str, types: tuple[np.dtype[Any], ...], attributes: str, made: np.dtype[Any]
) -> onnxruntime.InferenceSession:
    inputs = [
        helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(dtype), None)
        for i, dtype in enumerate(types)
    ]
    output = helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(made), None)
    further = ["indices"] if operator == "TopK" else []
    node = helper.make_node(
        operator, [value.name for value in inputs], ["y", *further], **json.loads(attributes)
    )
    graph = helper.make_graph([node], "kernel", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=[CPU])
    except ORT_ERRORS as error:
        raise Missing(str(error)) from error


def differing(
    got: Array, want: Array, tolerance: float, *, zeros: bool = False
) -> npt.NDArray[np.bool_]:
    """Where the two differ.

    Args:
        tolerance: of floats, relative.
        zeros: the sign of a zero counts.
    """
    if got.shape != want.shape:
        return np.ones(want.shape, np.bool_)
    if want.dtype.kind != "f":
        return np.asarray(got != want)
    with np.errstate(all="ignore"):
        wide, right = got.astype(np.float64), want.astype(np.float64)
        # Subnormal results may be 0.
        size = np.maximum(np.abs(right), np.finfo(want.dtype).tiny.astype(np.float64) / tolerance)
        near = np.abs(wide - right) <= tolerance * size if tolerance else np.zeros(want.shape, bool)
    same = (wide == right) | (np.isnan(wide) & np.isnan(right)) | near
    if zeros:
        same &= (np.signbit(wide) == np.signbit(right)) | np.isnan(right)
    return np.asarray(~same)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what is found; 1 where something is not in `WRONG_KERNELS`."""
    parser = argparse.ArgumentParser(description="Wrong kernels of ONNX Runtime's CPU provider.")
    parser.add_argument("--only", help="the rows of one ONNX operator")
    parser.add_argument("--all", action="store_true", help="show known ones too")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    rows = [name for name in CHECKS if options.only in (None, name.partition("/")[0])]
    found = list(findings(rows))
    new = [each for each in found if not each.known]
    for each in found if options.all else new:
        share = f"{each.wrong} of {each.of}"
        print(f"{each.operator:20} {each.type:8} {share:16} {each.example}")
    tried = {name.partition("/")[0] for name in CHECKS}
    left = [name for name in named_operators() if name not in tried | UNTRIED]
    print(f"ONNX Runtime {ORT_VERSION}: {len(found)} wrong kernels, {len(new)} of them not known")
    print(f"not tried: {', '.join(left)}")
    if options.json is not None:
        record = {"machine": machine(), "findings": [asdict(each) for each in found]}
        write_text(options.json, json.dumps(record, indent=1) + "\n")
    return int(bool(new))


if __name__ == "__main__":
    raise SystemExit(main())
