"""Arrays for a model's inputs and from its outputs: drawn, read from files, written to files."""

from __future__ import annotations

import re
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tflite_ort.files import writing
from tflite_ort.optional import optional_module
from tflite_ort.schema import BridgeError

Array = npt.NDArray[Any]
# What get_input_details and get_output_details say of one tensor.
Details = Mapping[str, Any]

_TOP = 5
_LONGEST_NAME = 200
# What numpy and its libraries raise for a file that is not theirs, or is damaged.
_DAMAGED = (
    *(ValueError, EOFError, KeyError, IndexError, OverflowError, TypeError, SyntaxError),
    *(MemoryError, RecursionError, RuntimeError, NotImplementedError),
    *(zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError),
)
_PILLOW_MODES = {1: "L", 3: "RGB", 4: "RGBA"}
_EXTENDED_FLOATS = (np.dtype(ml_dtypes.bfloat16),)


class InputError(BridgeError, ValueError):
    """A file given as an input cannot be one of this model's."""


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


@dataclass(frozen=True, slots=True)
class Normalization:
    """How pixels 0..255 become real values, (pixel - mean) / std, per channel or one for all."""

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (255.0,)


# Read --------------------------------------------------------------------------------------------


def read_inputs(
    given: Sequence[str], details: Sequence[Details], normalization: Normalization | None = None
) -> dict[int, Array]:
    """The arrays that ``NAME=FILE`` and ``FILE`` stand for, by tensor index.

    A ``FILE`` alone is the first input that has no file yet; an ``.npz`` alone has inputs by name.

    Raises:
        InputError: a name is no input's, or a file's content does not fit its input.
    """
    waiting = {str(each["name"]): each for each in details}
    arrays: dict[int, Array] = {}

    def accept(name: str, path: Path, array: Array | None = None) -> None:
        if name not in waiting:
            raise InputError(f"no input {name!r} to set; inputs left: {_listed(waiting)}")
        each = waiting.pop(name)
        if array is None:
            array = _read(path, each, normalization)
        arrays[int(each["index"])] = _fitted(array, each, path)

    alone: list[Path] = []
    for text in given:
        name, equals, file = text.partition("=")
        if name in waiting or (equals and not Path(text).exists()):
            accept(name, Path(file))
        elif text.endswith(".npz"):
            for name, array in _read_npz(Path(text)).items():
                accept(name, Path(text), array)
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
        arrays = list(_read_npz(path).values())
        if len(arrays) != 1:
            raise InputError(f"{path} has {len(arrays)} arrays, one input takes 1")
        return arrays[0]
    if path.suffix == ".npy":
        array = _loaded(path)
        if not isinstance(array, np.ndarray):
            raise InputError(f"{path} is an .npz archive")
        return array
    return read_image(path, details, normalization)


