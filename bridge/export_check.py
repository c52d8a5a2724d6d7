"""Whether an exported file gives what the interpreter gives."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from tflite_ort.comparison.differences import Difference, Tolerance, badness, difference
from tflite_ort.comparison.drawn import random_inputs
from tflite_ort.comparison.index_limits import index_limits
from tflite_ort.export_form import Form
from tflite_ort.files import move
from tflite_ort.interpreter import Interpreter
from tflite_ort.opmap import Layout
from tflite_ort.providers.onnx_file import OnnxSession
from tflite_ort.schema import (
    BridgeError,
    DelegateError,
    ExportError,
    Model,
    with_own_data,
    write_model,
)
from tflite_ort.schema.values.complex_pairs import paired
from tflite_ort.schema.values.resolve import tensor_views
from tflite_ort.versioning.resolver import OpResolver

Array = npt.NDArray[Any]


# A network that amplifies the last bits (pose_landmark_lite) differs by 1.0e-4 between the file and
# the interpreter, of which ONNX Runtime joins other nodes. LiteRT is not asked here: its spread
# would tell that this is little (5.6e-4).
_TOLERANCE = Tolerance(relative=1e-3)
# How often inputs are drawn until the model takes them; every other time integers are below 4.
_DRAWS, _SMALL = 50, 4
# Sixteen-bit floats have 11 bits: 2e-4 a step, which a network's layers add up.
_HALF = Tolerance(relative=5e-2, quanta=3.0)


class ExportMismatch(ExportError):
    """An exported file that differs from the interpreter.

    Args:
        kept: where the file is now; None where none was written.
    """

    def __init__(self, message: str, kept: Path | None = None) -> None:
        self.kept = kept
        super().__init__(message if kept is None else f"{message}; the file is now {kept}")


def check_export(
    proto: onnx.ModelProto,
    output: str | os.PathLike[str] | None,
    model: Model,
    *,
    hybrid: str = "float",
    resolver: OpResolver | None = None,
    seed: int = 0,
    tolerance: Tolerance | None = None,
    form: Form | None = None,
) -> dict[str, Difference]:
    """Run an exported model and the interpreter once on the same random inputs.

    Args:
        proto, output: what `export_onnx` returned, and where it wrote it.
        model: what was exported.
        form: how it was written.

    Returns:
        The difference from the interpreter's of each output, by its name.

    Raises:
        ExportMismatch: a difference exceeds the tolerance, or ONNX Runtime cannot run the file,
            which then has ``.off`` before its suffix.
        ExportError: the interpreter refuses all random inputs that were tried.
        BridgeError: the interpreter cannot run the model.
    """
    try:
        found = _differences(proto, output, model, hybrid, resolver, seed, form or Form())
    except DelegateError as error:
        raise ExportMismatch(f"the exported file does not run: {error}", _moved(output)) from error
    allowed = tolerance or (_HALF if form is not None and form.float16 else _TOLERANCE)
    off = {n: each for n, each in found.items() if not each.within(allowed)}
    if off:
        name, far = max(off.items(), key=lambda pair: badness(pair[1]))
        text = f"output {name!r} differs from the interpreter's by {far.words}"
        raise ExportMismatch(text, _moved(output))
    return found


def _differences(
    proto: onnx.ModelProto,
    output: str | os.PathLike[str] | None,
    model: Model,
    hybrid: str,
    resolver: OpResolver | None,
    seed: int,
    form: Form,
) -> dict[str, Difference]:
    folder = None if output is None else Path(output).absolute().parent
    # Signed weights are for other devices: what a CPU without VNNI makes of them says nothing.
    session = OnnxSession(proto, folder, precise=True)
    views = tensor_views(model, 0)
    content = write_model(with_own_data(model))
    # An export cannot tell what is faster where it will run: its products are those of floats.
    hybrid = "float" if hybrid == "auto" else hybrid
    with closing(
        Interpreter(model_content=content, hybrid=hybrid, resolver=resolver, budgets=model.budgets)
    ) as interpreter:
        details = interpreter.get_input_details()
        _resize(interpreter, details, proto, form)
        details = interpreter.get_input_details()
        interpreter.allocate_tensors()
        arrays = _invoked(interpreter, details, seed, index_limits(model))
        given = (
            _laid(_as_onnx(arrays[each["index"]]), each["name"] in form.nchw) for each in details
        )
        feeds = dict(zip(session.inputs, given, strict=False))
        found: dict[str, Difference] = {}
        outputs = interpreter.get_output_details()
        # State, which comes after them, is left out.
        for name, value, detail in zip(session.outputs, session.run(feeds), outputs, strict=False):
            view = views[detail["index"]]
            right = np.asarray(interpreter.get_tensor(detail["index"]))
            right = _laid(right, detail["name"] in form.nchw)
            codes = view.quantization if view.is_quantized else None
            found[name] = difference(_as_tensor(np.asarray(value), right), right, codes)
    return found


def _invoked(
    interpreter: Interpreter,
    details: list[dict[str, Any]],
    seed: int,
    limits: Mapping[int, int],
) -> dict[int, Array]:
    """Random inputs that the model takes, by tensor index; the interpreter has run on them.
    Integers may be sizes or numbers of rows, of which many fit nothing: then others are drawn,
    small ones too."""
    indices = [int(each["index"]) for each in details]
    small = {index: min(_SMALL, limits.get(index, _SMALL)) for index in indices}
    for draw in range(_DRAWS):
        below = small if draw % 2 else limits
        arrays = random_inputs(
            details, seed + draw, limits=below, budgets=interpreter._model.budgets
        )
        for index, array in arrays.items():
            interpreter.set_tensor(index, array)
        try:
            interpreter.invoke()
        except BridgeError as error:
            refused = error
        else:
            return arrays
    text = f"the file is not checked: the model takes none of {_DRAWS} random inputs"
    raise ExportError(f"{text}: {refused}") from refused


def _laid(array: Array, first: bool) -> Array:
    """`array` with its channels first, if they are to be."""
    return array.transpose(Layout.FIRST.permutation(array.ndim)) if first else array


def _resize(
    interpreter: Interpreter, details: list[dict[str, Any]], proto: onnx.ModelProto, form: Form
) -> None:
    """Give inputs the sizes that the file fixes; open ones stay as they are."""
    declared: Mapping[str, onnx.ValueInfoProto] = {each.name: each for each in proto.graph.input}
    for detail in details:
        name = detail["name"]
        value = declared.get(form.rename.get(name, name))
        if value is None:
            continue
        dims = value.type.tensor_type.shape.dim
        sizes = [
            each.dim_value if each.HasField("dim_value") else int(size)
            for each, size in zip(dims, _declared(detail, form), strict=False)
        ]
        if name in form.nchw and len(sizes) == len(detail["shape"]):
            sizes = [sizes[i] for i in Layout.FIRST.inverse(len(sizes))]
        if len(sizes) == len(detail["shape"]) and sizes != list(detail["shape"]):
            interpreter.resize_tensor_input(detail["index"], sizes)


def _declared(detail: dict[str, Any], form: Form) -> tuple[int, ...]:
    """The sizes of an input in the order that the file has."""
    shape = tuple(int(size) for size in detail["shape"])
    return Layout.FIRST.shape(shape) if detail["name"] in form.nchw else shape


def _as_onnx(array: Array) -> Array:
    """Strings as text, complex numbers as pairs."""
    if array.dtype.kind in "OS":
        words = np.empty(array.size, object)
        words[:] = [each.decode("utf-8", "replace") for each in array.reshape(-1)]
        return words.reshape(array.shape)
    return paired(array)


def _as_tensor(value: Array, right: Array) -> Array:
    if right.dtype.kind == "c" and value.dtype.kind == "f":
        return np.ascontiguousarray(value).view(right.dtype)[..., 0]
    return value.reshape(right.shape) if value.size == right.size else value


def _moved(output: str | os.PathLike[str] | None) -> Path | None:
    """Where a file that is off goes: to ``name.off.onnx``."""
    if output is None:
        return None
    path = Path(output)
    return move(path, path.with_suffix(f".off{path.suffix}"))
