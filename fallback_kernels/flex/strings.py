"""TensorFlow's operators on texts, which are bytes of any kind."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.fallback_kernels.idioms.fingerprint import fingerprint
from tflite_ort.fallback_kernels.idioms.number_texts import number_of, text_of
from tflite_ort.fallback_kernels.idioms.ragged_rows import sparse_places
from tflite_ort.fallback_kernels.idioms.regular_expressions import expression_of, names_groups
from tflite_ort.fallback_kernels.idioms.row_splits import check_splits
from tflite_ort.fallback_kernels.idioms.short_hashes import plain_hash, sip_hash
from tflite_ort.fallback_kernels.idioms.texts import (
    CHARACTERS,
    decoded,
    is_character,
    split_at,
    split_at_bytes,
    summary,
    text_array,
)
from tflite_ort.fallback_kernels.registry import Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.values.flex import node_of

View = OperatorView[Any]

_CONTROLS = 0x20  # characters below it
_CODECS = {"UTF-8": "utf-8", "UTF-16-BE": "utf-16-be", "UTF-32-BE": "utf-32-be"}
_MOST_BYTES = 1 << 28

Texts = npt.NDArray[np.object_]


def _texts(values: Sequence[bytes], shape: Sequence[int]) -> Texts:
    return text_array(values).reshape(shape)


def _each(texts: Texts, function: Callable[[bytes], bytes]) -> Texts:
    return _texts([function(bytes(text)) for text in texts.reshape(-1)], texts.shape)


def _bytes(attribute: str) -> bytes:
    return attribute.encode("utf-8", "surrogateescape")


def _scalar(array: Any, what: str) -> Any:
    if array.ndim:
        raise KernelError(f"{what} has shape {list(array.shape)}, expected a scalar")
    return array[()]


# Hashes -----------------------------------------------------------------------------------------


@flex_kernel("StringToHashBucketFast")
def string_to_hash_bucket_fast(op: View, inputs: Inputs, state: State) -> Outputs:
    """FarmHash's fingerprints of texts, modulo the number of buckets; int64."""
    (texts,), buckets = inputs, node_of(op)["num_buckets"]
    hashes = [_hash(bytes(text)) % buckets for text in texts.reshape(-1)]
    return (np.array(hashes, np.int64).reshape(texts.shape),)


@flex_kernel("StringToHashBucket")
def string_to_hash_bucket(op: View, inputs: Inputs, state: State) -> Outputs:
    """TensorFlow's first hash of texts, modulo the number of buckets; int64."""
    (texts,), buckets = inputs, node_of(op)["num_buckets"]
    hashes = [plain_hash(bytes(text)) % buckets for text in texts.reshape(-1)]
    return (np.array(hashes, np.int64).reshape(texts.shape),)


@flex_kernel("StringToHashBucketStrong")
def string_to_hash_bucket_strong(op: View, inputs: Inputs, state: State) -> Outputs:
    """SipHash of texts under a key, modulo the number of buckets; int64."""
    (texts,), buckets, key = inputs, node_of(op)["num_buckets"], node_of(op)["key"]
    if len(key) != 2:
        raise KernelError(f"a key of {len(key)} words, expected 2")
    hashes = [sip_hash(bytes(text), key) % buckets for text in texts.reshape(-1)]
    return (np.array(hashes, np.int64).reshape(texts.shape),)


@flex_kernel("Fingerprint")
def fingerprints(op: View, inputs: Inputs, state: State) -> Outputs:
    """FarmHash's fingerprint of every row, as 8 bytes."""
    data, method = inputs[0], _scalar(inputs[1], "method")
    if bytes(method) != b"farmhash64":
        raise KernelError(f"method is {bytes(method)!r}, expected b'farmhash64'")
    if not data.ndim:
        raise KernelError("a scalar has no rows")
    if data.dtype.hasobject:
        words = [_hash(bytes(text)).to_bytes(8, "little") for text in data.reshape(-1)]
        rows = np.frombuffer(b"".join(words), np.uint8).reshape(len(data), -1)
        if data.size == len(data):
            return (rows.copy(),)
    else:
        rows = np.ascontiguousarray(data).view(np.uint8).reshape(len(data), -1)
    hashes = [_hash(row.tobytes()).to_bytes(8, "little") for row in rows]
    return (np.frombuffer(b"".join(hashes), np.uint8).reshape(-1, 8).copy(),)


def _hash(text: bytes) -> int:
    return int(fingerprint(np.frombuffer(text, np.uint8)[None])[0])


# Characters -------------------------------------------------------------------------------------


