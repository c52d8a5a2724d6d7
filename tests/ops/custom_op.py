"""Models of one custom operator, run in ONNX Runtime, in numpy and as an exported file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt
import onnxruntime

from tests.one_op import T, assert_close, one_op_model
from tests.oracle import litert
from tests.placements import where
from tflite_ort import Interpreter, WellKnownOpResolver, export_onnx

Array = npt.NDArray[Any]
Options = Mapping[str, Any] | bytes


def custom_model(
    name: str,
    inputs: Sequence[T],
    outputs: Sequence[T],
    options: Options = b"",
    version: int = 1,
) -> bytes:
    """The bytes of a model of the custom operator `name`. A mapping becomes a flexbuffer."""
    return one_op_model(name, inputs, outputs, options, version)


def interpreter_of(model: bytes, providers: Sequence[Any] | None = None) -> Interpreter:
    """An allocated interpreter with the well-known operators.

    Args:
        providers: of ONNX Runtime. An empty list leaves numpy alone.
    """
    interpreter = Interpreter(
        model_content=model, resolver=WellKnownOpResolver(), providers=providers, num_threads=1
    )
    interpreter.allocate_tensors()
    return interpreter


def invoked(interpreter: Interpreter, feeds: Sequence[Array]) -> list[Array]:
    for detail, array in zip(interpreter.get_input_details(), feeds, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]


def by_numpy(model: bytes, feeds: Sequence[Array]) -> list[Array]:
    return invoked(interpreter_of(model, providers=[]), feeds)


def by_ort(model: bytes, feeds: Sequence[Array]) -> list[Array]:
    """The outputs of ONNX Runtime, which has to run every operator."""
    interpreter = interpreter_of(model)
    rows = interpreter.delegation()
    assert {where(row) for row in rows} <= {"ort"}, [row.reason for row in rows]
    return invoked(interpreter, feeds)


def by_exported(model: bytes, feeds: Sequence[Array], folder: Path) -> list[Array]:
    """The outputs of the exported file in ONNX Runtime alone."""
    path = folder / "model.onnx"
    export_onnx(model, path, resolver=WellKnownOpResolver())
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    return list(session.run(None, dict(zip(names, feeds, strict=True))))


def check_custom(model: bytes, feeds: list[Array], folder: Path, rtol: float = 1e-5) -> None:
    """Compare numpy, ONNX Runtime and the exported file with LiteRT."""
    (want,) = litert(model, feeds)
    found = (by_numpy(model, feeds), by_ort(model, feeds), by_exported(model, feeds, folder))
    for place, (got,) in zip(("numpy", "ort", "exported"), found, strict=True):
        assert_close(got, want, 0, rtol, place)
