"""TensorFlow's checkpoints. `schema/flex/checkpoints.py` says which files a model may name."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tflite_ort.base.files import made_folder, move, writing
from tflite_ort.fallback_kernels.idioms import checkpoints
from tflite_ort.fallback_kernels.idioms.sorted_tables import Table
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, ModelError, OperatorView
from tflite_ort.schema.values.flex import node_of

View = OperatorView[Any]

# What a model may add to a name that it is given.
_ADDED = re.compile(r"[\w/?-]*")
_TURN = np.zeros((), np.int32)
_MOST_FILES = 4096
_MOST_BYTES = 1 << 30  # of an index


def _not_alone(op: View) -> None:
    """The state of what reads or writes files: it is never computed before a run."""
    if not op.origin:
        raise ModelError(f"{op.label}: inputs that its node does not tell")


def _text(array: Array) -> bytes:
    if array.size != 1:
        raise KernelError(f"{array.size} names of a file, expected one")
    return bytes(array.reshape(-1)[0])


def _path(op: View, inputs: Inputs, name: bytes) -> str:
    """A path as text.

    Raises:
        KernelError: none of the texts that the model is given names it.
    """
    count = sum(map(node_of(op).count, node_of(op).operator.inputs))
    given = [
        bytes(text) for array in inputs[count:] if array.dtype == object for text in array.flat
    ]
    path = os.fsdecode(name)
    if "\0" in path:
        raise KernelError(f"{path!r} is no path")
    for text in filter(None, map(os.fsdecode, given)):
        if path.startswith(text) and _ADDED.fullmatch(path[len(text) :]):
            return path
    raise KernelError(
        f"{path!r} is no path that the model is given: a model reads and writes only files whose "
        "names begin with a text that is an input of its signature"
    )


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError as error:
        raise KernelError(f"{path} cannot be read: {error.strerror or error}") from error


def _read(path: str) -> bytes:
    size = _size(path)
    if size > _MOST_BYTES:
        raise KernelError(f"{path} has {size} bytes")
    return _cut(path, 0, size)


def _cut(path: str, offset: int, size: int) -> bytes:
    """A part of a file."""
    if offset < 0 or not 0 <= size <= _size(path) - offset:
        raise KernelError(f"{path} has no {size} bytes from {offset} on")
    try:
        with open(path, "rb") as stream:
            stream.seek(offset)
            return stream.read(size)
    except OSError as error:
        raise KernelError(f"{path} cannot be read: {error.strerror or error}") from error


def _write(contents: Sequence[tuple[str, bytes]]) -> None:
    """Write files, the first one last."""
    try:
        with writing(*(path for path, _ in contents), again=True) as streams:
            for stream, (_, content) in zip(streams, contents, strict=True):
                stream.write(content)
    except OSError as error:
        raise KernelError(
            f"{contents[0][0]} cannot be written: {error.strerror or error}"
        ) from error


def _parts(names: Array, told: Sequence[bytes], arrays: Sequence[Array]) -> list[Any]:
    keys = [bytes(name) for name in names.reshape(-1)]
    if len(keys) != len(arrays) or len(told) != len(arrays):
        raise KernelError(f"{len(arrays)} tensors, {len(keys)} names, {len(told)} slices")
    whole = [key for key, each in zip(keys, told, strict=True) if not each]
    if len(set(whole)) < len(whole) or b"" in keys:
        raise KernelError("two tensors of one name, or one without a name")
    return [checkpoints.part(*each) for each in zip(keys, arrays, told, strict=True)]


# Files as they are ------------------------------------------------------------------------------


@flex_kernel("ReadFile", state=_not_alone)
def read_file(op: View, inputs: Inputs, state: State) -> Outputs:
    """What a file has."""
    content = np.empty((), np.object_)
    content[()] = _read(_path(op, inputs, _text(inputs[0])))
    return content, _TURN


@flex_kernel("WriteFile", state=_not_alone)
def write_file(op: View, inputs: Inputs, state: State) -> Outputs:
    """Write a file."""
    path = _path(op, inputs, _text(inputs[0]))
    _write([(path, _text(inputs[1]))])
    return (_TURN,)


# Of one file ------------------------------------------------------------------------------------


@flex_kernel("Save", "SaveSlices", state=_not_alone)
def save(op: View, inputs: Inputs, state: State) -> Outputs:
    """Write a checkpoint of one file."""
    node = node_of(op)
    path, names = _path(op, inputs, _text(inputs[0])), inputs[1]
    told = [b""] * names.size
    if op.name == "FlexSaveSlices":
        told = [bytes(each) for each in inputs[2].reshape(-1)]
    arrays = node.inputs(inputs, "data")
    _write([(path, checkpoints.one_file(_parts(names, told, arrays)))])
    return (_TURN,)


@flex_kernel("Restore", "RestoreSlice", state=_not_alone)
def restore(op: View, inputs: Inputs, state: State) -> Outputs:
    """Read a tensor of a checkpoint of one file, or of several that a pattern names."""
    path = _path(op, inputs, _text(inputs[0]))
    told = _text(inputs[2]) if op.name == "FlexRestoreSlice" else b""
    return _restored(op, _files_of(path), [_text(inputs[1])], [told])


def _files_of(pattern: str) -> dict[bytes, Callable[[], Array]]:
    paths = [pattern]
    if not os.path.exists(pattern) and "?" in pattern:
        paths = sorted(glob.glob(pattern.replace("[", "[[]").replace("*", "[*]")))[:_MOST_FILES]
    found: dict[bytes, Callable[[], Array]] = {}
    for path in paths:
        table = Table(partial(_cut, path), _size(path), path)
        found |= checkpoints.read_one_file(table, path)
    return found


def _restored(
    op: View,
    tensors: dict[bytes, Callable[[], Array]],
    names: Sequence[bytes],
    told: Sequence[bytes],
) -> Outputs:
    """The tensors of these names, or slices of them."""
    results = []
    for name, each, output in zip(names, told, op.outputs, strict=False):
        if name not in tensors:
            raise KernelError(f"the checkpoint has no tensor {name.decode(errors='replace')!r}")
        array = tensors[name]()
        if array.dtype != output.dtype:
            raise KernelError(f"{name!r} is {array.dtype}, expected {output.dtype}")
        if each:
            shape, where = checkpoints.told_slice(each)
            if shape != array.shape:
                raise KernelError(f"{name!r} has shape {array.shape}, expected {shape}")
            array = array[checkpoints.cells(where)]
        results.append(array)
    return (*results, _TURN)


# An index beside files of data ------------------------------------------------------------------


def _data(prefix: str, shard: int, shards: int) -> str:
    return f"{prefix}.data-{shard:05d}-of-{shards:05d}"


@flex_kernel("SaveV2", state=_not_alone)
def save_v2(op: View, inputs: Inputs, state: State) -> Outputs:
    """Write an index and a file of data."""
    prefix = _path(op, inputs, _text(inputs[0]))
    told = [bytes(each) for each in inputs[2].reshape(-1)]
    parts = _parts(inputs[1], told, node_of(op).inputs(inputs, "tensors"))
    index, data = checkpoints.indexed(parts)
    folder = os.path.dirname(prefix)
    try:
        made_folder(folder or ".")
    except OSError as error:
        raise KernelError(f"{folder} cannot be made: {error.strerror or error}") from error
    _write([(f"{prefix}.index", index), (_data(prefix, 0, 1), data)])
    return (_TURN,)


@flex_kernel("RestoreV2", state=_not_alone)
def restore_v2(op: View, inputs: Inputs, state: State) -> Outputs:
    """Read tensors of a checkpoint with an index; without one, of a file of that name."""
    prefix = _path(op, inputs, _text(inputs[0]))
    names, told = ([bytes(each) for each in array.reshape(-1)] for array in inputs[1:3])
    count = len(node_of(op)["dtypes"])
    if len(names) != count or len(told) != count:
        raise KernelError(f"{count} tensors, {len(names)} names, {len(told)} slices")
    path = f"{prefix}.index"
    if not os.path.exists(path) and os.path.exists(prefix):
        return _restored(op, _files_of(prefix), names, told)
    entries, shards = checkpoints.read_index(_read(path), path)

    def data(entry: Any) -> bytes:
        return _cut(_data(prefix, entry.shard, shards), entry.offset, entry.size)

    def maker(name: bytes) -> Callable[[], Array]:
        return lambda: checkpoints.whole(name, entries, data, prefix)

    return _restored(op, {name: maker(name) for name in names if name in entries}, names, told)


@flex_kernel("MergeV2Checkpoints", state=_not_alone)
def merge(op: View, inputs: Inputs, state: State) -> Outputs:
    """Make one checkpoint of several: their files of data get other names, and one index."""
    target = _path(op, inputs, _text(inputs[1]))
    prefixes = [_path(op, inputs, bytes(each)) for each in inputs[0].reshape(-1)]
    if node_of(op)["allow_missing_files"]:
        prefixes = [each for each in prefixes if os.path.exists(f"{each}.index")]
    prefixes = list(dict.fromkeys(prefixes))
    read = [checkpoints.read_index(_read(f"{each}.index"), each) for each in prefixes]
    total, before = sum(shards for _, shards in read), 0
    if not 0 < total <= _MOST_FILES:
        raise KernelError(f"{total} files of data")
    merged, moves = {}, []
    for prefix, (entries, shards) in zip(prefixes, read, strict=True):
        for key, entry in entries.items():
            if key in merged:
                raise KernelError(f"{key!r} is in several checkpoints, which are not joined here")
            merged[key] = entry.written(before)
        for shard in range(shards):
            moves.append((_data(prefix, shard, shards), _data(target, before + shard, total)))
        before += shards
    try:
        for source, name in moves:
            move(Path(source), Path(name))
        _write([(f"{target}.index", checkpoints.index_of(merged, total))])
        for prefix in prefixes:
            if prefix != target:
                os.unlink(f"{prefix}.index")
    except OSError as error:
        raise KernelError(f"{target} cannot be written: {error.strerror or error}") from error
    for folder in {os.path.dirname(each) for each in prefixes if node_of(op)["delete_old_dirs"]}:
        if folder != os.path.dirname(target):
            with suppress(OSError):
                os.rmdir(folder)
    return (_TURN,)


# Names ------------------------------------------------------------------------------------------


@flex_kernel("ShardedFilename")
def sharded_name(op: View, inputs: Inputs, state: State) -> Outputs:
    """The name of one of several files."""
    name, shard, shards = inputs
    text = _text(name) + b"-%05d-of-%05d" % (int(shard.item()), int(shards.item()))
    return (_scalar(text),)


@flex_kernel("ShardedFilespec")
def sharded_pattern(op: View, inputs: Inputs, state: State) -> Outputs:
    """The pattern of the names of several files."""
    name, shards = inputs
    return (_scalar(_text(name) + b"-?????-of-%05d" % int(shards.item())),)


def _scalar(text: bytes) -> Array:
    array = np.empty((), np.object_)
    array[()] = text
    return array
