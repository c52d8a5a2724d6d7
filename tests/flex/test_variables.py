"""TensorFlow's variables over invokes in a row, against what TensorFlow 2.18.1 answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.flex.nodes import declared_options
from tests.one_op import Node, T
from tests.subgraph_models import HANDLE, Sub, invoked, model_of
from tflite_ort import BridgeError, Interpreter
from tflite_ort.schema import CallOnceOptions, Op
from tflite_ort.schema.builder import tensor_type
from tflite_ort.schema.file.flex_table import TENSOR_TYPES

Array = npt.NDArray[Any]
NAMES = {type: name for name, type in TENSOR_TYPES.items()}


def node(name: str, inputs: list[str], outputs: list[str], **attributes: Any) -> Node:
    return Node(f"Flex{name}", inputs, outputs, declared_options(name, attributes))


def model(first: Array, change: str, *given: Array, reads: str = "ReadVariableOp") -> bytes:
    """A variable that is `first` once; each invoke changes it and reads it. The last of `given` is
    the model's input."""
    type = NAMES[tensor_type(first.dtype)]
    handle = node("VarHandleOp", [], ["h"], shared_name="v", dtype=type, shape=first.shape)
    set_once = [handle, node("AssignVariableOp", ["h", "f"], [], dtype=type)]
    names = [f"x{i}" for i in range(len(given))]
    tensors = {"h": HANDLE, "y": T(first.shape, TENSOR_TYPES[type])}
    for name, array in zip(names, given, strict=True):
        tensors[name] = T.constant(array)
    tensors[names[-1]] = T(given[-1].shape, tensor_type(given[-1].dtype))
    told = {"Tindices": NAMES[tensor_type(given[0].dtype)]} if len(given) > 1 else {}
    told["T" if "Nd" in change else "dtype"] = type
    if reads == "ReadVariableOp":
        changing = [node(change, ["h", *names], [], **told)]
        changing.append(node(reads, ["h"], ["y"], dtype=type))
    else:
        changing = [node(reads, ["h", *names], ["y"], Tindices="int32", dtype=type)]
    once = Node(Op.CALL_ONCE, [], [], CallOnceOptions(init_subgraph_index=1))
    return model_of(
        Sub(tensors, [once, handle, *changing], [names[-1]], ["y"]),
        Sub({"h": HANDLE, "f": T.constant(first)}, set_once, [], []),
    )


GRID = np.arange(6).reshape(3, 2)
ROWS = np.int32([2, 0, 2])
PLACES = np.int64([[0, 1], [2, 0], [0, 1]])
MODELS: dict[str, tuple[bytes, Array]] = {}
for dtype in (np.float32, np.int32, np.int64):
    grid = GRID.astype(dtype)
    for name in ("AssignAddVariableOp", "AssignSubVariableOp", "AssignVariableOp"):
        MODELS[f"{name}-{dtype.__name__}"] = model(grid, name, grid + 1), grid + 1
    for name in ("ResourceScatterAdd", "ResourceScatterSub"):
        MODELS[f"{name}-{dtype.__name__}"] = model(grid, name, ROWS, grid + 1), grid + 1
    for name in ("ResourceScatterNdAdd", "ResourceScatterNdSub"):
        updates = np.array([1, 2, 3], dtype)
        MODELS[f"{name}-{dtype.__name__}"] = model(grid, name, PLACES, updates), updates
    gathered = model(grid, "", ROWS, reads="ResourceGather")
    MODELS[f"ResourceGather-{dtype.__name__}"] = gathered, ROWS
    gathered = model(grid, "", PLACES.astype(np.int32), reads="ResourceGatherNd")
    MODELS[f"ResourceGatherNd-{dtype.__name__}"] = gathered, PLACES.astype(np.int32)
# After one invoke and after the next.
ANSWERS: dict[str, Any] = {
    "AssignAddVariableOp": ([[1, 3], [5, 7], [9, 11]], [[2, 5], [8, 11], [14, 17]]),
    "AssignSubVariableOp": ([[-1, -1]] * 3, [[-2, -3], [-4, -5], [-6, -7]]),
    "AssignVariableOp": ([[1, 2], [3, 4], [5, 6]],) * 2,
    "ResourceScatterAdd": ([[3, 5], [2, 3], [10, 13]], [[6, 9], [2, 3], [16, 21]]),
    "ResourceScatterSub": ([[-3, -3], [2, 3], [-2, -3]], [[-6, -7], [2, 3], [-8, -11]]),
    "ResourceScatterNdAdd": ([[0, 5], [2, 3], [6, 5]], [[0, 9], [2, 3], [8, 5]]),
    "ResourceScatterNdSub": ([[0, -3], [2, 3], [2, 5]], [[0, -7], [2, 3], [0, 5]]),
    "ResourceGather": ([[4, 5], [0, 1], [4, 5]],) * 2,
    "ResourceGatherNd": ([1, 4, 1],) * 2,
}


@pytest.mark.parametrize("name", MODELS)
def test_variables_are_those_of_tensorflow(name: str) -> None:
    content, given = MODELS[name]
    for providers in ([], None):
        interpreter = Interpreter(model_content=content, providers=providers)
        interpreter.allocate_tensors()
        for want in ANSWERS[name.partition("-")[0]]:
            (got,) = invoked(interpreter, [given])
            assert got.tolist() == want


def test_a_row_that_is_not_there_is_refused() -> None:
    grid = GRID.astype(np.float32)
    content = model(grid, "ResourceScatterAdd", np.int32([3, 0, 1]), grid)
    for providers in ([], None):
        interpreter = Interpreter(model_content=content, providers=providers)
        interpreter.allocate_tensors()
        with pytest.raises(BridgeError):
            invoked(interpreter, [grid])
