"""Arrays for a model's inputs and from its outputs: drawn, read from files, written to files."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import numpy.typing as npt

from tflite_ort.base.files import made_folder, writing
from tflite_ort.base.suggestions import suggestion
from tflite_ort.prediction.array_files import (
    InputError,
    dtype_name,
    entry_names,
    fitted,
    loaded_array,
    read_npz,
)
from tflite_ort.prediction.images import read_image
from tflite_ort.prediction.pictures import picture_text
from tflite_ort.prediction.preparation import Preparation
from tflite_ort.prediction.sound import open_wav
from tflite_ort.prediction.tensors import InputColumn

Array = npt.NDArray[Any]
# Takes one sentence.
Tell = Callable[[str], None]

# Files as the model's metadata say.
PLAIN = Preparation()

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
    given: Sequence[str],
    columns: Sequence[InputColumn],
    preparation: Preparation = PLAIN,
    tell: Tell | None = None,
) -> dict[int, Array]:
    """The arrays that ``NAME=FILE`` and ``FILE`` stand for, by tensor index.

    A ``FILE`` alone is the first input that has no file yet; an ``.npz`` alone has inputs by name,
    or by the name that `write_outputs` gives them in an archive.

    Args:
        tell: takes a sentence on what was done to a picture or a sound.

    Raises:
        InputError: a name is no input's, or a file's content does not fit its input.
    """
    waiting = {each.name: each for each in columns}
    stored = dict(zip(entry_names(waiting), waiting, strict=True))
    arrays: dict[int, Array] = {}

    def accept(name: str, path: Path, array: Array | None = None) -> None:
        if name not in waiting:
            raise InputError(
                f"no input {name!r} to set; inputs left: {_listed(waiting)}"
                f"{suggestion(name, waiting)}"
            )
        each = waiting.pop(name)
        if array is None:
            array = _read(path, each, preparation, tell)
        taken = fitted(array, each.details, path)
        if tell is not None and array.dtype.kind in "biuf" and taken.dtype != array.dtype:
            tell(f"{name}: {path.name} holds {array.dtype}, taken as {dtype_name(taken.dtype)}")
        arrays[int(each.details["index"])] = taken

    alone: list[Path] = []
    for text in given:
        name, equals, file = text.partition("=")
        if equals and (name in waiting or not Path(text).exists()):
            accept(name, Path(file))
        elif text.lower().endswith(".npz"):
            for name, array in read_npz(Path(text)).items():
                accept(name if name in waiting else stored.get(name, name), Path(text), array)
        else:
            alone.append(Path(text))
    if len(alone) > len(waiting):
        raise InputError(
            f"a run takes one file for each input, and the model has {len(columns)}: nothing takes "
            f"{alone[len(waiting)]}; tflite-ort predict runs a model over many files"
        )
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


def _read(path: Path, column: InputColumn, how: Preparation, tell: Tell | None) -> Array:
    if path.is_dir():
        raise InputError(f"{path} is a folder, an input is one file; predict reads folders")
    if path.suffix.lower() == ".npz":
        arrays = list(read_npz(path).values())
        if len(arrays) != 1:
            raise InputError(f"{path} has {len(arrays)} arrays, one input takes 1")
        return arrays[0]
    if path.suffix.lower() == ".npy":
        return loaded_array(path)
    if path.suffix.lower() == ".wav":
        array, said = _heard(path, column, how)
    else:
        picture = how.picture_of(column)
        array = read_image(path, column.details, picture)
        first = picture is not None and picture.channels_first
        height, width = array.shape[-2:] if first else array.shape[-3:-1]
        said = f"{width}x{height}"
        said += "" if picture is None else f", {picture_text(picture)}"
    if tell is not None:
        tell(f"{column.name}: {path.name} as {said}")
    return array


def _heard(path: Path, column: InputColumn, how: Preparation) -> tuple[Array, str]:
    """The first stretch of a sound that an input takes, and what is said of it."""
    wav, ear = open_wav(path), how.ear_of(column)
    array = next(ear.stretches(wav))
    rate = ear.rate or wav.rate
    seconds, whole = array.size / ear.channels / rate, wav.frames / wav.rate
    said = f"{array.size // ear.channels} samples at {rate} Hz"
    if ear.rate is None:
        said += " as in the file, since the model names no rate (--rate does)"
    if seconds < whole:
        said += f", the first {seconds:.3g} of {whole:.3g} s"
    return array, said


# Written -----------------------------------------------------------------------------------------


def write_outputs(target: Path | IO[bytes], outputs: Mapping[str, Array]) -> list[Path]:
    """Write arrays to one ``.npz``, or to one ``.npy`` each in a folder, which is made.

    Args:
        target: a path, or the stream of an ``.npz``.

    Returns:
        The files written.
    """
    if not isinstance(target, Path):
        _write_archive(target, outputs)
        return []
    if target.suffix == ".npz":
        with writing(target) as (stream,):
            _write_archive(stream, outputs)
        return [target]
    made_folder(target)
    files = [target / f"{_file_name(name)}.npy" for name in outputs]
    if len({str(file).lower() for file in files}) < len(files):
        files = [file.with_stem(f"{i}_{file.stem}") for i, file in enumerate(files)]
    for path, array in zip(files, outputs.values(), strict=True):
        with writing(path) as (stream,):
            np.save(stream, storable(array), allow_pickle=False)
    return files


def _write_archive(stream: IO[bytes], outputs: Mapping[str, Array]) -> None:
    # Not np.savez: it takes names as keyword arguments, and some are its own.
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in zip(entry_names(outputs), outputs.values(), strict=True):
            with archive.open(f"{name}.npy", "w") as file:
                np.lib.format.write_array(file, storable(array), allow_pickle=False)


def storable(array: Array) -> Array:
    """`array` as numpy's files hold it: strings as bytes of one length."""
    return array.astype(np.bytes_) if array.dtype.kind == "O" else array


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name).strip("_.")[:_LONGEST_NAME] or "output"


def _listed(waiting: Iterable[str]) -> str:
    return ", ".join(map(repr, waiting)) or "none"
