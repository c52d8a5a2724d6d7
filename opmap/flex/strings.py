"""TensorFlow's operators on texts of which ONNX can say what they compute: in exports.

A text of a graph is one of UTF-8; other bytes cannot be given to an exported file. Hashes, bytes,
characters and forms of floats have no translation.
"""

from __future__ import annotations

import re
from typing import Any

from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.idioms import texts
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import flex_translator
from tflite_ort.schema import OperatorView, TensorType, Untranslatable
from tflite_ort.schema.values.flex import node_of

View = OperatorView[Any]
_D = ir.DataType
_T = TensorType

_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SPACES = " \t\n\v\f\r"


def _attribute(op: View, name: str) -> str:
    return texts.told(node_of(op)[name].encode("utf-8", "surrogateescape"))


def _scalar(op: View, name: str) -> str:
    """The text of an input that the file has."""
    data = op[name].data
    if data is None or data.size != 1:
        raise Untranslatable(f"{name} is computed")
    return texts.told(bytes(data.reshape(-1)[0]))


@flex_translator("StringJoin")
def joined(op: View, g: Graph) -> None:
    """A chain of StringConcat."""
    values = [texts.read_texts(g, tensor) for tensor in op.present_inputs()]
    if not values:
        raise Untranslatable("no texts")
    between = _attribute(op, "separator")
    total = values[0]
    for value in values[1:]:
        if between:
            total = g.op("StringConcat", total, texts.text(g, between))
        total = g.op("StringConcat", total, value)
    if len(values) == 1:
        total = g.op("Identity", total)
    g.write(op.output, total, domain=Domain.FILE)


@flex_translator("ReduceJoin")
def reduced(op: View, g: Graph) -> None:
    """A Loop of StringConcat along one axis."""
    source, axes, node = op["inputs"], op["reduction_indices"].data, node_of(op)
    value = texts.read_texts(g, source)
    if axes is None or axes.size != 1 or not source.rank:
        raise Untranslatable("not one axis that the file tells")
    axis = int(axes.item()) % source.rank
    order = [*(each for each in range(source.rank) if each != axis), axis]
    if axis != order[axis]:
        value = g.op("Transpose", value, perm=order)
    shape = g.op("Shape", value)
    first = g.op("Concat", g.op("Slice", shape, g.ints([0]), g.ints([-1])), g.ints([1]), axis=0)
    # An empty text first: there may be no parts.
    parts = g.op("Concat", g.op("Expand", texts.text(g, ""), first), value, axis=-1)
    separator = _attribute(op, "separator")

    def before(number: ir.Value) -> ir.Value:
        is_first = g.op("Equal", number, g.ints(1))
        return g.op("Where", is_first, texts.text(g, ""), texts.text(g, separator))

    count = g.op("Gather", g.op("Shape", parts), g.ints(-1))
    total = texts.joined(g, parts, count, before if separator else None)
    if node["keep_dims"]:
        total = g.op("Unsqueeze", total, g.ints([axis]))
    g.write(op.output, total, domain=Domain.FILE)


@flex_translator("StringLower")
def lower(op: View, g: Graph) -> None:
    """Each of the large letters of ASCII replaced."""
    value = texts.read_texts(g, op["input"])
    if node_of(op)["encoding"]:
        raise Untranslatable("small letters of all alphabets")
    for letter in _UPPER:
        value = texts.replaced(g, value, letter, letter.lower())
    g.write(op.output, value, domain=Domain.FILE)


@flex_translator("StringLength")
def length(op: View, g: Graph) -> None:
    """From RegexFullMatch of lengths that have some remainder."""
    unit = r"\C" if node_of(op)["unit"] == "BYTE" else "."
    found = texts.lengths(g, texts.read_texts(g, op["input"]), unit)
    g.write(op.output, g.cast(found, _D.INT32))


@flex_translator("StringSplitV2")
def split(op: View, g: Graph) -> None:
    """StringSplit, and NonZero of the parts that there are."""
    separator, most = _scalar(op, "sep"), node_of(op)["maxsplit"]
    value = texts.read_texts(g, op["input"])
    if not most or (most > 0 and not separator):
        raise Untranslatable(f"at most {most} cuts at {separator!r}")
    if separator:
        parts, counts = texts.pieces(g, value, separator, most if most > 0 else None)
    else:
        value = texts.replaced(g, value, _SPACES[1:], _SPACES[0])
        parts, counts = g.op_multi("StringSplit", value, outputs=2)
    columns = g.op("Shape", parts, start=1, end=2)
    numbers = g.op("Range", g.ints(0), g.op("Squeeze", columns), g.ints(1))
    there = g.op("Less", numbers, g.op("Unsqueeze", counts, g.ints([1])))
    indices, values, shape = op.outputs
    g.write(indices, g.op("Transpose", g.op("NonZero", there), perm=[1, 0]))
    flat = g.op("Compress", g.reshape(parts, (-1,)), g.reshape(there, (-1,)), axis=0)
    g.write(values, flat, domain=Domain.FILE)
    widest = g.op("ReduceMax", g.op("Concat", counts, g.ints([0]), axis=0), keepdims=1)
    g.write(shape, g.op("Concat", g.op("Shape", counts), widest, axis=0))


