"""Integers at the edges of 32 and 64 bits, where kernels of ONNX Runtime are wrong."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import onnx
import pytest

from benchmarks.kernel_edges import findings, named_operators
from benchmarks.kernel_trials import CHECKS, UNTRIED, edges
from benchmarks.wrong_kernels import wrong_kernel
from tests import samples
from tests.one_op import Array, T, one_op_model, ours
from tests.ops.operands import exported
from tests.oracle import litert
from tflite_ort import BridgeError, export_onnx, schema
from tflite_ort.schema import Op, TensorType

INT32, INT64 = TensorType.INT32, TensorType.INT64
EDGES = edges(np.dtype(np.int64))


def compare(model: bytes, feeds: list[Array], runs_on: str = "ort") -> None:
    """ONNX Runtime, the kernel and an exported file, exactly as LiteRT."""
    want = litert(model, feeds)[0]
    by_ort, runners = ours(model, feeds)
    assert runners == {runs_on}
    for got in (by_ort, ours(model, feeds, [])[0], exported(model, feeds)):
        np.testing.assert_array_equal(got[0], want)


@pytest.mark.parametrize("op", [Op.MAXIMUM, Op.MINIMUM], ids=lambda op: op.name)
def test_larger_and_smaller(op: Op) -> None:
    """Each edge with each other one."""
    a, b = (np.ascontiguousarray(x) for x in np.meshgrid(EDGES, EDGES))
    tensors = [T(x.shape, INT64) for x in (a, b)]
    compare(one_op_model(op, tensors, [T(a.shape, INT64)]), [a, b])


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 2), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("op", [Op.REDUCE_MAX, Op.REDUCE_MIN], ids=lambda op: op.name)
def test_largest_and_smallest(op: Op, axes: tuple[int, ...]) -> None:
    """Along constant axes and computed ones."""
    x = np.random.default_rng(len(axes)).choice(EDGES, (5, 6, 7))
    made = T(np.zeros(x.shape)[:, :, :].sum(axes, keepdims=True).shape, INT64)
    options = schema.ReducerOptions(keep_dims=True)
    listed = np.array(axes, np.int32)
    compare(one_op_model(op, [T(x.shape, INT64), T.constant(listed)], [made], options), [x])
    computed = one_op_model(op, [T(x.shape, INT64), T(listed.shape, INT32)], [made], options)
    want = litert(computed, [x, listed])[0]
    for got in (ours(computed, [x, listed])[0], exported(computed, [x, listed])):
        np.testing.assert_array_equal(got[0], want)


POWERS: dict[str, Any] = {
    "one": [3],
    "each": [0, 1, 2, 5],
    "large": [0, 31, 64, 2**31 - 1],
    "own": [2],
}


@pytest.mark.parametrize("exponents", POWERS)
def test_powers(exponents: str) -> None:
    """POW of integers beyond 32 bits: they wrap if there is one exponent for all."""
    x = edges(np.dtype(np.int32))[:, np.newaxis]
    y = np.array(POWERS[exponents], np.int32)
    if exponents == "own":
        y = np.resize(y, x.shape)
    made = T(np.broadcast_shapes(x.shape, y.shape), INT32)
    compare(one_op_model(Op.POW, [T(x.shape, INT32), T.constant(y)], [made]), [x])
    computed = one_op_model(Op.POW, [T(x.shape, INT32), T(y.shape, INT32)], [made])
    want = litert(computed, [x, y])[0]
    np.testing.assert_array_equal(exported(computed, [x, y])[0], want)


def test_every_wrong_kernel_is_known() -> None:
    """The sweep finds nothing that the table of wrong kernels lacks."""
    new = [found for found in findings() if not found.known]
    assert not new, "\n".join(map(str, new))


def test_every_integer_kernel_is_tried() -> None:
    """What translators name and the sweep leaves out is listed."""
    assert set(named_operators()) <= {name.partition("/")[0] for name in CHECKS} | UNTRIED


def nodes(graph: onnx.GraphProto) -> Iterable[tuple[onnx.NodeProto, str]]:
    """All nodes with the type of their first output."""
    values = (*graph.input, *graph.output, *graph.value_info)
    types = {value.name: value.type.tensor_type.elem_type for value in values}
    for node in graph.node:
        if types.get(node.output[0]):
            yield node, onnx.helper.tensor_dtype_to_np_dtype(types[node.output[0]]).name
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from nodes(attribute.g)


@pytest.mark.parametrize("op", samples.SAMPLES, ids=lambda op: op.name)
def test_no_wrong_kernel_is_used(op: Op) -> None:
    """Of 64-bit and other numbers, constants computed or not."""
    for type in samples.types(op):
        model, _ = samples.sample(op, type)
        try:
            proto = onnx.shape_inference.infer_shapes(export_onnx(model))
        except BridgeError:
            continue  # what the operator does not take
        for node, kind in nodes(proto.graph):
            wrong = wrong_kernel(node.op_type, kind)
            assert wrong is None or wrong.despite, f"{node.name} of {kind}: {wrong}"
