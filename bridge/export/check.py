"""Whether an exported file gives what the interpreter gives."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from tflite_ort.base.files import move
from tflite_ort.comparison.differences import Difference, Tolerance, badness, difference
from tflite_ort.comparison.drawn import random_inputs
from tflite_ort.comparison.index_limits import index_limits
from tflite_ort.export.form import Form
from tflite_ort.interpreter.interpreter import Interpreter
from tflite_ort.opmap import Layout
from tflite_ort.providers.exported_state import first_state
from tflite_ort.providers.onnx_file import OnnxSession
from tflite_ort.schema import (
    BridgeError,
    DelegateError,
    ExportError,
    Model,
    TensorView,
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
# So many further sizes are tried until the model takes one.
_FURTHER = 3
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
    hybrid: str | None = None,
    resolver: OpResolver | None = None,
    seed: int = 0,
    tolerance: Tolerance | None = None,
    form: Form | None = None,
) -> dict[str, Difference]:
    """Run an exported model and the interpreter on the same random inputs; where sizes are open,
    once more with other sizes that the model takes.

    Args:
        proto, output: what `export_onnx` returned, and where it wrote it.
        model: what was exported.
        form: how it was written.

    Returns:
        The largest difference from the interpreter's of each output, by its name.

    Raises:
        ExportMismatch: a difference exceeds the tolerance, or ONNX Runtime cannot run the file,
            which then has ``.off`` before its suffix.
        ExportError: the interpreter refuses all random inputs that were tried.
        BridgeError: the interpreter cannot run the model.
    """
    form, worst = form or Form(), dict[str, Difference]()
    allowed = tolerance or (_HALF if form.float16 else _TOLERANCE)
    given = {"hybrid": form.computed(hybrid), "resolver": resolver}
    try:
        # Signed weights are for other devices: what a CPU without VNNI makes of them says nothing.
        folder = None if output is None else Path(output).absolute().parent
        session = OnnxSession(proto, folder, precise=True)
        for sizes, found in _differences(session, proto, model, seed, form, given):
            _check_within(found, allowed, sizes, output)
            worst |= {
                name: max(worst.get(name, each), each, key=badness) for name, each in found.items()
            }
    except DelegateError as error:
        raise ExportMismatch(f"the exported file does not run: {error}", _moved(output)) from error
    return worst


def _check_within(
    found: Mapping[str, Difference],
    allowed: Tolerance,
    sizes: Mapping[str, int],
    output: str | os.PathLike[str] | None,
) -> None:
    """
    Raises:
        ExportMismatch: an output differs by more than is allowed.
    """
    off = {n: each for n, each in found.items() if not each.within(allowed)}
    if off:
        name, far = max(off.items(), key=lambda pair: badness(pair[1]))
        where = f" with the sizes {dict(sizes)}" if sizes else ""
        text = f"output {name!r} differs from the interpreter's by {far.words}{where}"
        raise ExportMismatch(text, _moved(output))


def _differences(
    session: OnnxSession,
    proto: onnx.ModelProto,
    model: Model,
    seed: int,
    form: Form,
    options: Mapping[str, Any],
) -> Iterator[tuple[Mapping[str, int], dict[str, Difference]]]:
    """The differences of all outputs: with the sizes of the model, and where some are open, which
    are named then, with the first others that the model takes."""
    views, limits = tensor_views(model, 0), index_limits(model)
    content, sizes = write_model(with_own_data(model)), _Sizes(proto, form)
    tried, refused = set[tuple[int, ...]](), None
    with closing(
        Interpreter(model_content=content, budgets=model.budgets, **options)
    ) as interpreter:
        in_file = interpreter.get_input_details()
        for change in range(1 + _FURTHER):
            named = dict[str, int]()
            try:
                for detail in in_file:
                    shape = sizes.shape(detail, change, named)
                    if change or shape != list(detail["shape"]):
                        interpreter.resize_tensor_input(detail["index"], shape)
                details = interpreter.get_input_details()
                interpreter.allocate_tensors()
                interpreter.reset_all_variables()
                arrays = _invoked(interpreter, details, seed, limits)
            except BridgeError as error:
                refused = error
            else:
                tried.add(tuple(named.values()))
                values = [_as_onnx(arrays[each["index"]]) for each in details]
                laid = [each["name"] in form.nchw for each in details]
                fed = zip(session.inputs, map(_laid, values, laid), strict=False)
                found = session.run({**(sizes.states(named) if change else {}), **dict(fed)})
                yield named, _output_differences(session, found, interpreter, views, form)
            if not named or len(tried) > 1:
                break
    if refused is not None and not tried:
        raise refused


def _output_differences(
    session: OnnxSession,
    values: Sequence[Any],
    interpreter: Interpreter,
    views: Sequence[TensorView],
    form: Form,
) -> dict[str, Difference]:
    """The difference of each output; of states, which come after them, none."""
    found = dict[str, Difference]()
    outputs = interpreter.get_output_details()
    for name, value, detail in zip(session.outputs, values, outputs, strict=False):
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


class _Sizes:
    """The sizes of the inputs of an exported file."""

    def __init__(self, proto: onnx.ModelProto, form: Form) -> None:
        self._form, self._first = form, first_state(proto)
        self._declared = {each.name: each.type.tensor_type.shape.dim for each in proto.graph.input}

    def shape(self, detail: Mapping[str, Any], change: int, named: dict[str, int]) -> list[int]:
        """The shape of an input: what the file fixes, and for open sizes those of the model, or for
        a `change` others, which are added to `named`."""
        name, shape = detail["name"], [int(size) for size in detail["shape"]]
        dims, first = self._declared.get(self._form.rename.get(name, name)), name in self._form.nchw
        if dims is None or len(dims) != len(shape):
            return shape
        sizes = []
        for dim, size in zip(dims, Layout.FIRST.shape(shape) if first else shape, strict=True):
            if dim.HasField("dim_value"):
                sizes.append(dim.dim_value)
                continue
            other = (size, 2 * size, size + 1, size + 3)[change]
            sizes.append(named.setdefault(dim.dim_param, other))
        return [sizes[i] for i in Layout.FIRST.inverse(len(sizes))] if first else sizes

    def states(self, named: Mapping[str, int]) -> dict[str, Array]:
        """The first state: a row for each sample where the batch is open."""
        found = {}
        for name, array in self._first.items():
            lead = self._declared[name][0] if array.ndim else None
            rows = 1 if lead is None or lead.HasField("dim_value") else named.get(lead.dim_param, 1)
            found[name] = np.tile(array, (rows, *[1] * (array.ndim - 1))) if array.ndim else array
        return found


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
