"""Models like those of LiteRT's own interpreter tests, built here."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.one_op import Node, T, graph_model
from tflite_ort.schema import (
    AddOptions,
    Buffer,
    DensifyOptions,
    DimensionMetadata,
    DimensionType,
    FullyConnectedOptions,
    Int32Vector,
    MulOptions,
    Op,
    ReducerOptions,
    RNNOptions,
    SignatureDef,
    SparsityParameters,
    TensorMap,
    TensorType,
    read_model,
    write_model,
)

REVERSED = np.eye(4)[::-1]


def permute_float() -> bytes:
    """[1, 4] reversed by a matrix product."""
    tensors = {
        "input": T((1, 4)),
        "weights": T.constant(REVERSED.astype(np.float32)),
        "output": T((1, 4)),
    }
    node = Node(Op.FULLY_CONNECTED, ["input", "weights", None], ["output"], FullyConnectedOptions())
    return graph_model(tensors, [node], ["output"])


def permute_uint8() -> bytes:
    """As `permute_float`, in codes that are the values themselves."""
    codes = {"type": TensorType.UINT8, "scale": 1.0}
    tensors = {
        "input": T((1, 4), **codes),
        "weights": T.constant(REVERSED.astype(np.uint8), scale=1.0),
        "bias": T.constant(np.zeros(4, np.int32), scale=1.0),
        "output": T((1, 4), **codes),
    }
    node = Node(
        Op.FULLY_CONNECTED, ["input", "weights", "bias"], ["output"], FullyConnectedOptions()
    )
    return graph_model(tensors, [node], ["output"])


def sum_of_any_length() -> bytes:
    """The sum of a vector of unknown length, with a signature."""
    tensors = {
        "x": T((1,), shape_signature=(-1,)),
        "axes": T.constant(np.zeros(1, np.int32)),
        "total": T(()),
    }
    model = graph_model(
        tensors, [Node(Op.SUM, ["x", "axes"], ["total"], ReducerOptions())], ["total"]
    )
    signature = SignatureDef(
        inputs=(TensorMap("x", 0),), outputs=(TensorMap("total", 2),), signature_key="sum"
    )
    return write_model(replace(read_model(model), signature_defs=(signature,)))


def sparse_constant() -> bytes:
    """A 4 x 4 matrix of which three blocks of 2 x 2 are kept, two above and one below."""
    kept = np.array([1, 0, 0, 4, 2, 3, 0, 0, 5, 0, 0, 6], np.float32)
    tensors = {
        "sparse": T.constant(np.zeros((4, 4), np.float32)),
        "dense": T((4, 4)),
        "x": T((4, 4)),
        "y": T((4, 4)),
    }
    nodes = [
        Node(Op.DENSIFY, ["sparse"], ["dense"], DensifyOptions()),
        Node(Op.ADD, ["dense", "x"], ["y"], AddOptions()),
    ]
    model = read_model(graph_model(tensors, nodes, ["y"]))
    (graph,) = model.subgraphs
    dense = DimensionMetadata(format=DimensionType.DENSE, dense_size=2)
    compressed = DimensionMetadata(
        format=DimensionType.SPARSE_CSR,
        array_segments=Int32Vector(values=np.array([0, 2, 3], np.int32)),
        array_indices=Int32Vector(values=np.array([0, 1, 1], np.int32)),
    )
    sparsity = SparsityParameters(
        traversal_order=(0, 1, 2, 3),
        block_map=(0, 1),
        dim_metadata=(dense, compressed, dense, dense),
    )
    first = replace(graph.tensors[0], sparsity=sparsity)
    graph = replace(graph, tensors=(first, *graph.tensors[1:]))
    buffers = list(model.buffers)
    buffers[first.buffer] = Buffer(data=kept.view(np.uint8))
    return write_model(replace(model, subgraphs=(graph,), buffers=tuple(buffers)))


def two_signatures() -> bytes:
    """``add`` adds 2 to x in subgraph 0, ``multiply`` multiplies it by 3 in subgraph 1."""
    parts = [
        ("add", Op.ADD, AddOptions(), 2.0),
        ("multiply", Op.MUL, MulOptions(), 3.0),
    ]
    models = []
    for name, op, options, constant in parts:
        tensors = {
            f"{name}_x:0": T((1,), shape_signature=(-1,)),
            "constant": T.constant(np.float32([constant])),
            "PartitionedCall:0": T((1,), shape_signature=(-1,)),
        }
        first, second, result = tensors
        node = Node(op, [first, second], [result], options)
        models.append(read_model(graph_model(tensors, [node], [result])))
    first_model, second_model = models
    shift = len(first_model.buffers)
    (graph,) = second_model.subgraphs
    moved = replace(
        graph,
        tensors=tuple(
            replace(t, buffer=t.buffer + shift if t.buffer else 0) for t in graph.tensors
        ),
        operators=tuple(replace(op, opcode_index=1) for op in graph.operators),
    )
    signatures = tuple(
        SignatureDef(
            inputs=(TensorMap("x", 0),),
            outputs=(TensorMap("output_0", 2),),
            signature_key=name,
            subgraph_index=index,
        )
        for index, (name, *_) in enumerate(parts)
    )
    return write_model(
        replace(
            first_model,
            subgraphs=(*first_model.subgraphs, moved),
            buffers=(*first_model.buffers, *second_model.buffers),
            operator_codes=(*first_model.operator_codes, *second_model.operator_codes),
            signature_defs=signatures,
        )
    )


def running_sum() -> bytes:
    """Half of the last output is added to the input: one cell of a recurrent network."""
    tensors = {
        "x": T((1, 2)),
        "input weights": T.constant(np.eye(2, dtype=np.float32)),
        "recurrent weights": T.constant(np.eye(2, dtype=np.float32) / 2),
        "bias": T.constant(np.zeros(2, np.float32)),
        "state": T((1, 2), is_variable=True),
        "y": T((1, 2)),
    }
    node = Node(Op.RNN, list(tensors)[:-1], ["y"], RNNOptions())
    return graph_model(tensors, [node], ["y"])
