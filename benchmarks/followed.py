"""Each operator of a network on a provider, held against LiteRT's on the inputs that it got there.

    python -m benchmarks.followed PROVIDER [--precision P] [--only quantized|floats]
        [--models FOLDER]... [NAME...]

All results of the network are made outputs of it, so that they can be read; the command says
whether that changes what the network gives. LiteRT runs each operator alone on what the provider
gave to it. So a difference is of one operator, and none is magnified by the operators behind it.
It may be as large as the row of `tflite_ort.providers.traits` says (`Rounding`). Where XNNPACK
makes NaN of numbers, as of RSQRT of 0, LiteRT's own kernels are right.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.on_provider import drawn, in_processes, paths
from tflite_ort import BridgeError, Interpreter, WellKnownOpResolver
from tflite_ort.providers.delegates import OpResolverType, chosen_delegates
from tflite_ort.providers.traits import CPU, traits_of
from tflite_ort.schema import Model, Op, OperatorView, TensorType, TensorView, read_model
from tflite_ort.schema.values.resolve import operator_view, tensor_views
from tflite_ort.verification.litert import LitertProcess
from tflite_ort.verification.runtimes import (
    Litert,
    OurInterpreter,
    Settings,
    Tensors,
    invoke,
    read,
    results,
    with_outputs,
)

Array = npt.NDArray[Any]
_CODES = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)


def followed(path: Path, provider: str, precision: str = "full") -> dict[str, Any]:
    """What is found of one network."""
    model = read_model(path)
    settings = Settings([provider, CPU], resolver=WellKnownOpResolver(), precision=precision)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = OurInterpreter(model, settings)
        sample = _sample(path)
        whole = next(ours.outputs([sample]))
        made = results(model)
        with closing(ours.opened(with_outputs(model, made))) as interpreter:
            invoke(interpreter, sample)
            inside = read(interpreter, made)
            rows = {row.index: row for row in interpreter.delegation() if row.subgraph == 0}
    outputs = [index for index in model.subgraphs[0].outputs if index in inside]
    changed = [index for index in outputs if not _same(whole[index], inside[index])]
    (first,) = chosen_delegates(OpResolverType.AUTO, (), [provider])[:1]
    process = LitertProcess()
    with closing(process):
        found = [
            {
                "on": row.provider == first.name,
                "partly": first.name in row.provider,
                "reason": row.reason or (row.provider and f"in {row.provider}"),
                **beside,
            }
            for op, beside in _beside_litert(model, {**sample, **inside}, process, first.name)
            if (row := rows.get(op.index)) is not None and row.runs_on != "constant"
        ]
    return {"network": path.stem, "changed": len(changed), "operators": found}


def _sample(path: Path) -> Tensors:
    """Random inputs by index."""
    interpreter = Interpreter(path, resolver=WellKnownOpResolver())
    details = interpreter.get_input_details()
    return {
        each["index"]: array for each, array in zip(details, next(drawn(interpreter)), strict=True)
    }


def _same(first: Array, second: Array) -> bool:
    return np.array_equal(first, second, equal_nan=first.dtype.kind == "f")


def _beside_litert(
    model: Model, values: Tensors, process: LitertProcess, provider: str
) -> Iterator[tuple[OperatorView[Any], Mapping[str, Any]]]:
    """Each operator, and how far its results are from LiteRT's."""
    litert, tensors = Litert(model, process), tensor_views(model, 0)
    own = Litert(model, process, "optimized")
    traits = traits_of(provider)
    for index in range(len(model.subgraphs[0].operators)):
        op = operator_view(model, 0, index, tensors)
        row = traits.rounding(op)
        about = {"operator": op.name, "index": index, "type": type_of(op)}
        try:
            right = next(litert.isolated(index, [values]).outputs)
            if any(map(_has_nan, right.values())) and not any(map(_has_nan, _given(op, values))):
                right = next(own.isolated(index, [values]).outputs)
        except BridgeError as error:
            yield op, about | {"apart": None, "why": str(error)[:200]}
            continue
        codes = op.output.is_quantized and op.output.type in _CODES
        keep = _unclipped(op, values) if codes and not row.clips else None
        far = [_apart(tensors[at], values[at], right[at], keep) for at in right if at in values]
        apart = max(far, default=None)
        most = row.most(op) if codes else row.share
        yield op, about | {"apart": apart, "most": most, "codes": codes}


