"""One custom operator as a model, run by ONNX Runtime and by its numpy kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
from flatbuffers import flexbuffers

from tests.one_op import Node, T, assert_close, graph_model
from tests.oracle import litert
from tflite_ort import Interpreter, WellKnownOpResolver, export_onnx
from tflite_ort.schema import Op

Array = npt.NDArray[Any]
Options = Mapping[str, Any] | bytes


def custom_model(
    name: str,
    inputs: Sequence[T],
    outputs: Sequence[T],
    options: Options = b"",
    version: int = 1,
) -> bytes:
    """The bytes of a model of the custom operator `name`; a mapping becomes a flexbuffer."""
    data = options if isinstance(options, bytes) else bytes(flexbuffers.Dumps(dict(options)))
    tensors = {f"in{i}": t for i, t in enumerate(inputs)}
    results = [f"out{i}" for i in range(len(outputs))]
    node = Node(Op.CUSTOM, list(tensors), results, None, version, custom_code=name)
    tensors.update(zip(results, outputs, strict=True))
    return graph_model(tensors, [node], results, custom_options=np.frombuffer(data, np.uint8))


def interpreter_of(model: bytes, providers: Sequence[Any] | None = None) -> Interpreter:
    """With the well-known operators, allocated; no providers: numpy alone."""
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
    """Every operator in ONNX Runtime."""
    interpreter = interpreter_of(model)
    rows = interpreter.delegation()
    assert {row.runs_on for row in rows} <= {"ort"}, [row.reason for row in rows]
    return invoked(interpreter, feeds)


def by_exported(model: bytes, feeds: Sequence[Array], folder: Path) -> list[Array]:
    """The model as an ONNX file, in ONNX Runtime alone."""
    path = folder / "model.onnx"
    export_onnx(model, path, resolver=WellKnownOpResolver())
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    return list(session.run(None, dict(zip(names, feeds, strict=True))))


def check_custom(model: bytes, feeds: list[Array], folder: Path, rtol: float = 1e-5) -> None:
    """numpy, ONNX Runtime and the exported file against LiteRT."""
    (want,) = litert(model, feeds)
    found = (by_numpy(model, feeds), by_ort(model, feeds), by_exported(model, feeds, folder))
    for where, (got,) in zip(("numpy", "ort", "exported"), found, strict=True):
        assert_close(got, want, 0, rtol, where)