# Regular expressions ----------------------------------------------------------------------------

_CLASSES = {
    "d": "0123456789",
    "n": "\n",
    "r": "\r",
    "s": " \t\n\f\r",
    "t": "\t",
}
_NAMED = {
    "digit": _CLASSES["d"],
    "punct": "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
    "space": _SPACES,
}
# A member of a class in brackets: an escape, a class by its name, or a character.
_MEMBER = re.compile(r"\\([dnrst])|\[:([a-z]+):\]|\\([^A-Za-z0-9_])|((?!\[:)[^\\\]])")
_SIGNS = frozenset(".+*?()[]{}|^$\\")


def _characters(pattern: str) -> tuple[str, bool]:
    """The characters of ASCII of which the expression matches each one, or, True, each run.

    Raises:
        Untranslatable: it matches something else.
    """
    runs = pattern.endswith("+") and not pattern.endswith("\\+")
    bare = pattern[: len(pattern) - runs]
    inside = bare[1:-1] if bare.startswith("[") and bare.endswith("]") else bare
    single = inside is bare and (bare in _SIGNS or len(bare) > 1 + bare.startswith("\\"))
    found = None if single or inside.startswith("^") else _members(inside)
    if not found or not found.isascii():
        raise Untranslatable(f"ONNX does not replace what {pattern!r} matches")
    return "".join(dict.fromkeys(found)), runs


def _members(inside: str) -> str | None:
    """The characters of a class; None where it is not known here."""
    found, at = "", 0
    while at < len(inside):
        match = _MEMBER.match(inside, at)
        if match is None:
            return None
        at = match.end()
        some = _CLASSES.get(match[1] or "", "") + _NAMED.get(match[2] or "", "")
        low = match[3] or match[4]
        if not low and not some:
            return None
        if low and inside.startswith("-", at) and at + 1 < len(inside):
            end = _MEMBER.match(inside, at + 1)
            high = (end[3] or end[4]) if end else None
            if end is None or not high:
                return None
            at, low = end.end(), "".join(map(chr, range(ord(low), ord(high) + 1)))
        found += some + (low or "")
    return found


@flex_translator("RegexReplace", "StaticRegexReplace")
def replace(op: View, g: Graph) -> None:
    """Each of the characters, or each run of them, that the expression matches."""
    value = texts.read_texts(g, op.present_inputs()[0])
    if op.name == "FlexRegexReplace":
        pattern, rewrite = _scalar(op, "pattern"), _scalar(op, "rewrite")
    else:
        pattern, rewrite = _attribute(op, "pattern"), _attribute(op, "rewrite")
    characters, runs = _characters(pattern)
    if "\\" in rewrite or not node_of(op)["replace_global"]:
        raise Untranslatable(f"{rewrite!r}, or the first match alone")
    made = texts.replaced(g, value, characters, rewrite, runs=runs)
    g.write(op.output, made, domain=Domain.FILE)


@flex_translator("RegexFullMatch", "StaticRegexFullMatch")
def full_match(op: View, g: Graph) -> None:
    """RegexFullMatch, which is RE2 too."""
    value = texts.read_texts(g, op.present_inputs()[0])
    static = op.name == "FlexStaticRegexFullMatch"
    pattern = _attribute(op, "pattern") if static else _scalar(op, "pattern")
    g.write(op.output, g.op("RegexFullMatch", value, pattern=pattern))


# Numbers ----------------------------------------------------------------------------------------


@flex_translator("AsString")
def as_text(op: View, g: Graph) -> None:
    """Cast of integers; a choice of two texts for truth values."""
    if g.target.fallback:
        raise Untranslatable("numpy has texts of any bytes")
    source, node = op["input"], node_of(op)
    if (node["width"], node["fill"], node["precision"]) != (-1, "", -1):
        raise Untranslatable("a form of numbers")
    value = g.read(source, domain=Domain.FILE)
    if source.type is _T.BOOL:
        made = g.op("Where", value, texts.text(g, "true"), texts.text(g, "false"))
    elif source.dtype.kind in "iu":
        made = g.cast(value, _D.STRING)
    else:
        raise Untranslatable(f"texts of {source.type.name}")
    g.write(op.output, made, domain=Domain.FILE)
