"""Variables and hash tables: READ_VARIABLE, ASSIGN_VARIABLE, HASHTABLE_FIND.

Variables are inputs and outputs of the graph, so that reading or setting one adds no node. Hash
tables with known content are constants. HASHTABLE_IMPORT and HASHTABLE_SIZE have no translation: a
known table does not need them, and ONNX has no value for any other table.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import Op, OperatorView, TensorView, Untranslatable


@translator(Op.READ_VARIABLE, versions=(1, 1))
def read_variable(op: OperatorView[None], g: Graph) -> None:
    """The value of the variable; its codes are not changed."""
    _pass_on(op["variable"], op.output, g)


@translator(Op.ASSIGN_VARIABLE, versions=(1, 1))
def assign_variable(op: OperatorView[None], g: Graph) -> None:
    """The variable takes the value from here on, in the layout of the value."""
    _pass_on(op["value"], op["variable"], g)


def _pass_on(source: TensorView, target: TensorView, g: Graph) -> None:
    if source.type is not target.type:
        raise Untranslatable(f"a {source.type.name} value for a {target.type.name} one")
    domain = Domain.STORED if source.is_quantized and target.is_quantized else Domain.FILE
    layout = g.layout(source)
    g.write(target, g.read(source, layout=layout, domain=domain), layout=layout, domain=domain)


@translator(Op.HASHTABLE_FIND, versions=(1, 1))
def hashtable_find(op: OperatorView[None], g: Graph) -> None:
    """LabelEncoder (ai.onnx.ml) from keys to values.

    With a computed default, or values that LabelEncoder does not have, it goes from keys to
    positions, for a Gather from the values and the default behind them.
    """
    table, keys, default = op["table"].data, op["keys"], op["default"]
    if table is None:
        raise Untranslatable("what the table holds is not known before the run")
    content: dict[Any, Any] = table.item()
    if not content:
        first = g.reshape(_first(g, default), ())
        g.write(op.output, g.op("Expand", first, g.op("Shape", g.read(keys))))
    elif default.data is None or op.output.dtype not in (np.int64, np.object_):
        places = _encoded(g, keys, content, range(len(content)), len(content))
        values = np.array(list(content.values()), op.output.dtype)
        every = g.op("Concat", g.constants.add(values, "values"), _first(g, default), axis=0)
        g.write(op.output, g.op("Gather", every, places))
    else:
        rest = default.data.reshape(-1)[0]
        g.write(op.output, _encoded(g, keys, content, content.values(), rest))


def _first(g: Graph, default: TensorView) -> ir.Value:
    """The first element [1]; the others are ignored."""
    flat = g.reshape(g.read(default), (-1,))
    return g.op("Gather", flat, g.ints([0]))


def _encoded(
    g: Graph, keys: TensorView, known: Iterable[Any], values: Iterable[Any], rest: Any
) -> ir.Value:
    """LabelEncoder: replace keys in `known` by the corresponding `values`, others by `rest`."""
    places = _attribute("keys", known) | _attribute("values", values)
    ((name, (value,)),) = _attribute("default", [rest]).items()
    attributes = {**places, name.removesuffix("s"): value}
    given = g.read(keys)
    if keys.dtype == np.int32:
        given = g.cast(given, ir.DataType.INT64)
    return g.op("LabelEncoder", given, domain="ai.onnx.ml", **attributes)


def _attribute(name: str, values: Iterable[Any]) -> dict[str, list[Any]]:
    """An attribute of LabelEncoder, whose name depends on its type."""
    listed = list(values)
    if not isinstance(listed[0], bytes):
        return {f"{name}_int64s": list(map(int, listed))}
    try:
        return {f"{name}_strings": [text.decode() for text in listed]}
    except UnicodeDecodeError as error:
        raise Untranslatable(f"text that is not UTF-8: {error.object!r}") from error