def _given(op: OperatorView[Any], values: Tensors) -> Iterator[Array]:
    """What an operator reads that is computed."""
    return (values[x.index] for x in op.present_inputs() if x.index in values)


def _has_nan(array: Array) -> bool:
    return array.dtype.kind == "f" and bool(np.isnan(array).any())


def type_of(op: OperatorView[Any]) -> str:
    """The type of its first result, in words."""
    if not op.outputs:
        return "?"
    output = op.outputs[0]
    return f"{output.type.name.lower()}{' codes' if output.is_quantized else ''}"


def _unclipped(op: OperatorView[Any], values: Tensors) -> Array:
    """The places of a result none of whose inputs is at an end of its codes."""
    inside = []
    for tensor in op.present_inputs():
        codes = values.get(tensor.index, tensor.data) if tensor.type in _CODES else None
        if codes is not None:
            ends = np.iinfo(codes.dtype)
            inside.append((codes > ends.min) & (codes < ends.max))
    if op.op is Op.CONCATENATION:
        return np.concatenate(inside, axis=op.options.axis)
    shape = values[op.output.index].shape
    return np.logical_and.reduce([np.broadcast_to(each, shape) for each in inside])


def _apart(tensor: TensorView, got: Array, right: Array, keep: Array | None) -> float:
    """The largest difference: in quanta of codes, else as a share of the largest value."""
    if got.shape != right.shape:
        return float("inf")
    if got.dtype.kind == "c":
        got, right = (np.stack([each.real, each.imag]) for each in (got, right))
    if not got.size or got.dtype.kind not in "fiub":
        return 0.0 if _same(got, right) else float("inf")
    a, b = got.astype(np.float64), right.astype(np.float64)
    with np.errstate(invalid="ignore"):  # infinities that are equal
        apart = np.atleast_1d(np.abs(a - b))
    apart[np.atleast_1d((np.isnan(a) & np.isnan(b)) | (a == b))] = 0
    most = float(
        np.nan_to_num(apart, nan=np.inf).max(where=True if keep is None else keep, initial=0)
    )
    if tensor.is_quantized and tensor.type in _CODES:
        return most
    return most / (float(np.abs(b[np.isfinite(b)]).max(initial=0)) or 1.0)


def wrong(record: Mapping[str, Any]) -> list[str]:
    """The operators that are farther from LiteRT than the provider's row allows, of those of which
    it has a node."""
    return [
        f"{each['operator']}_{each['index']} ({each['type']}): {each['apart']:.3g} for "
        f"{each['most']:.3g}"
        for each in record["operators"]
        if each["partly"] and each["apart"] is not None and not each["apart"] <= each["most"]
    ]


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        path, provider, precision = sys.argv[2:]
        print(json.dumps(followed(Path(path), provider, precision)))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("provider", help="as `providers=` takes it")
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of file names")
    parser.add_argument("--precision", default="full")
    parser.add_argument("--only", choices=["quantized", "floats"], default="")
    parser.add_argument("--models", type=Path, action="append", default=[])
    given = parser.parse_intermixed_args()
    found = paths(given.models, given.names, given.only)
    for record in in_processes("benchmarks.followed", found, given.provider, given.precision):
        told = record.get("error") or "; ".join(wrong(record)) or "right"
        changes = ", changed by being read" if record.get("changed") else ""
        print(f"{record['network']}: {told}{changes}", flush=True)


if __name__ == "__main__":
    main()
