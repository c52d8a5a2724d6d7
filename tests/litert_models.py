"""Models like those that LiteRT's own interpreter tests use."""

from __future__ import annotations

import numpy as np

from tests.one_op import Node, T, graph_model
from tests.subgraph_models import Sub, model_of
from tflite_ort.schema import (
    AddOptions,
    DensifyOptions,
    DimensionMetadata,
    DimensionType,
    FullyConnectedOptions,
    Int32Vector,
    MulOptions,
    Op,
    ReducerOptions,
    RNNOptions,
    SparsityParameters,
    TensorType,
    VarHandleOptions,
)

REVERSED = np.eye(4)[::-1]


def permute_float() -> bytes:
    """A matrix product that reverses a vector [1, 4]."""
    tensors = {
        "input": T((1, 4)),
        "weights": T.constant(REVERSED.astype(np.float32)),
        "output": T((1, 4)),
    }
    node = Node(Op.FULLY_CONNECTED, ["input", "weights", None], ["output"], FullyConnectedOptions())
    return graph_model(tensors, [node], ["output"])


def permute_uint8() -> bytes:
    """As `permute_float` in uint8, where each code is its own value."""
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
    node = Node(Op.SUM, ["x", "axes"], ["total"], ReducerOptions())
    return model_of(Sub(tensors, [node], ["x"], ["total"], "sum"))


def sparse_constant() -> bytes:
    """A sparse 4 x 4 matrix of three 2 x 2 blocks: two in the first row, one in the second."""
    kept = np.array([1, 0, 0, 4, 2, 3, 0, 0, 5, 0, 0, 6], np.float32)
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
    tensors = {
        "sparse": T((4, 4), raw=kept.tobytes(), sparsity=sparsity),
        "dense": T((4, 4)),
        "x": T((4, 4)),
        "y": T((4, 4)),
    }
    nodes = [
        Node(Op.DENSIFY, ["sparse"], ["dense"], DensifyOptions()),
        Node(Op.ADD, ["dense", "x"], ["y"], AddOptions()),
    ]
    return graph_model(tensors, nodes, ["y"])


def two_signatures() -> bytes:
    """Two signatures: ``add`` (subgraph 0) is x + 2, ``multiply`` (subgraph 1) is x * 3."""
    vector = T((1,), shape_signature=(-1,))
    parts = [
        ("add", Op.ADD, AddOptions(), 2.0),
        ("multiply", Op.MUL, MulOptions(), 3.0),
    ]
    graphs = (
        Sub(
            {"x": vector, "k": T.constant(np.float32([number])), "y": vector},
            [Node(op, ["x", "k"], ["y"], options)],
            ["x"],
            ["y"],
            name,
        )
        for name, op, options, number in parts
    )
    return model_of(*graphs)


def variable_signatures() -> bytes:
    """Two signatures: ``write`` stores x and returns -x, ``read`` returns x + what is stored."""
    vector = T((2,))
    handle = Node(Op.VAR_HANDLE, [], ["h"], VarHandleOptions(container="", shared_name="v"))
    tensors = {"x": vector, "h": T((), TensorType.RESOURCE), "v": vector, "y": vector}
    write = [handle, Node(Op.ASSIGN_VARIABLE, ["h", "x"], []), Node(Op.NEG, ["x"], ["y"])]
    add = Node(Op.ADD, ["x", "v"], ["y"], AddOptions())
    read = [handle, Node(Op.READ_VARIABLE, ["h"], ["v"]), add]
    parts = (("write", write), ("read", read))
    return model_of(*(Sub(tensors, nodes, ["x"], ["y"], name) for name, nodes in parts))


def running_sum() -> bytes:
    """A recurrent cell that adds half of its last output to its input."""
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
