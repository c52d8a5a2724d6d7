"""An exported model with decoded outputs, and with a picture as its input."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper

from tflite_ort.decode.image_input import add_image_input, no_projection
from tflite_ort.decode.kinds import Kind
from tflite_ort.decode.nodes import Nodes, described
from tflite_ort.schema import ExportError, Model

PROPERTY = "tflite.decoded"


def decoded(
    exported: onnx.ModelProto, model: Model, kind: Kind, *, image_input: bool = False
) -> onnx.ModelProto:
    """`exported` with the nodes of its kind before and after.

    Args:
        exported: what was made of `model`; not changed.
        image_input: begin at ``image``, a picture uint8 [height, width, 3] of any size in RGB, and
            ``roi``, the region of interest.

    Returns:
        A model whose ``metadata_props["tflite.decoded"]`` says in JSON what it is.

    Raises:
        ExportError: `image_input`, and the network takes no picture.
    """
    result = onnx.ModelProto()
    result.CopyFrom(exported)
    graph, nodes, before = result.graph, Nodes("decode"), Nodes("image")
    _rename(graph, set() if image_input or kind.begin else {each.name for each in graph.input})
    raw = _real_outputs(nodes, graph, model)
    if image_input and kind.preparation is None:
        raise ExportError(f"this {kind.name} takes no picture: it has no image input")
    if not image_input or kind.preparation is None:
        to = no_projection(nodes)
        if kind.begin is not None:
            names = [value.name for value in graph.input]
            del graph.input[:]
            kind.begin(before, names)
    else:
        network_input = graph.input[0].name
        del graph.input[0]
        to = add_image_input(before, network_input, kind.preparation)
    outputs = kind.build(nodes, raw, to)
    written = Nodes("outputs")
    infos = []
    del graph.output[:]
    for name, (value, dtype, shape) in outputs.items():
        infos.append(described(written.named(name, value), dtype, shape))
    graph.output.extend(infos)
    _insert(graph, before, nodes, written)
    _describe(result, kind, outputs)
    return result


def _rename(graph: onnx.GraphProto, kept: Collection[str]) -> None:
    """Give the network's values names that no other value has: it may call one ``image``.

    Args:
        kept: names that stay.
    """
    for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        value.name = _renamed(value.name, kept)
    for sparse in graph.sparse_initializer:
        sparse.values.name = _renamed(sparse.values.name, kept)
    for node in graph.node:
        node.input[:] = [_renamed(name, kept) for name in node.input]
        node.output[:] = [_renamed(name, kept) for name in node.output]
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                _rename(inner, kept)


def _renamed(name: str, kept: Collection[str]) -> str:
    return name if not name or name in kept else f"network/{name}"


def _real_outputs(nodes: Nodes, graph: onnx.GraphProto, model: Model) -> list[str]:
    """The outputs as real numbers."""
    declared = model.subgraphs[0]
    names = []
    for value, index in zip(graph.output, declared.outputs, strict=False):
        stored = declared.tensors[index].quantization
        if stored is None or stored.scale is None or len(stored.scale) != 1:
            names.append(value.name)
            continue
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        points = stored.zero_point
        point = np.array(points[0] if points is not None and len(points) else 0, dtype)
        scale = np.float32(stored.scale[0])
        names.append(nodes.op("DequantizeLinear", value.name, np.array(scale), point))
    return names


def _insert(graph: onnx.GraphProto, before: Nodes, *after: Nodes) -> None:
    network = list(graph.node)
    del graph.node[:]
    graph.node.extend(before.nodes)
    graph.node.extend(network)
    for nodes in after:
        graph.node.extend(nodes.nodes)
    for nodes in (before, *after):
        graph.input.extend(nodes.inputs)
        graph.initializer.extend(nodes.constants.values())


def _describe(model: onnx.ModelProto, kind: Kind, outputs: Mapping[str, Any]) -> None:
    said = {"kind": kind.name, "outputs": list(outputs), **kind.facts}
    model.metadata_props.add(key=PROPERTY, value=json.dumps(said))
