"""Everything that is done with a model, tried one after the other: what comes of it in a word."""

from __future__ import annotations

import math
import traceback
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from tests.oracle import litert_interpreter
from tflite_ort import BridgeError, Interpreter, export_onnx
from tflite_ort.providers.session import ORT_ERRORS

Shape = tuple[int, ...]
# An exported model with larger inputs is not run.
_MOST_ELEMENTS = 1 << 26


@dataclass(frozen=True)
class Attempt:
    """A model to try, with the inputs at these positions resized."""

    content: bytes
    shapes: Mapping[int, Shape] = field(default_factory=dict)
    name: str = ""


def attempted(attempt: Attempt) -> str:
    """``"fine"``, or what raised an error that is none of ours; typed errors are fine."""
    warnings.simplefilter("ignore")
    steps: dict[str, Callable[[], None]] = {
        "details": partial(_details, attempt),
        "ort": partial(_run, attempt, None),
        "numpy": partial(_run, attempt, []),
        "export": partial(_export, attempt),
    }
    said = []
    for name, step in steps.items():
        try:
            step()
        except BridgeError:
            continue
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(last.filename).name}:{last.name}"
            said.append(f"{name}: {type(error).__name__} in {place}: {error}")
    return "; ".join(said) or "fine"


def status(attempt: Attempt) -> str:
    """``"runs"`` on ONNX Runtime, or why not."""
    warnings.simplefilter("ignore")
    try:
        _run(attempt, None)
    except BridgeError as error:
        return f"{type(error).__name__}: {error}"
    return "runs"


def litert_status(attempt: Attempt) -> str:
    """``"runs"`` on LiteRT, or why not."""
    try:
        _invoked(litert_interpreter(attempt.content), attempt)
    except (ValueError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"
    return "runs"


def _details(attempt: Attempt) -> None:
    interpreter = Interpreter(model_content=attempt.content)
    interpreter.get_input_details()
    interpreter.get_output_details()
    interpreter._get_ops_details()
    for index in range(interpreter.num_subgraphs()):
        interpreter.get_tensor_details(index)
    interpreter.get_signature_list()


def _run(attempt: Attempt, providers: Any) -> None:
    content = attempt.content
    _invoked(Interpreter(model_content=content, providers=providers, num_threads=1), attempt)


def _invoked(interpreter: Any, attempt: Attempt) -> None:
    details = interpreter.get_input_details()
    for position, shape in attempt.shapes.items():
        interpreter.resize_tensor_input(details[position]["index"], shape)
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], ones(detail["dtype"], detail["shape"]))
    interpreter.invoke()
    for detail in interpreter.get_output_details():
        interpreter.get_tensor(detail["index"])


def ones(dtype: Any, shape: Any) -> Any:
    """Ones, or the text "1"."""
    if np.dtype(dtype).kind in "SO":
        return np.full(shape, b"1", object)
    return np.ones(shape, dtype)


def _export(attempt: Attempt) -> None:
    details = Interpreter(model_content=attempt.content).get_input_details()
    shapes = {details[position]["name"]: shape for position, shape in attempt.shapes.items()}
    proto = export_onnx(attempt.content, input_shapes=shapes, state_defaults=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    with suppress(*ORT_ERRORS):
        session = onnxruntime.InferenceSession(
            proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        sizes = {
            value.name: [size if isinstance(size, int) else 1 for size in value.shape]
            for value in session.get_inputs()
        }
        if max(map(math.prod, sizes.values()), default=0) < _MOST_ELEMENTS:
            types = {value.name: _DTYPES.get(value.type) for value in session.get_inputs()}
            if None not in types.values():
                session.run(None, {name: ones(types[name], size) for name, size in sizes.items()})


_DTYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(bool)": np.bool_,
    "tensor(string)": np.object_,
    **{f"tensor({name})": np.dtype(name) for name in ("int8", "int16", "int32", "int64")},
    **{f"tensor(u{name})": np.dtype(f"u{name}") for name in ("int8", "int16", "int32", "int64")},
}
