"""Constants of keys that no attention can tell from none.

A layer that makes keys adds a constant row to each of them. A query's product with that row is one
number, which is added to the query's scores of all keys: their softmax stays the same. Scores
without it are rounded less.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.marks import SUM_WITH_ROW
from tflite_ort.opmap.rules.rule import NodesAround

_KEYS = 1


def drop_lost_biases(graph: ir.Graph, around: NodesAround) -> None:
    """Drop these constants from `graph`."""
    attentions = [node for node in graph.nodes if _takes_rows(node)]
    if not attentions:
        return
    reads, own = graph.read_counts(), {id(node) for node in graph.nodes}
    gone = set[int]()
    for attention in attentions:
        layer, *readers = _made_of(attention, reads)
        if not own.issuperset(map(id, (layer, *readers))) or not _is_lost(layer, readers):
            continue
        if layer.op_type == "Gemm":
            layer.inputs = layer.inputs[:2]
            continue
        (rows,) = (each for each in layer.inputs if each is not None and each.const_value is None)
        reader, place = readers[0], 0 if readers[0] is not attention else _KEYS
        reader.inputs = (*reader.inputs[:place], rows, *reader.inputs[place + 1 :])
        gone.add(id(layer))
    graph.nodes = [node for node in graph.nodes if id(node) not in gone]


def _takes_rows(node: ir.Node) -> bool:
    """Whether it is an attention over scores as they are, each key of which is a row."""
    plain = "kv_num_heads" in node.attributes and not node.attributes.get("softcap")
    return node.op_type == "Attention" and plain


def _made_of(attention: ir.Node, reads: Counter[int]) -> Sequence[ir.Node]:
    """What makes the keys of an attention and of nothing else, behind any Reshape: the first node,
    and those after it up to the attention."""
    nodes, keys = [attention], attention.inputs[_KEYS]
    while keys is not None and reads[id(keys)] == 1 and (maker := keys.producer()) is not None:
        nodes.insert(0, maker)
        if maker.op_type != "Reshape":
            break
        keys = maker.inputs[0]
    return nodes


def _is_lost(layer: ir.Node, readers: Sequence[ir.Node]) -> bool:
    """Whether `layer` adds a constant row, and `readers` keep its rows."""
    is_gemm = layer.op_type == "Gemm" and len(layer.inputs) == 3
    if not is_gemm and not (layer.op_type == "Add" and SUM_WITH_ROW in layer.outputs[0].marks):
        return False
    given = layer.inputs[2:] if is_gemm else layer.inputs
    added = [each.const_value.array for each in given if each is not None and each.const_value]
    if len(added) != 1 or added[0].ndim != 1 or not np.isfinite(added[0]).all():
        return False
    shapes = [each.constant(1) for each in readers if each.op_type == "Reshape"]
    return all(shape is not None and shape[-1] == added[0].size for shape in shapes)
