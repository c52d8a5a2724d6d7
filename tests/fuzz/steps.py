"""The way of one file through the library: read, allocate, invoke, export."""

from __future__ import annotations

import os
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime

from tests.fuzz.feeds import Shapes, TooLarge, feed, resized
from tests.samples import SAMPLES, sample
from tests.samples import types as sample_types
from tflite_ort import BridgeError, Interpreter, export_onnx

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Outcome:
    """How far a file came and what stopped it.

    Args:
        stage: the one that failed: "read", "details", "allocate" or "invoke"; or "done", or "too
            large": its inputs are not made.
        error: type and message of what stopped it.
        untyped: where an error that is none of the library's came from, else "".
        exported: "yes", "refused", "untyped" or "unloadable".
        export_error: what stopped the export.
        quantised: of each output, whether it has a scale.
    """

    stage: str
    error: str = ""
    untyped: str = ""
    outputs: tuple[Array, ...] = ()
    quantised: tuple[bool, ...] = ()
    exported: str = ""
    export_error: str = ""


def warm_up() -> None:
    """Takes a sample of every operator through the library: what is forked after that has little
    left to import."""
    for op in SAMPLES:
        content = sample(op, sample_types(op)[0])[0]
        taken(content, 0)
        run(content, 0, providers=[])


def taken(content: bytes, seed: int, load: bool = False) -> Outcome:
    """What the library makes of a file.

    Args:
        load: whether ONNX Runtime loads the exported graph.
    """
    outcome = run(content, seed)
    exported, error = _exported(content, load)
    return replace(outcome, exported=exported, export_error=error)


def run(
    content: bytes,
    seed: int,
    tensors: Sequence[int] = (),
    shapes: Shapes = (),
    tame: int = 0,
    values: Mapping[int, Array] | None = None,
    **options: Any,
) -> Outcome:
    """What the interpreter makes of a file.

    Args:
        tensors: those that are wanted in the place of the outputs.
        shapes: of inputs, see `resized`.
        tame: see `feed`.
        values: of inputs, by index; the others are drawn.
        options: of the interpreter.
    """
    stage = ["read"]
    try:
        outputs, quantised = _invoked(
            content, (seed, shapes, tame), stage, tensors, values or {}, options
        )
    except BridgeError as error:
        return Outcome(stage[0], _shown(error))
    except TooLarge:
        return Outcome("too large")
    # Anything else is a fault of the library.
    except Exception as error:
        return Outcome(stage[0], _shown(error), _origin(error))
    return Outcome("done", outputs=outputs, quantised=quantised)


def _invoked(
    content: bytes,
    drawn: tuple[int, Shapes, int],
    stage: list[str],
    tensors: Sequence[int],
    values: Mapping[int, Array],
    options: dict[str, Any],
) -> tuple[tuple[Array, ...], tuple[bool, ...]]:
    interpreter = Interpreter(
        model_content=content,
        num_threads=1,
        experimental_preserve_all_tensors=bool(tensors),
        **options,
    )
    stage[0] = "details"
    details = interpreter.get_input_details()
    interpreter.get_output_details()
    interpreter.get_tensor_details()
    interpreter.get_signature_list()
    for index, shape in resized(details, *drawn).items():
        interpreter.resize_tensor_input(index, shape)
    stage[0] = "allocate"
    interpreter.allocate_tensors()
    stage[0] = "invoke"
    for detail in interpreter.get_input_details():
        value = values.get(detail["index"])
        if value is None:
            value = feed(detail, drawn[0], drawn[2])
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    results = interpreter.get_output_details()
    if tensors:
        every = {each["index"]: each for each in interpreter.get_tensor_details()}
        results = [every[index] for index in tensors]
    outputs = tuple(np.array(interpreter.get_tensor(each["index"])) for each in results)
    return outputs, tuple(bool(each["quantization"][0]) for each in results)


def _exported(content: bytes, load: bool) -> tuple[str, str]:
    try:
        model = export_onnx(content, state_defaults=True)
    except BridgeError as error:
        return "refused", _shown(error)
    except Exception as error:
        return "untyped", f"{_origin(error)} {_shown(error)}"
    if load:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        try:
            onnxruntime.InferenceSession(model.SerializeToString(), options)
        except Exception as error:
            return "unloadable", _shown(error)
    return "yes", ""


def _shown(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:1000]


def _origin(error: BaseException) -> str:
    """The type of an error and the innermost place in the library's own files."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "site-packages" not in frame.filename]
    inner = [frame for frame in own if f"{os.sep}tests{os.sep}" not in frame.filename]
    where = (inner or own or frames)[-1]
    file = os.sep.join(where.filename.split(os.sep)[-2:])
    return f"{type(error).__name__} in {file}:{where.name}"
