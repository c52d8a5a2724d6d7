"""An exported model with decoded outputs, and with a picture as its input."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper

from tflite_ort.decode.detections import Outputs
from tflite_ort.decode.image_input import add_image_input, add_region, no_projection
from tflite_ort.decode.networks import Kind
from tflite_ort.decode.nodes import Nodes, described
from tflite_ort.decode.picture_input import quantization_of
from tflite_ort.opmap.onnx_graph.opsets import IR_VERSIONS, OPSET
from tflite_ort.schema import ExportError, Model, Tensor, TensorType

Array = npt.NDArray[Any]

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
    raw = _real_outputs(nodes, [value.name for value in graph.output], model)
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
    del graph.output[:]
    graph.output.extend(_named(written, outputs))
    _insert(graph, before, nodes, written)
    _describe(result, kind, outputs)
    return result


def decoder(model: Model, kind: Kind) -> onnx.ModelProto:
    """The nodes that stand after a network of its kind, as a model of their own.

    Returns:
        A model whose inputs are ``output0``, ``output1``, ..., what the network gives as real
        numbers in float32, and ``size``, width and height of the picture. The results are those of
        `decoded`.
    """
    nodes, written, raw = Nodes("decode"), Nodes("outputs"), []
    for number in range(len(model.subgraphs[0].outputs)):  # which may declare no shape
        raw.append(nodes.input(f"output{number}", np.float32, None))
    to = no_projection(nodes) if kind.preparation is None else add_region(nodes, kind.preparation)
    results = _named(written, kind.build(nodes, raw, to))
    made = helper.make_graph(
        [*nodes.nodes, *written.nodes],
        "decoder",
        nodes.inputs,
        results,
        [*nodes.constants.values(), *written.constants.values()],
    )
    opset = helper.make_opsetid("", OPSET)
    return helper.make_model(made, opset_imports=[opset], ir_version=IR_VERSIONS[OPSET])


def real_values(value: Array, tensor: Tensor) -> Array:
    """An output as real numbers, to the last bit as in a decoded export."""
    scale, point = quantization_of(tensor)
    if not scale:
        return value.astype(np.float32, copy=False)
    real: Array = (value.astype(np.float32) - np.float32(point)) * np.float32(scale)
    return real


def _named(nodes: Nodes, outputs: Outputs) -> list[onnx.ValueInfoProto]:
    """The results under their names, as a graph declares them."""
    return [
        described(nodes.named(name, value), dtype, shape)
        for name, (value, dtype, shape) in outputs.items()
    ]


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


def _real_outputs(nodes: Nodes, names: Sequence[str], model: Model) -> list[str]:
    """The outputs as real numbers. No DequantizeLinear makes them: ONNX Runtime moves it over what
    follows, and then fails at codes of int8 whose zero point is 0."""
    declared = model.subgraphs[0]
    found = []
    for name, index in zip(names, declared.outputs, strict=False):
        scale, point = quantization_of(declared.tensors[index])
        if scale:
            real = nodes.sub(nodes.cast(name, np.float32), float(point))
            name = nodes.mul(real, np.float32(scale))
        elif declared.tensors[index].type is not TensorType.FLOAT32:
            name = nodes.cast(name, np.float32)
        found.append(name)
    return found


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
