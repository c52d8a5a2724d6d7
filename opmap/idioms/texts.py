"""Texts in nodes: cut at a text, put together again, and measured.

ONNX has few operators on texts: StringSplit, StringConcat and RegexFullMatch do all that is here. A
text of a graph is one of UTF-8, in which no character is a part of another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, log2, prod

import numpy as np

from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import TensorView, Untranslatable

# The lengths of texts are known by their remainders: their product is beyond all lengths.
_MODULI = (16, 27, 25, 7, 11, 13, 17, 19)


def read_texts(g: Graph, tensor: TensorView) -> ir.Value:
    """Texts, where no kernel takes those of any bytes."""
    if g.target.fallback:
        raise Untranslatable("numpy has texts of any bytes")
    if tensor.data is None:
        return g.read(tensor, domain=Domain.FILE)
    for each in tensor.data.reshape(-1):
        told(bytes(each))
    return g.constant(tensor.data)


def told(content: bytes) -> str:
    """The text of these bytes.

    Raises:
        Untranslatable: they are not UTF-8.
    """
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise Untranslatable(f"text that is not UTF-8: {content!r}") from error


def text(g: Graph, value: str) -> ir.Value:
    """A scalar."""
    return g.constant(np.array(value.encode(), np.object_))


def pieces(
    g: Graph, texts: ir.Value, at: str, most: int | None = None
) -> tuple[ir.Value, ir.Value]:
    """The parts [..., n] between the places where `at` stands, and their counts [...]; behind the
    parts of a text there are empty ones.

    Args:
        at: not empty.
        most: how often a text is cut.
    """
    parts, counts = g.op_multi("StringSplit", texts, outputs=2, delimiter=at, maxsplit=most)
    shape = g.op("Concat", g.op("Shape", texts), g.ints([1]), axis=0)
    # An empty text has no parts in ONNX.
    parts = g.op("Concat", parts, g.op("Expand", text(g, ""), shape), axis=-1)
    return parts, g.op("Max", counts, g.ints(1))


def joined(
    g: Graph, parts: ir.Value, count: ir.Value, before: Callable[[ir.Value], ir.Value] | None = None
) -> ir.Value:
    """The first `count` (int64 scalar) of the parts [..., n] of each text as one.

    Args:
        before: gives what comes before part 1 and those after it, by the number of the part.
    """

    def part(number: ir.Value) -> ir.Value:
        return g.op("Gather", parts, number, axis=-1)

    def build(arguments: Sequence[ir.Value]) -> Sequence[ir.Value]:
        for scalar in arguments[:2]:  # ONNX Runtime needs their shapes
            scalar.shape = ()
        number = g.op("Add", arguments[0], g.ints(1))
        more = part(number)
        if before is not None:
            more = g.op("StringConcat", before(number), more)
        goes_on, total = g.op("Identity", arguments[1]), g.op("StringConcat", arguments[2], more)
        goes_on.dtype, total.dtype = ir.DataType.BOOL, ir.DataType.STRING
        return goes_on, total

    body = g.body([ir.DataType.INT64, ir.DataType.BOOL, ir.DataType.STRING], build)
    first, rounds = part(g.ints(0)), g.op("Add", count, g.ints(-1))
    made = g.op("Loop", rounds, None, first, body=body)
    # onnx does not tell the rank of what a Loop makes, without which it knows nothing of its parts.
    return g.op("Reshape", made, g.op("Shape", first), allowzero=1)


def most_of(g: Graph, counts: ir.Value) -> ir.Value:
    """The largest count, an int64 scalar; 1 of none."""
    flat = g.op("Concat", g.reshape(counts, (-1,)), g.ints([1]), axis=0)
    return g.op("ReduceMax", flat, keepdims=0)


def replaced(
    g: Graph, texts: ir.Value, characters: str, rewrite: str, *, runs: bool = False
) -> ir.Value:
    """`texts` with `rewrite` for each of some characters of ASCII, or for each run of them."""
    first, others = characters[0], characters[1:]
    for other in others:
        texts = replaced(g, texts, other, first)
    parts, counts = pieces(g, texts, first)

    def before(number: ir.Value) -> ir.Value:
        wanted = g.op("Less", number, counts)
        if runs:  # what is between two of them is not empty
            behind = g.op("Sub", number, g.ints(1))
            empty = g.op("Equal", g.op("Gather", parts, behind, axis=-1), text(g, ""))
            again = g.op("And", empty, g.op("Greater", behind, g.ints(0)))
            wanted = g.op("And", wanted, g.op("Not", again))
        return g.op("Where", wanted, text(g, rewrite), text(g, ""))

    return joined(g, parts, most_of(g, counts), before if rewrite else None)


def lengths(g: Graph, texts: ir.Value, unit: str) -> ir.Value:
    r"""How many units each text has, int64.

    By the Chinese remainder theorem, from remainders of which RegexFullMatch tells each bit.

    Args:
        unit: an expression that matches one, such as ``\C``, a byte.
    """
    total, all_ = None, prod(_MODULI)
    for modulus in _MODULI:
        others = all_ // modulus
        factor = others * pow(others, -1, modulus)
        for bit in range(ceil(log2(modulus))):
            rests = [rest for rest in range(modulus) if rest >> bit & 1]
            ends = "|".join(f"(?:{unit}){{{rest}}}" for rest in rests)
            pattern = f"(?s)(?:(?:{unit}){{{modulus}}})*(?:{ends})"
            is_set = g.cast(g.op("RegexFullMatch", texts, pattern=pattern), ir.DataType.INT64)
            share = g.op("Mul", is_set, g.ints((factor << bit) % all_))
            total = share if total is None else g.op("Add", total, share)
    assert total is not None
    return g.op("Mod", total, g.ints(all_))
