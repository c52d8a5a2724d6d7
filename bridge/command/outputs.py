"""What a model gave: as texts for a terminal, as JSON, and as files of the kind that is named."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.files import write_bytes
from tflite_ort.base.suggestions import suggestion
from tflite_ort.command.arrays import storable, write_outputs
from tflite_ort.metadata import TensorDescription
from tflite_ort.prediction.array_files import Details, InputError
from tflite_ort.prediction.map_pictures import picture_of
from tflite_ort.prediction.tensors import names_values

Array = npt.NDArray[Any]

STDOUT = "-"
_KINDS = (".npy", ".npz", ".json", ".png", ".jpg", ".jpeg")
_TOP = 5
# Of how many elements all are shown, and how many of the classes of a map.
_SMALL = 16
_CLASSES = 8
# JSON on a terminal has the values of outputs up to this size; a file has all.
_VALUES = 1000


@dataclass(frozen=True, slots=True)
class Output:
    """An output and its value.

    Args:
        name: unique among the outputs.
        description: what the model's metadata say of it; None without.
    """

    name: str
    value: Array
    details: Details
    description: TensorDescription | None = None

    @property
    def text(self) -> bool:
        """Whether its elements are strings."""
        return self.value.dtype.kind in "OSU"

    @property
    def labels(self) -> Sequence[str]:
        """What the places of the last axis are called; empty where that is not known."""
        labels = () if self.description is None else self.description.labels
        if self.description is not None and names_values(self.description):
            return ()
        return labels if self.value.ndim and len(labels) == self.value.shape[-1] else ()

    @property
    def value_names(self) -> Sequence[str]:
        """What the values, numbers from 0 on, are called; empty where that is not known."""
        known = self.description is not None and names_values(self.description)
        labels = self.description.labels if known and self.description is not None else ()
        if not labels or self.value.size > _SMALL or self.value.dtype.kind not in "iuf":
            return ()
        numbers = self.real.reshape(-1)
        numbers = np.round(numbers, 6) if numbers.dtype == np.float64 else numbers  # by a scale
        whole = numbers == np.floor(numbers)  # no fractions, no NaN
        within = whole & (numbers >= 0) & (numbers < len(labels))
        return [labels[int(each)] for each in numbers] if within.all() else ()

    @property
    def real(self) -> Array:
        """The value in real numbers."""
        scale, zero_point = self.details["quantization"]
        return (self.value.astype(np.float64) - zero_point) * scale if scale else self.value

    def statistics(self) -> tuple[float, float, float] | None:
        """Least, greatest and mean element; None of strings, of complex numbers and of nothing."""
        if not self.value.size or self.value.dtype.kind in "OSUc":
            return None
        wide = self.value.astype(np.float64)
        return float(wide.min()), float(wide.max()), float(wide.mean())

    def top(self) -> list[dict[str, Any]]:
        """The largest real values of a vector (leading dimensions of 1 aside), with their labels;
        empty of anything else."""
        if self.value.ndim == 0 or self.value.size != self.value.shape[-1] or self.value.size < 2:
            return []
        if self.value.dtype.kind in "OSUcb" or self.value_names:
            return []
        scores = self.real.reshape(-1).astype(np.float64)
        best = np.argsort(-scores, kind="stable")[:_TOP]
        return [{"index": int(i), **self._label(int(i)), "score": float(scores[i])} for i in best]

    def shares(self) -> list[dict[str, Any]]:
        """Of a map of scores, how much of it each class has, the largest first; empty of anything
        else and of maps without labels."""
        if self.value.ndim < 3 or not self.labels or self.value.size == self.value.shape[-1]:
            return []
        classes = self.value.argmax(axis=-1)
        counts = np.bincount(classes.reshape(-1), minlength=len(self.labels))
        order = np.argsort(-counts, kind="stable")[:_CLASSES]
        return [
            {"index": int(i), **self._label(int(i)), "share": float(counts[i] / classes.size)}
            for i in order
            if counts[i]
        ]

    def _label(self, index: int) -> dict[str, str]:
        return {"label": self.labels[index]} if self.labels else {}


def text_of(output: Output) -> str:
    """One line on what an output holds; empty of large ones that nothing is known of."""
    if names := output.value_names:
        return f"{output.name} = {', '.join(names)}"
    if top := output.top():
        listed = ", ".join(f"{_called(each)} {each['score']:.4g}" for each in top)
        return f"top of {output.name}: {listed}"
    if shares := output.shares():
        listed = ", ".join(f"{_called(each)} {each['share']:.1%}" for each in shares)
        return f"classes of {output.name}: {listed}"
    if 0 < output.value.size <= _SMALL:
        return f"{output.name} = {_values_text(output)}"
    return ""


def _called(each: Mapping[str, Any]) -> str:
    return str(each.get("label") or f"[{each['index']}]")


def _values_text(output: Output) -> str:
    if output.text:
        return json.dumps(_plain(output.value), ensure_ascii=False)
    return np.array2string(
        output.value, max_line_width=10**6, precision=6, separator=", ", threshold=_SMALL + 1
    ).replace("\n", "")


# JSON --------------------------------------------------------------------------------------------


def as_json(outputs: Sequence[Output], *, limit: int | None = _VALUES) -> dict[str, Any]:
    """The outputs by name, each with its type, shape, answer and values.

    Args:
        limit: larger outputs have no ``values``; None: all have.
    """
    return {each.name: _record(each, limit) for each in outputs}


def _record(output: Output, limit: int | None) -> dict[str, Any]:
    dtype = "string" if output.text else output.value.dtype.name
    found: dict[str, Any] = {"dtype": dtype, "shape": list(output.value.shape)}
    if numbers := output.statistics():
        found |= dict(zip(("min", "max", "mean"), map(_number, numbers), strict=True))
    found |= {key: rows for key, rows in _rows(output).items() if rows}
    if limit is None or output.value.size <= limit:
        found["values"] = _plain(output.value)
    return found


def _rows(output: Output) -> dict[str, Any]:
    rows: dict[str, Any] = {"top": output.top(), "classes": output.shares()}
    for each in rows["top"]:
        each["score"] = _number(each["score"])
    return {**rows, "labels": list(output.value_names)}


def _plain(array: Array) -> Any:
    """Nested lists; strings as text, complex numbers as pairs, what is no number as None."""
    if array.dtype.kind in "OSU":
        words = [
            w.decode("utf-8", "replace") if isinstance(w, bytes) else w for w in array.reshape(-1)
        ]
        return np.array([*words, None], object)[:-1].reshape(array.shape).tolist()
    if array.dtype.kind == "c":
        return _plain(np.stack([array.real, array.imag], axis=-1))
    if array.dtype.kind not in "biu":
        wide = array.astype(np.float64) if array.dtype.kind != "f" else array
        if np.isfinite(wide).all():
            return wide.tolist()
        numbers = wide.astype(object)
        numbers[~np.isfinite(wide)] = None
        return numbers.tolist()
    return array.tolist()


def _number(value: float) -> float | None:
    return value if np.isfinite(value) else None


# Files -------------------------------------------------------------------------------------------


def check_target(target: str) -> None:
    """Refuse a file that cannot be written, before the model runs.

    Raises:
        InputError: it has another suffix, or its folder is not there.
    """
    suffix = Path(target).suffix.lower()
    if target == STDOUT or _is_folder(target):
        return
    if suffix in _KINDS:
        if not Path(target).parent.is_dir():
            raise InputError(f"--output {target}: there is no folder {Path(target).parent}")
        return
    raise InputError(
        f"--output {target} has no known kind: {', '.join(_KINDS)}, a folder that is there, "
        f"or {STDOUT}{suggestion(suffix, _KINDS)}"
    )


def save(target: str, outputs: Sequence[Output]) -> list[str]:
    """Write outputs to one file of the kind that its suffix names, to one ``.npy`` each in a folder
    that is there, or to standard output: ``.npy`` of one output, ``.npz`` of several.

    Returns:
        What was written, for people.

    Raises:
        InputError: outputs of another number or shape than the kind holds.
    """
    arrays = {each.name: each.value for each in outputs}
    suffix = Path(target).suffix.lower()
    if target == STDOUT:
        sys.stdout.flush()
        sys.stdout.buffer.write(_stream(arrays))
        return []
    if suffix == ".npz" or _is_folder(target):
        return [str(path) for path in write_outputs(Path(target), arrays)]
    if suffix == ".json":
        write_bytes(target, json.dumps(as_json(outputs, limit=None)).encode() + b"\n")
        return [target]
    if len(outputs) != 1:
        names = ", ".join(each.name for each in outputs)
        raise InputError(
            f"a {suffix} file holds one output, there are {len(outputs)}: {names}; "
            "--output NAME=FILE writes one of them, and an .npz file holds all"
        )
    if suffix == ".npy":
        write_bytes(target, _stream(arrays))
        return [target]
    content, said = picture_of(outputs[0].value, f"output {outputs[0].name!r}")
    write_bytes(target, content)
    return [f"{target} ({said})"]


def _stream(arrays: Mapping[str, Array]) -> bytes:
    """The bytes of an ``.npy`` file, or of an ``.npz`` file if there are several."""
    stream = io.BytesIO()
    plain = [storable(each) for each in arrays.values()]
    if len(plain) == 1:
        np.lib.format.write_array(stream, plain[0], allow_pickle=False)
    else:
        write_outputs(stream, arrays)
    return stream.getvalue()


def file_at(target: str, name: str) -> str:
    """`target`, or the file `name` in it if it is a folder."""
    return str(Path(target) / name) if target != STDOUT and _is_folder(target) else target


def _is_folder(target: str) -> bool:
    return target.endswith(("/", "\\")) or Path(target).is_dir()
