"""TensorFlow's operators on texts that ONNX has: texts joined, and matches of whole texts.

A text of a graph is one of UTF-8; other bytes cannot be given to an exported file.
"""

from __future__ import annotations

from typing import Any

from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import flex_translator
from tflite_ort.schema import OperatorView, TensorView, Untranslatable
from tflite_ort.schema.values.flex import node_of

View = OperatorView[Any]


def _constant(g: Graph, text: bytes) -> ir.Value:
    """A scalar of this text: graphs have no constants of texts but those of a LabelEncoder."""
    try:
        value = text.decode()
    except UnicodeDecodeError as error:
        raise Untranslatable(f"text that is not UTF-8: {text!r}") from error
    known = {"keys_int64s": [0], "values_strings": [value], "default_string": value}
    return g.op("LabelEncoder", g.ints(0), domain="ai.onnx.ml", **known)


def _texts(g: Graph, tensor: TensorView) -> ir.Value:
    if tensor.data is None:
        return g.read(tensor, domain=Domain.FILE)
    if tensor.rank:
        raise Untranslatable("constant texts")
    return _constant(g, bytes(tensor.data[()]))


@flex_translator("StringJoin")
def joined(op: View, g: Graph) -> None:
    """A chain of StringConcat."""
    inputs = op.present_inputs()
    if g.target.fallback:
        raise Untranslatable("numpy joins texts of any bytes")
    if not inputs:
        raise Untranslatable("no texts")
    between = node_of(op)["separator"].encode("utf-8", "surrogateescape")
    total = _texts(g, inputs[0])
    for tensor in inputs[1:]:
        if between:
            total = g.op("StringConcat", total, _constant(g, between))
        total = g.op("StringConcat", total, _texts(g, tensor))
    if len(inputs) == 1:
        total = g.op("Identity", total)
    g.write(op.output, total, domain=Domain.FILE)


@flex_translator("RegexFullMatch", "StaticRegexFullMatch")
def full_match(op: View, g: Graph) -> None:
    """RegexFullMatch, which is RE2 too."""
    texts, *others = op.present_inputs()
    if g.target.fallback:
        raise Untranslatable("numpy reads texts of any bytes")
    if others:
        if others[0].data is None:
            raise Untranslatable("a pattern that is computed")
        pattern = bytes(others[0].data[()])
    else:
        pattern = node_of(op)["pattern"].encode("utf-8", "surrogateescape")
    try:
        told = pattern.decode()
    except UnicodeDecodeError as error:
        raise Untranslatable(f"text that is not UTF-8: {pattern!r}") from error
    made = g.op("RegexFullMatch", g.read(texts, domain=Domain.FILE), pattern=told)
    g.write(op.output, made)
