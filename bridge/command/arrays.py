"""Arrays for a model's inputs and from its outputs: drawn, read from files, written to files."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tflite_ort.files import writing
from tflite_ort.prediction.array_files import (
    Details,
    InputError,
    entry_names,
    fitted,
    loaded_array,
    read_npz,
)
from tflite_ort.prediction.images import Normalization, read_image

Array = npt.NDArray[Any]

_TOP = 5
_LONGEST_NAME = 200


class AnyInterpreter(Protocol):
    """What `Interpreter` has in common with TFLite's own."""

    def allocate_tensors(self) -> None:
        """Make the model ready for its present input shapes."""

    def get_input_details(self) -> list[dict[str, Any]]:
        """One dictionary per input: name, index, shape, dtype, quantization and more."""

    def get_output_details(self) -> list[dict[str, Any]]:
        """As `get_input_details`, per output."""

    def resize_tensor_input(self, input_index: int, tensor_size: Sequence[int]) -> None:
        """Give an input a new shape; `allocate_tensors` has to follow."""

    def set_tensor(self, tensor_index: int, value: Any) -> None:
        """Copy `value` into an input, whose dtype and shape it has."""

    def get_tensor(self, tensor_index: int) -> Any:
        """A copy of a tensor."""

    def invoke(self) -> None:
        """Run the model once."""


# Read --------------------------------------------------------------------------------------------


def read_inputs(
    given: Sequence[str], details: Sequence[Details], normalization: Normalization | None = None
) -> dict[int, Array]:
    """The arrays that ``NAME=FILE`` and ``FILE`` stand for, by tensor index.

    A ``FILE`` alone is the first input that has no file yet; an ``.npz`` alone has inputs by name,
    or by the name that `write_outputs` gives them in an archive.

    Raises:
        InputError: a name is no input's, or a file's content does not fit its input.
    """
    waiting = {str(each["name"]): each for each in details}
    stored = dict(zip(entry_names(waiting), waiting, strict=True))
    arrays: dict[int, Array] = {}

    def accept(name: str, path: Path, array: Array | None = None) -> None:
        if name not in waiting:
            raise InputError(f"no input {name!r} to set; inputs left: {_listed(waiting)}")
        each = waiting.pop(name)
        if array is None:
            array = _read(path, each, normalization)
        arrays[int(each["index"])] = fitted(array, each, path)

    alone: list[Path] = []
    for text in given:
        name, equals, file = text.partition("=")
        if name in waiting or (equals and not Path(text).exists()):
            accept(name, Path(file))
        elif text.endswith(".npz"):
            for name, array in read_npz(Path(text)).items():
                accept(name if name in waiting else stored.get(name, name), Path(text), array)
        else:
            alone.append(Path(text))
    for path in alone:
        accept(next(iter(waiting), str(path)), path)
    return arrays


def set_inputs(interpreter: AnyInterpreter, arrays: Mapping[int, Array]) -> None:
    """Allocate `interpreter` for the shapes of `arrays` and copy them in."""
    for each in interpreter.get_input_details():
        array = arrays[each["index"]]
        if tuple(each["shape"]) != array.shape:
            interpreter.resize_tensor_input(each["index"], array.shape)
    interpreter.allocate_tensors()
    for index, array in arrays.items():
        interpreter.set_tensor(index, array)


def _read(path: Path, details: Details, normalization: Normalization | None) -> Array:
    if path.suffix == ".npz":
        arrays = list(read_npz(path).values())
        if len(arrays) != 1:
            raise InputError(f"{path} has {len(arrays)} arrays, one input takes 1")
        return arrays[0]
    if path.suffix == ".npy":
        return loaded_array(path)
    return read_image(path, details, normalization)


# Written -----------------------------------------------------------------------------------------


def write_outputs(target: Path, outputs: Mapping[str, Array]) -> list[Path]:
    """Write arrays to one ``.npz``, or to one ``.npy`` each in a folder, which is made.

    Returns:
        The files written.
    """
    if target.suffix == ".npz":
        # Not np.savez: it takes names as keyword arguments, and some are its own.
        with writing(target) as (stream,), zipfile.ZipFile(stream, "w") as archive:
            for name, array in zip(entry_names(outputs), outputs.values(), strict=True):
                with archive.open(f"{name}.npy", "w") as file:
                    np.lib.format.write_array(file, _storable(array), allow_pickle=False)
        return [target]
    target.mkdir(parents=True, exist_ok=True)
    files = [target / f"{_file_name(name)}.npy" for name in outputs]
    if len({str(file).lower() for file in files}) < len(files):
        files = [file.with_stem(f"{i}_{file.stem}") for i, file in enumerate(files)]
    for path, array in zip(files, outputs.values(), strict=True):
        with writing(path) as (stream,):
            np.save(stream, _storable(array), allow_pickle=False)
    return files


def top_scores(array: Array, details: Details) -> str:
    """``index score`` of the largest real values of a vector (leading dimensions of 1 aside)."""
    if array.ndim == 0 or array.size != array.shape[-1] or array.size < 2:
        return ""
    if array.dtype.kind in "OSUcb":
        return ""
    scale, zero_point = details["quantization"]
    scores = array.reshape(-1).astype(np.float64)
    scores = (scores - zero_point) * scale if scale else scores
    best = np.argsort(-scores, kind="stable")[:_TOP]
    return ", ".join(f"[{index}] {scores[index]:.4g}" for index in best)


def _storable(array: Array) -> Array:
    return array.astype(np.bytes_) if array.dtype.kind == "O" else array


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name).strip("_.")[:_LONGEST_NAME] or "output"


def _listed(waiting: Mapping[str, Details]) -> str:
    return ", ".join(map(repr, waiting)) or "none"
