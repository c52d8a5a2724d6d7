"""The face mesh with attention as the face landmarker's bundle has it.

The network in MediaPipe's wheel gives mesh, lips, eyes and irises apart, for its older solution.
The task reads one output of all points. Here operators of the network put the points together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from tflite_ort.decode.face_mesh import (
    ATTENDED,
    ATTENDED_DEPTHS,
    FIRST_EYELIDS,
    MESH_POINTS,
    SECOND_EYELIDS,
)
from tflite_ort.schema import (
    Buffer,
    ConcatenationOptions,
    GatherOptions,
    Model,
    Op,
    Operator,
    OperatorCode,
    ReducerOptions,
    ReshapeOptions,
    Tensor,
    TensorType,
)

_PARTS = 6  # mesh, lips, two eyes, two irises


class _Tail:
    """Tensors and operators that are added to a model."""

    def __init__(self, model: Model) -> None:
        graph = model.subgraphs[0]
        self.buffers, self.tensors = list(model.buffers), list(graph.tensors)
        self.operators, self.codes = list(graph.operators), list(model.operator_codes)

    def constant(self, values: npt.ArrayLike) -> int:
        array = np.asarray(values, np.int32)
        self.buffers.append(Buffer(np.frombuffer(array.tobytes(), np.uint8)))
        self.tensors.append(
            Tensor(shape=array.shape, type=TensorType.INT32, buffer=len(self.buffers) - 1)
        )
        return len(self.tensors) - 1

    def op(self, kind: Op, inputs: Sequence[int], shape: tuple[int, ...], options: object) -> int:
        self.tensors.append(Tensor(shape=shape, name=f"joined_{len(self.tensors)}"))
        self.codes.append(OperatorCode(kind))
        output = len(self.tensors) - 1
        self.operators.append(
            Operator(len(self.codes) - 1, tuple(inputs), (output,), options)  # type: ignore[arg-type]
        )
        return output


def joined(model: Model) -> Model:
    """`model` with one output of 478 points in place of its mesh, lips, eyes and irises."""
    tail, graph = _Tail(model), model.subgraphs[0]
    parts = graph.outputs[:_PARTS]
    sizes = [graph.tensors[index].shape[-1] for index in parts]
    flat = [
        tail.op(Op.RESHAPE, [index, tail.constant([size])], (size,), ReshapeOptions())
        for index, size in zip(parts, sizes, strict=True)
    ]
    lids = np.array([FIRST_EYELIDS, SECOND_EYELIDS]) * 3 + 2
    depths = tail.op(Op.GATHER, [flat[0], tail.constant(lids)], lids.shape, GatherOptions())
    means = tail.op(Op.MEAN, [depths, tail.constant([1])], (2,), ReducerOptions())
    count = sum(sizes) + 2
    all_numbers = tail.op(Op.CONCATENATION, [*flat, means], (count,), ConcatenationOptions())
    order = _order(sizes[0], sum(sizes))
    points = tail.op(Op.GATHER, [all_numbers, tail.constant(order)], order.shape, GatherOptions())
    shape = (1, 1, 1, len(order))
    output = tail.op(Op.RESHAPE, [points, tail.constant(shape)], shape, ReshapeOptions())
    changed = replace(
        graph,
        tensors=tuple(tail.tensors),
        operators=tuple(tail.operators),
        outputs=(output, *graph.outputs[_PARTS:]),
    )
    return replace(
        model,
        subgraphs=(changed,),
        buffers=tuple(tail.buffers),
        operator_codes=tuple(tail.codes),
        signature_defs=(),
    )


def _order(mesh: int, means: int) -> npt.NDArray[np.int64]:
    """Where x, y and z of each point are among the numbers of all parts.

    Args:
        mesh: how many numbers the mesh has.
        means: where the depths of the irises begin.
    """
    numbers = []
    for place, depth in zip(ATTENDED, ATTENDED_DEPTHS, strict=True):
        in_mesh = place < MESH_POINTS
        x = 3 * place if in_mesh else mesh + 2 * (place - MESH_POINTS)
        z = 3 * depth + 2 if depth < MESH_POINTS else means + depth - MESH_POINTS
        numbers += [x, x + 1, z]
    return np.array(numbers)
