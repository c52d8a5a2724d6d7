"""Variables: inputs and outputs of the graph, so that reading one and setting it cost nothing; and
hash tables whose content is known, which are constants.

HASHTABLE_IMPORT and HASHTABLE_SIZE are not translated: of a table that is known nothing is left of
them, and another one is no value that ONNX has.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import onnx_ir as ir

from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import Op, OperatorView, TensorView, Untranslatable


@translator(Op.READ_VARIABLE, versions=(1, 1))
def read_variable(op: OperatorView[None], g: Graph) -> None:
    """The present value of the variable, its codes as they are."""
    _pass_on(op["variable"], op.output, g)


@translator(Op.ASSIGN_VARIABLE, versions=(1, 1))
def assign_variable(op: OperatorView[None], g: Graph) -> None:
    """From here on the variable is the value, in the layout that this has."""
    _pass_on(op["value"], op["variable"], g)


def _pass_on(source: TensorView, target: TensorView, g: Graph) -> None:
    if source.type is not target.type:
        raise Untranslatable(f"a {source.type.name} value for a {target.type.name} one")
    domain = Domain.STORED if source.is_quantized and target.is_quantized else Domain.FILE
    layout = g.layout(source)
    g.write(target, g.read(source, layout=layout, domain=domain), layout=layout, domain=domain)


@translator(Op.HASHTABLE_FIND, versions=(1, 1))
def hashtable_find(op: OperatorView[None], g: Graph) -> None:
    """LabelEncoder (ai.onnx.ml) from keys to values; to places, and Gather of the values with the
    default behind them, where the default is computed."""
    table, keys, default = op["table"].data, op["keys"], op["default"]
    if table is None:
        raise Untranslatable("what the table holds is not known before the run")
    content: dict[Any, Any] = table.item()
    if not content:
        first = g.reshape(_first(g, default), ())
        g.write(op.output, g.op("Expand", first, g.op("Shape", g.read(keys))))
    elif default.data is None:
        places = _encoded(g, keys, content, range(len(content)), len(content))
        values = np.array(list(content.values()), op.output.dtype)
        every = g.op("Concat", g.constants.add(values, "values"), _first(g, default), axis=0)
        g.write(op.output, g.op("Gather", every, places))
    else:
        rest = default.data.reshape(-1)[0]
        g.write(op.output, _encoded(g, keys, content, content.values(), rest))


def _first(g: Graph, default: TensorView) -> ir.Value:
    """[1]: the first element, which is the one that counts."""
    flat = g.op("Reshape", g.read(default), g.constant([-1], np.int64))
    return g.op("Gather", flat, g.constant([0], np.int64))


def _encoded(
    g: Graph, keys: TensorView, known: Iterable[Any], values: Iterable[Any], rest: Any
) -> ir.Value:
    """Each of `keys` replaced by the one of `values` that stands where it stands in `known`; what
    is not there, by `rest`."""
    places = _attribute("keys", known) | _attribute("values", values)
    ((name, (value,)),) = _attribute("default", [rest]).items()
    attributes = {**places, name.removesuffix("s"): value}
    return g.op("LabelEncoder", g.read(keys), domain="ai.onnx.ml", **attributes)


def _attribute(name: str, values: Iterable[Any]) -> dict[str, list[Any]]:
    """An attribute of LabelEncoder, which is called after its type."""
    listed = list(values)
    if not isinstance(listed[0], bytes):
        return {f"{name}_int64s": list(map(int, listed))}
    try:
        return {f"{name}_strings": [text.decode() for text in listed]}
    except UnicodeDecodeError as error:
        raise Untranslatable(f"text that is not UTF-8: {error.object!r}") from error
