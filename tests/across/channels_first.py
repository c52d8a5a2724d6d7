"""Translations of one operator whose inputs exist in channels-first layout only."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.one_op import Case, assert_close
from tflite_ort.fallback_kernels import kernel
from tflite_ort.opmap import OPSET, Domain, Graph, Layout, translator
from tflite_ort.opmap.graph import Target
from tflite_ort.opmap.graph.forms import carried_type
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.lowering import PORTABLE, translate
from tflite_ort.providers.model_session import model_session
from tflite_ort.providers.trials import exact_weight_type
from tflite_ort.schema import OperatorView, TensorType, TensorView, read_model
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.specialize.specialization import specialize

Array = npt.NDArray[Any]


def check_channels_first(case: Case, seed: int = 0, target: Target = PORTABLE) -> int:
    """Compare the translation with the numpy kernel. Returns how many Transposes it has."""
    print(f"{case.name} channels-first: seed {seed}")
    feeds = case.arrays(np.random.default_rng(seed))
    op = specialize(read_model(case.model()), 0, {}, kernel).operators[0]
    arguments = [t for t in op.inputs if t is not None and not t.is_constant]
    model, nodes = _translated(op, arguments, target)
    results = [np.zeros(out.shape, out.dtype) for out in op.outputs]
    # ONNX Runtime's own layers by signed weights are wrong on a CPU without VNNI.
    session = model_session(model, optimized=target.weights in ("uint8", exact_weight_type()))
    carried = [_carried(array, t) for array, t in zip(feeds, arguments, strict=True)]
    session.run(session.bind(carried, results))
    for result, want in zip(results, _by_kernel(op, feeds), strict=True):
        assert_close(result, want, case.quanta, case.rtol, case.name)
    return sum(node.op_type == "Transpose" for node in nodes)


def _translated(
    op: OperatorView[Any], arguments: list[TensorView], target: Target
) -> tuple[ir.Model, list[ir.Node]]:
    g = Graph(target)
    inputs = []
    for position, tensor in enumerate(arguments):
        dtype = NUMPY_DTYPE[carried_type(tensor) if tensor.is_quantized else tensor.type]
        value = ir.Value(
            f"given{position}",
            dtype=ir.DataType.from_numpy(np.dtype(dtype)),
            shape=Layout.FIRST.shape(tensor.shape),
        )
        g.write(tensor, value, layout=Layout.FIRST, domain=Domain.STORED)
        inputs.append(value)
    translate(op, g, translator)
    nodes = list(g.nodes)
    outputs = [g.op("Identity", g.read(out, domain=Domain.FILE)) for out in op.outputs]
    for value, tensor in zip(outputs, op.outputs, strict=True):
        value.dtype = ir.DataType.from_numpy(tensor.dtype)
        value.shape = tensor.shape
    constants = g.constants.values
    graph = ir.Graph(inputs, outputs, g.nodes, initializers=constants, name="channels_first")
    graph.drop_unread()
    return ir.Model(graph, opset_imports={"": OPSET}), nodes


def _carried(array: Array, tensor: TensorView) -> Array:
    """`array` in channels-first layout. int8 codes become uint8 ones, moved by 128."""
    first = np.ascontiguousarray(np.transpose(array, Layout.FIRST.permutation(array.ndim)))
    if tensor.is_quantized and tensor.type is TensorType.INT8:
        return first.view(np.uint8) ^ np.uint8(128)
    return first


def _by_kernel(op: OperatorView[Any], feeds: list[Array]) -> tuple[Array, ...]:
    entry = kernel.find(op.op, op.version)
    assert entry is not None
    computed = iter(feeds)
    arrays = [
        None if t is None else next(computed) if t.data is None else t.data for t in op.inputs
    ]
    return entry.function(entry.inputs.bind(op), arrays, None)
