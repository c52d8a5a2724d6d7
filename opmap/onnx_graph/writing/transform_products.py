"""Fourier transforms as products with their waves: most readers of ONNX have no DFT.

A sum of N products rounds more often than a fast transform does. With u = 2**-24 each result is at
most (N + 2) * u times the sum of the magnitudes of the numbers off.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.added_nodes import AddedNodes
from tflite_ort.opmap.onnx_graph.writing.known_values import Known
from tflite_ort.opmap.onnx_graph.writing.table_nodes import Names

# Numbers of a matrix: 32 MiB.
_MOST = 1 << 23
# With that of 512 real numbers or 128 pairs, a product of one row takes ONNX Runtime as long as its
# DFT, and one of several rows less.
_FASTER = 512 * 514
_FLOATS = frozenset({ir.DataType.FLOAT, ir.DataType.DOUBLE})
_REAL, _PAIRS = 1, 2


def multiply_transforms(graph: ir.Graph, known: Known, *, faster: bool) -> None:
    """Write each DFT as a MatMul, unless its matrix is very large.

    Args:
        known: of the values of the graph.
        faster: only where ONNX Runtime takes no more time for it.
    """
    names, nodes = Names(graph), list[ir.Node]()
    for node in graph.nodes:
        transform = _transform(node, known)
        if transform is None or transform.numbers > transform.most(faster):
            nodes.append(node)
        else:
            nodes += _product(AddedNodes(graph, node.name, names), node, transform)
    graph.nodes = nodes
    graph.drop_unread()


@record
class _Transform:
    """What a DFT does.

    Args:
        rank, axis: of what it reads, and along which axis; the last axis has the parts.
        size: of that axis.
        parts: 1 for real numbers, 2 for pairs.
        length: of the transform: what is beyond it is not read, what there is less is 0.
        onesided: the first half of the frequencies is kept.
        inverse: of the inverse transform.
        dtype: of the numbers.
    """

    rank: int
    axis: int
    size: int
    parts: int
    length: int
    onesided: bool
    inverse: bool
    dtype: ir.DataType

    @property
    def read(self) -> int:
        """How many numbers of a row are read."""
        return min(self.size, self.length)

    @property
    def kept(self) -> int:
        """How many frequencies there are."""
        return self.length // 2 + 1 if self.onesided else self.length

    @property
    def numbers(self) -> int:
        """The size of the matrix."""
        return self.read * self.parts * self.kept * _PAIRS

    def most(self, faster: bool) -> int:
        """How large the matrix may be."""
        return _FASTER // self.parts**2 if faster else _MOST

    def matrix(self) -> npt.NDArray[Any]:
        """[read numbers and their parts, frequencies and their parts]."""
        turns = np.outer(np.arange(self.read), np.arange(self.kept)) % self.length
        waves = np.exp((2j if self.inverse else -2j) * np.pi / self.length * turns)
        waves = waves / self.length if self.inverse else waves
        rows = np.stack([waves, 1j * waves][: self.parts], axis=1)
        pairs = np.stack([rows.real, rows.imag], axis=-1)
        return pairs.reshape(self.read * self.parts, -1).astype(self.dtype.numpy())


def _transform(node: ir.Node, known: Known) -> _Transform | None:
    """What a node transforms; None where it is no DFT, or its sizes are not known."""
    if node.op_type != "DFT" or node.domain:
        return None
    shape, dtype = known.shape(node.inputs[0]), known.type(node.inputs[0])
    axis = node.attributes.get("axis")
    if axis is None and (told := node.constant(2)) is not None:
        axis = int(told)
    if shape is None or dtype not in _FLOATS or dtype is None or not isinstance(axis, int):
        return None
    axis %= len(shape)
    size, parts = shape[axis], shape[-1]
    onesided, inverse = (bool(node.attributes.get(each, 0)) for each in ("onesided", "inverse"))
    if not isinstance(size, int) or parts not in (_REAL, _PAIRS) or not isinstance(parts, int):
        return None
    if onesided and (inverse or parts == _PAIRS):
        return None
    given = node.inputs[1] if len(node.inputs) > 1 else None
    told = node.constant(1)
    if given is not None and told is None:
        return None
    length = size if told is None else int(told.reshape(-1)[0])
    if length < 1 or size < 1:
        return None
    return _Transform(len(shape), axis, size, parts, length, onesided, inverse, dtype)


def _product(added: AddedNodes, node: ir.Node, transform: _Transform) -> list[ir.Node]:
    """The nodes of a product, of the last axis but one."""
    rank, axis, (made,) = transform.rank, transform.axis, node.outputs
    value, batch = node.inputs[0], [0] * (rank - 2)  # 0 stands for the size that there is
    if transform.read < transform.size:
        bounds = ([0], [transform.read], [axis])
        value = added.op("Slice", value, *(added.ints(each, "bounds") for each in bounds))
    order = [each for each in range(rank - 1) if each != axis] + [axis, rank - 1]
    is_turned = order != sorted(order)
    if is_turned:
        value = added.op("Transpose", value, perm=order)
    rows = added.ints([*batch, transform.read * transform.parts], "rows")
    matrix = added.constant(transform.matrix(), "waves")
    product = added.op("MatMul", added.op("Reshape", value, rows), matrix)
    pairs = added.ints([*batch, transform.kept, _PAIRS], "pairs")
    if is_turned:
        back = [order.index(each) for each in range(rank)]
        added.emit("Transpose", [added.op("Reshape", product, pairs)], [made], perm=back)
    else:
        added.emit("Reshape", [product, pairs], [made])
    return added.nodes
