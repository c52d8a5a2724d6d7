"""Small networks of the kinds that are known: shapes as MediaPipe's, almost no weights.

What they give depends on the mean colour of the picture, and is otherwise as it is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.one_op import Node, T, graph_model
from tflite_ort.schema import (
    FullyConnectedOptions,
    Op,
    ReducerOptions,
    ReshapeOptions,
    SoftmaxOptions,
)

Array = npt.NDArray[Any]

_DENSE = FullyConnectedOptions()


def network(
    size: int, outputs: Sequence[Array], weight: float = 0.0, last: Op | None = None
) -> bytes:
    """A model of a picture [1, size, size, 3] that gives `outputs`, and `weight` times the mean of
    each channel besides.

    Args:
        last: an operator that each output goes through at last.
    """
    tensors = {
        "picture": T((1, size, size, 3)),
        "axes": T.constant(np.array([1, 2], np.int32)),
        "mean": T((1, 3)),
    }
    nodes = [Node(Op.MEAN, ["picture", "axes"], ["mean"], ReducerOptions(keep_dims=False))]
    for number, wanted in enumerate(outputs):
        count, shape = wanted.size, np.array(wanted.shape, np.int32)
        rows = np.zeros((count, 3), np.float32)
        rows[np.arange(count), np.arange(count) % 3] = weight
        tensors |= {
            f"w{number}": T.constant(rows),
            f"b{number}": T.constant(wanted.reshape(-1).astype(np.float32)),
            f"f{number}": T((1, count)),
            f"s{number}": T.constant(shape),
            f"r{number}": T(wanted.shape),
            f"y{number}": T(wanted.shape),
        }
        end = f"y{number}" if last is None else f"r{number}"
        nodes += [
            Node(
                Op.FULLY_CONNECTED,
                ["mean", f"w{number}", f"b{number}"],
                [f"f{number}"],
                FullyConnectedOptions(),
            ),
            Node(Op.RESHAPE, [f"f{number}", f"s{number}"], [end], ReshapeOptions(wanted.shape)),
        ]
        if last is not None:
            nodes.append(Node(last, [end], [f"y{number}"], _options(last)))
    used = {name for node in nodes for name in (*node.inputs, *node.outputs)}
    kept = {name: tensor for name, tensor in tensors.items() if name in used}
    return graph_model(kept, nodes, [f"y{number}" for number in range(len(outputs))])


def _options(op: Op) -> Any:
    return SoftmaxOptions(1.0) if op is Op.SOFTMAX else None