def _read_npz(path: Path) -> dict[str, Array]:
    archive = _loaded(path)
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise InputError(f"{path} is not an .npz archive")
    try:
        with archive:
            return {name: np.asarray(archive[name]) for name in archive.files}
    except _DAMAGED as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def _loaded(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except _DAMAGED as error:
        raise InputError(f"{path} is not a numpy file, or holds Python objects") from error


def _fitted(array: Array, details: Details, path: Path) -> Array:
    """`array` in the dtype and a shape of its input: a batch of 1 may be left out."""
    name, dtype = details["name"], np.dtype(details["dtype"])
    signature = tuple(int(size) for size in details["shape_signature"])
    if array.ndim + 1 == len(signature) and signature[0] in (-1, 1):
        array = array[np.newaxis]
    fits = array.ndim == len(signature) and all(
        declared in (-1, size) for declared, size in zip(signature, array.shape, strict=True)
    )
    if not fits:
        raise InputError(f"{path} has shape {array.shape}, input {name!r} takes {signature}")
    if array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize:
        array = array.view(dtype)  # numpy stores bfloat16 as two bytes without a name
    if not _castable(array, dtype):
        raise InputError(f"{path} holds {array.dtype}, input {name!r} takes {_dtype_name(dtype)}")
    if array.dtype.kind == "U":
        array = np.strings.encode(array, "utf-8")
    return array.astype(object if dtype.kind == "S" else dtype)


def _castable(array: Array, dtype: np.dtype[Any]) -> bool:
    """Whether values keep their meaning: no fractions cut, no integers wrapped."""
    if dtype.kind in "OS" or array.dtype == dtype:
        return array.dtype.kind in "OSU" or array.dtype == dtype
    if array.dtype.kind in "iu" and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return not array.size or (array.min() >= limits.min and array.max() <= limits.max)
    if dtype.kind in "fc" or dtype in _EXTENDED_FLOATS:
        return array.dtype.kind in "iuf" or array.dtype in _EXTENDED_FLOATS
    return False


# Images ------------------------------------------------------------------------------------------


def read_image(path: Path, details: Details, normalization: Normalization | None = None) -> Array:
    """An image as input [1, H, W, C]: resized to H x W, converted to C channels.

    Pixels go to uint8 as they are, to int8 less 128, to floats as 0..1. With a `normalization`
    they are real values, which a quantised input stores by its own scale and zero point.

    Raises:
        InputError: Pillow is missing, the file is no image, or the input takes none.
    """
    pillow = optional_module("PIL.Image")
    if pillow is None:
        raise InputError(f"reading the image {path} needs Pillow: pip install pillow")
    height, width, channels = _image_size(details)
    image = _decoded(pillow, path, channels)
    size = (image.width if width < 0 else width, image.height if height < 0 else height)
    pixels = np.asarray(image.resize(size, pillow.Resampling.BILINEAR))
    pixels = pixels.reshape(size[1], size[0], channels)
    return _pixel_values(pixels, details, normalization).reshape(
        (1,) * (len(details["shape"]) - 3) + pixels.shape
    )


def _decoded(pillow: Any, path: Path, channels: int) -> Any:
    """Pillow's image of the file, with so many channels."""
    try:
        with pillow.open(path) as file:
            return file.convert(_PILLOW_MODES[channels])
    except pillow.DecompressionBombError as error:
        raise InputError(f"{path} is too large: {error}") from error
    except (*_DAMAGED, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # not about what is in the file
            raise
        raise InputError(f"{path} is not an image that can be read") from error


def _image_size(details: Details) -> tuple[int, int, int]:
    """(H, W, C) of an input; H or W is -1 where the model takes any."""
    signature = tuple(int(size) for size in details["shape_signature"])
    if len(signature) not in (3, 4) or signature[-1] not in _PILLOW_MODES:
        raise InputError(
            f"input {details['name']!r} with shape {signature} takes no image: "
            "that needs [1, H, W, C] with 1, 3 or 4 channels"
        )
    height, width, channels = signature[-3:]
    return height, width, channels


def _pixel_values(pixels: Array, details: Details, normalization: Normalization | None) -> Array:
    dtype: np.dtype[Any] = np.dtype(details["dtype"])
    scales = _scales(details)
    if normalization is None and dtype == np.uint8:
        return pixels
    if normalization is None and dtype == np.int8:
        return (pixels.astype(np.int16) - 128).astype(np.int8)
    normalization = normalization or Normalization()
    for parameter in (normalization.mean, normalization.std):
        if len(parameter) not in (1, pixels.shape[-1]):
            raise InputError(f"{len(parameter)} values given for {pixels.shape[-1]} channels")
    real: Array = (pixels - np.array(normalization.mean)) / np.array(normalization.std)
    if dtype.kind == "f":
        return real.astype(dtype)
    if dtype.kind not in "iu" or not scales.size:
        raise InputError(f"input {details['name']!r} of {_dtype_name(dtype)} takes no image")
    limits = np.iinfo(dtype)
    zero_point = int(details["quantization_parameters"]["zero_points"][0])
    stored: Array = np.round(real / scales[0]) + zero_point
    return stored.clip(limits.min, limits.max).astype(dtype)


# Written -----------------------------------------------------------------------------------------


def write_outputs(target: Path, outputs: Mapping[str, Array]) -> list[Path]:
    """Write arrays to one ``.npz``, or to one ``.npy`` each in a folder, which is made.

    Returns:
        The files written.
    """
    if target.suffix == ".npz":
        # Not np.savez: it takes names as keyword arguments, and some are its own.
        with writing(target) as (stream,), zipfile.ZipFile(stream, "w") as archive:
            for name, array in zip(_entry_names(outputs), outputs.values(), strict=True):
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


def unique_names(details: Sequence[Details]) -> list[str]:
    """The tensors' names, with the position added to a name that occurs twice."""
    names = [str(each["name"]) for each in details]
    return [
        name if names.count(name) == 1 else f"{name}_{position}"
        for position, name in enumerate(names)
    ]


def _storable(array: Array) -> Array:
    return array.astype(np.bytes_) if array.dtype.kind == "O" else array


def _file_name(name: str) -> str:
    return re.sub(r"[^\w.-]+", "_", name).strip("_.")[:_LONGEST_NAME] or "output"


def _entry_names(names: Iterable[str]) -> list[str]:
    """`names` as those of files in an archive: what unpacks it writes none outside its folder."""
    safe = [_entry_name(name) for name in names]
    same = {name for name in safe if safe.count(name) > 1}
    return [f"{i}_{name}" if name in same else name for i, name in enumerate(safe)]


def _entry_name(name: str) -> str:
    """Relative, without ``..``, drives and control characters; other names stay as they are."""
    plain = "".join(c if c.isprintable() else "_" for c in name)[:_LONGEST_NAME]
    parts = re.sub(r"^([A-Za-z]):(?=[/\\])", r"\1_", plain).replace("\\", "/").split("/")
    return (
        "/".join("_" * max(len(part), 1) if part in ("", ".", "..") else part for part in parts)
        or "_"
    )


def _scales(details: Details) -> Array:
    return np.asarray(details["quantization_parameters"]["scales"])


def _dtype_name(dtype: np.dtype[Any]) -> str:
    return "strings" if dtype.kind in "OS" else dtype.name


def _listed(waiting: Mapping[str, Details]) -> str:
    return ", ".join(map(repr, waiting)) or "none"
