"""TensorFlow's operators that check or print.

A check of a tensor is nodes that fail. ONNX has nothing that prints, or that fails without a result
that needs it: an exported file leaves this out, and the interpreter leaves it to numpy.
"""

from __future__ import annotations

from typing import Any

from tflite_ort.opmap.flex.elementwise import FLOATS, read_computed, write_computed
from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.idioms.indices import failing
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import flex_translator
from tflite_ort.schema import OperatorView, Untranslatable
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.sizes import may_differ

View = OperatorView[Any]


@flex_translator("CheckNumerics", "CheckNumericsV2")
def check_numerics(op: View, g: Graph) -> None:
    """Reshape to the tensor's own shape, which fails unless all numbers are finite."""
    (x,) = op.present_inputs()
    value = read_computed(g, x, FLOATS, Layout.LAST)
    odd = g.op("Or", g.op("IsNaN", value), g.op("IsInf", value))
    count = g.op("ReduceSum", g.cast(odd, ir.DataType.INT64), keepdims=0)
    shape = failing(g, g.op("Shape", value), g.op("Greater", count, g.ints(0)))
    result = g.op("Reshape", value, shape, allowzero=1)
    write_computed(g, op.output, result, Layout.LAST)


@flex_translator("EnsureShape")
def ensure_shape(op: View, g: Graph) -> None:
    """Identity; Reshape, which fails, where the shape is not known to be as it has to be."""
    (x,) = op.present_inputs()
    told = node_of(op)["shape"]
    if told is None or not may_differ(x.shape, op.output.shape):
        g.take(op.output, g.forms_as(x, op.output))
        return
    value = g.read(x, domain=Domain.FILE)
    sizes = g.op("Shape", value)
    wanted = g.ints(told)
    fits = g.op("Or", g.op("Less", wanted, g.ints(0)), g.op("Equal", wanted, sizes))
    shape = failing(g, sizes, g.op("Not", fits))
    result = g.op("Reshape", value, shape, allowzero=1)
    g.write(op.output, result, domain=Domain.FILE)


def _left_to_numpy(g: Graph) -> None:
    if g.target.fallback:
        raise Untranslatable("ONNX neither prints nor fails without a result")


@flex_translator("Assert", "PrintV2")
def left_out(op: View, g: Graph) -> None:
    """No node."""
    _left_to_numpy(g)


@flex_translator("Print")
def printed(op: View, g: Graph) -> None:
    """The first tensor itself."""
    _left_to_numpy(g)
    g.take(op.output, g.forms_as(op.present_inputs()[0], op.output))


@flex_translator("NoOp")
def no_op(op: View, g: Graph) -> None:
    """No node."""