@flex_kernel("UnicodeDecodeWithOffsets", "UnicodeDecode")
def unicode_decode(op: View, inputs: Inputs, state: State) -> Outputs:
    """(splits, characters int32, first byte of every character int64) of UTF-8 texts."""
    handling = _Handling(op, "input_encoding")
    characters: list[int] = []
    starts: list[int] = []
    splits = [0]
    for text in inputs[0].reshape(-1):
        for character, start in decoded(bytes(text)):
            kept = handling.kept(character)
            if kept is not None:
                characters.append(kept)
                starts.append(start)
        splits.append(len(characters))
    dtype = op.outputs[0].dtype
    made = np.array(splits, dtype), np.array(characters, np.int32), np.array(starts, np.int64)
    return made[: len(op.outputs)]


@flex_kernel("UnicodeEncode")
def unicode_encode(op: View, inputs: Inputs, state: State) -> Outputs:
    """Texts, one from a row of characters."""
    handling, (characters, splits) = _Handling(op), inputs
    codec = _CODECS[node_of(op)["output_encoding"]]
    check_splits(splits, characters)
    rows = []
    for start, end in pairwise(splits.tolist()):
        row = (handling.written(character) for character in characters[start:end].tolist())
        rows.append("".join(row).encode("utf-16-be", "surrogatepass"))
    if codec != "utf-16-be":  # what is half a pair has no UTF-8
        errors = "replace" if codec == "utf-8" else "surrogatepass"
        texts = (row.decode("utf-16-be", errors) for row in rows)
        rows = [text.encode(codec, "surrogatepass") for text in texts]
    return (_texts(rows, (len(rows),)),)


@flex_kernel("UnicodeTranscode")
def unicode_transcode(op: View, inputs: Inputs, state: State) -> Outputs:
    """UTF-8 texts in another encoding."""
    handling = _Handling(op, "input_encoding")
    codec = _CODECS[node_of(op)["output_encoding"]]

    def transcoded(text: bytes) -> bytes:
        kept = (handling.kept(character) for character, _ in decoded(text))
        return "".join(chr(each) for each in kept if each is not None).encode(codec)

    return (_each(inputs[0], transcoded),)


class _Handling:
    """The attributes of a node for invalid characters and for control characters."""

    def __init__(self, op: View, encoding: str = "") -> None:
        node = node_of(op)
        if encoding and node[encoding] != "UTF-8":
            raise KernelError(f"{encoding} is {node[encoding]!r}, expected UTF-8")
        self._errors, self._replacement = node["errors"], node["replacement_char"]
        if not is_character(self._replacement):
            raise KernelError(f"replacement_char is {self._replacement}, which is no character")
        self._controls = node.attributes.get("replace_control_characters", False)

    def kept(self, character: int) -> int | None:
        """`character`, its replacement, or None to skip it; -1 is an invalid character."""
        if character >= _CONTROLS or (character >= 0 and not self._controls):
            return character
        if character < 0 and self._errors == "strict":
            raise KernelError("a text or character is not valid")
        return None if self._errors == "ignore" else self._replacement

    def written(self, code: int) -> str:
        """The character of a number, or what stands for it; "ignore" leaves what can be written."""
        if is_character(code):
            return chr(code)
        if self._errors == "strict":
            raise KernelError(f"{code} is not a character")
        if self._errors == "replace":
            return chr(self._replacement)
        return chr(code) if 0 <= code < CHARACTERS else ""


# Lengths and pieces -----------------------------------------------------------------------------


@flex_kernel("StringLower")
def lower(op: View, inputs: Inputs, state: State) -> Outputs:
    """In small letters: those of ASCII, or of all alphabets."""
    encoding = node_of(op)["encoding"].lower()
    if encoding not in ("", "utf-8"):
        raise KernelError(f"encoding is {encoding!r}, expected utf-8 or nothing")
    if not encoding:
        return (_each(inputs[0], bytes.lower),)
    return (_each(inputs[0], lambda text: text.decode("utf-8", "replace").lower().encode()),)


@flex_kernel("StringStrip")
def strip(op: View, inputs: Inputs, state: State) -> Outputs:
    """Without spaces at both ends."""
    return (_each(inputs[0], bytes.strip),)


@flex_kernel("StringLength")
def length(op: View, inputs: Inputs, state: State) -> Outputs:
    """How many bytes, or characters."""
    (texts,), count = inputs, len if node_of(op)["unit"] == "BYTE" else _count_characters
    sizes = [count(bytes(text)) for text in texts.reshape(-1)]
    return (np.array(sizes, np.int32).reshape(texts.shape),)


def _count_characters(text: bytes) -> int:
    return len(_starts(text))


def _starts(text: bytes) -> list[int]:
    """The places of bytes that do not continue a character."""
    codes = np.frombuffer(text, np.uint8)
    return np.flatnonzero((codes & 0xC0) != 0x80).tolist()


@flex_kernel("Substr")
def substr(op: View, inputs: Inputs, state: State) -> Outputs:
    """The pieces of `len` bytes or characters from `pos` on."""
    if inputs[1].shape != inputs[2].shape:
        raise KernelError(f"pos {list(inputs[1].shape)} and len {list(inputs[2].shape)} differ")
    try:
        texts, starts, sizes = np.broadcast_arrays(*inputs)
    except ValueError as error:
        raise KernelError(str(error)) from None
    by_byte = node_of(op)["unit"] == "BYTE"
    pieces = [
        _piece(bytes(text), start, size, by_byte)
        for text, start, size in zip(
            texts.reshape(-1),
            starts.reshape(-1).tolist(),
            sizes.reshape(-1).tolist(),
            strict=True,
        )
    ]
    return (_texts(pieces, texts.shape),)


def _piece(text: bytes, start: int, size: int, by_byte: bool) -> bytes:
    ends = range(len(text) + 1) if by_byte else [*_starts(text), len(text)]
    count = len(ends) - 1
    first = start + count if start < 0 else start
    if not 0 <= first <= count or (size < 0 and not by_byte):
        raise KernelError(f"no {size} from {start} on of a text of {count}")
    last = count if size < 0 else min(first + size, count)
    return text[ends[first] : ends[last]]


@flex_kernel("StringJoin")
def string_join(op: View, inputs: Inputs, state: State) -> Outputs:
    """The texts of all inputs at the same place; scalars are at every place."""
    separator = _bytes(node_of(op)["separator"])
    shapes = {texts.shape for texts in inputs if texts.ndim}
    if len(shapes) > 1:
        raise KernelError(f"shapes {sorted(shapes)} differ")
    shape = shapes.pop() if shapes else ()
    columns = [np.broadcast_to(texts, shape).reshape(-1) for texts in inputs]
    if not columns:
        return (_texts([b""], ()),)
    joined = [separator.join(map(bytes, row)) for row in zip(*columns, strict=True)]
    return (_texts(joined, shape),)


@flex_kernel("ReduceJoin")
def reduce_join(op: View, inputs: Inputs, state: State) -> Outputs:
    """The texts along some axes as one text, first along the axis that is named first."""
    (texts, axes), node = inputs, node_of(op)
    rank, axes = texts.ndim, axes.reshape(-1).tolist()
    if any(not -rank <= axis < rank for axis in axes):
        raise KernelError(f"axes {axes} of {rank} dimensions")
    axes = [axis % rank for axis in axes]
    if len(set(axes)) < len(axes):
        raise KernelError(f"axes {axes} are not different")
    if not rank:
        return (texts,)
    kept = [axis for axis in range(rank) if axis not in axes]
    shape = [texts.shape[axis] for axis in kept]
    rows = texts.transpose(*kept, *axes[::-1]).reshape(int(np.prod(shape)), -1 if texts.size else 0)
    separator = _bytes(node["separator"])
    joined = [separator.join(map(bytes, row)) for row in rows]
    if node["keep_dims"]:
        shape = [1 if axis in axes else size for axis, size in enumerate(texts.shape)]
    return (_texts(joined, shape),)


@flex_kernel("UnsortedSegmentJoin")
def unsorted_segment_join(op: View, inputs: Inputs, state: State) -> Outputs:
    """The texts of every segment as one text."""
    texts, ids, count = inputs[0], inputs[1], int(_scalar(inputs[2], "num_segments"))
    if not ids.ndim or texts.shape[: ids.ndim] != ids.shape or count < 0:
        raise KernelError(f"segments {list(ids.shape)} of texts {list(texts.shape)}")
    if ((ids < 0) | (ids >= count)).any():
        raise KernelError(f"a segment is not one of {count}")
    rest = texts.shape[ids.ndim :]
    size = int(np.prod(rest))
    if count * max(size, 1) > _MOST_BYTES // 64:
        raise KernelError(f"{count} segments of {size} texts")
    separator = _bytes(node_of(op)["separator"])
    joined = [b""] * (count * size)
    rows = texts.reshape(ids.size, size)
    for row, segment in zip(rows, ids.reshape(-1).tolist(), strict=True):
        for column, text in enumerate(row):
            place = segment * size + column  # no separator after what is empty so far
            before = joined[place] + separator if joined[place] else b""
            joined[place] = before + bytes(text)
    return (_texts(joined, (count, *rest)),)


@flex_kernel("StringSplitV2", "StringSplit")
def string_split(op: View, inputs: Inputs, state: State) -> Outputs:
    """The pieces of each text, as a sparse tensor: indices, values, shape."""
    texts, separator = inputs[0], bytes(_scalar(inputs[1], "the separator"))
    if texts.ndim != 1:
        raise KernelError(f"texts have shape {list(texts.shape)}, expected a list")
    node = node_of(op)
    if op.name.endswith("V2"):
        rows = [split_at(bytes(text), separator, node["maxsplit"]) for text in texts]
    else:
        rows = [split_at_bytes(bytes(text), separator, node["skip_empty"]) for text in texts]
    pieces = [piece for row in rows for piece in row]
    places, sizes = sparse_places(rows)
    return places, _texts(pieces, (len(pieces),)), sizes


# Regular expressions ----------------------------------------------------------------------------


@flex_kernel("RegexFullMatch", "StaticRegexFullMatch")
def regex_full_match(op: View, inputs: Inputs, state: State) -> Outputs:
    """Whether all of a text matches."""
    texts = inputs[0]
    static = len(inputs) == 1
    pattern = _bytes(node_of(op)["pattern"]) if static else bytes(_scalar(inputs[1], "pattern"))
    expression = expression_of(pattern)
    found = [expression.is_full(bytes(text)) for text in texts.reshape(-1)]
    return (np.array(found, np.bool_).reshape(texts.shape),)


@flex_kernel("RegexReplace", "StaticRegexReplace")
def regex_replace(op: View, inputs: Inputs, state: State) -> Outputs:
    """Every match, or the first, replaced."""
    node = node_of(op)
    if len(inputs) == 1:
        pattern, rewrite = _bytes(node["pattern"]), _bytes(node["rewrite"])
    else:
        pattern, rewrite = (bytes(_scalar(each, "pattern or rewrite")) for each in inputs[1:])
    expression, everywhere = expression_of(pattern), node["replace_global"]
    if not names_groups(rewrite, expression.groups):  # TensorFlow changes nothing then
        return (inputs[0],)
    return (
        _each(inputs[0], lambda text: expression.replaced(text, rewrite, everywhere=everywhere)),
    )


# Numbers and base 64 ----------------------------------------------------------------------------


@flex_kernel("StringToNumber")
def string_to_number(op: View, inputs: Inputs, state: State) -> Outputs:
    """The number that a text is."""
    (texts,), dtype = inputs, node_of(op).dtype("out_type")
    values = [number_of(bytes(text), dtype) for text in texts.reshape(-1)]
    return (np.array(values, dtype).reshape(texts.shape),)


@flex_kernel("AsString")
def as_string(op: View, inputs: Inputs, state: State) -> Outputs:
    """Numbers as texts, in the form that C's printf has for the attributes."""
    (values,), node = inputs, node_of(op)
    if max(node["width"], node["precision"], 1) * max(values.size, 1) > _MOST_BYTES:
        raise KernelError(f"{values.size} texts of width {node['width']}")
    make = text_of(
        values.dtype,
        fill=node["fill"],
        width=node["width"],
        precision=node["precision"],
        scientific=node["scientific"],
        shortest=node["shortest"],
    )
    return (_texts([make(value) for value in values.reshape(-1)], values.shape),)


@flex_kernel("StringFormat")
def string_format(op: View, inputs: Inputs, state: State) -> Outputs:
    """A text in which arrays stand for its placeholders."""
    node = node_of(op)
    parts = _bytes(node["template"]).split(_bytes(node["placeholder"]))
    if len(parts) != len(inputs) + 1:
        raise KernelError(f"{len(inputs)} arrays for {len(parts) - 1} placeholders")
    told = [summary(array, node["summarize"]).encode("latin-1") for array in inputs]
    return (
        _texts(
            [b"".join(each for pair in zip(parts, [*told, b""], strict=True) for each in pair)], ()
        ),
    )


@flex_kernel("EncodeBase64")
def encode_base64(op: View, inputs: Inputs, state: State) -> Outputs:
    """In base 64 with letters that web addresses can have."""
    encode = base64.urlsafe_b64encode
    if node_of(op)["pad"]:
        return (_each(inputs[0], encode),)
    return (_each(inputs[0], lambda text: encode(text).rstrip(b"=")),)


@flex_kernel("DecodeBase64")
def decode_base64(op: View, inputs: Inputs, state: State) -> Outputs:
    """What `encode_base64` was given."""
    return (_each(inputs[0], _from_base64),)


def _from_base64(text: bytes) -> bytes:
    bare = text.rstrip(b"=")
    padding = -len(bare) % 4
    if len(text) - len(bare) not in (0, padding) or padding == 3 or set(bare) & set(b"+/"):
        raise KernelError(f"{text[:100]!r} is not in base 64")
    try:
        return base64.b64decode(bare + b"=" * padding, b"-_", validate=True)
    except binascii.Error:
        raise KernelError(f"{text[:100]!r} is not in base 64") from None
