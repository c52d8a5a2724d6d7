"""Faults of named kinds in one operator of an exported quantised network, or in a translator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import helper, numpy_helper

from tests.one_op import Node, T
from tests.subgraph_models import Sub, model_of
from tflite_ort import BuiltinOpResolver, OpResolver
from tflite_ort.base.records import replace
from tflite_ort.schema import Op, OperatorView, SubOptions, TensorType, TensorView
from tflite_ort.versioning.registration import Registration

Array = npt.NDArray[Any]
_CODES = (onnx.TensorProto.INT8, onnx.TensorProto.UINT8)


class Place:
    """The nodes of one operator in a copy of an exported model, to be changed.

    Args:
        nodes: positions of its nodes.
    """

    def __init__(
        self, model: onnx.ModelProto, label: str, nodes: Sequence[int], rng: np.random.Generator
    ) -> None:
        self.model, self.label, self.rng = onnx.ModelProto(), label, rng
        self.model.CopyFrom(model)
        self.nodes = [self.model.graph.node[at] for at in nodes]
        self._after = max(nodes) + 1
        self._data = {each.name: each for each in self.model.graph.initializer}

    def constants(self, kinds: Sequence[str], at: int) -> Iterator[tuple[onnx.NodeProto, Array]]:
        """Constants that nodes of these kinds read as their input `at`."""
        for node in self.nodes:
            if node.op_type in kinds and len(node.input) > at and node.input[at] in self._data:
                yield node, numpy_helper.to_array(self._data[node.input[at]]).copy()

    def change(self, node: onnx.NodeProto, at: int, array: Array) -> None:
        """Give one node another constant."""
        name = f"{node.input[at]}/fault"
        self.model.graph.initializer.append(numpy_helper.from_array(array, name))
        node.input[at] = name

    def result(self) -> tuple[onnx.NodeProto, int] | None:
        """The last node that makes codes, and the lowest of these codes."""
        lowest = {onnx.TensorProto.INT8: -128, onnx.TensorProto.UINT8: 0}
        inferred = onnx.shape_inference.infer_shapes(self.model).graph
        types = {v.name: v.type.tensor_type for v in (*inferred.value_info, *inferred.output)}
        for node in reversed(self.nodes):
            kind = types.get(node.output[0])
            if kind is not None and kind.elem_type in _CODES:
                self.sizes = [each.dim_value for each in kind.shape.dim]
                self.kind = kind.elem_type
                return node, lowest[kind.elem_type]
        return None

    def behind(self, node: onnx.NodeProto, steps: Sequence[tuple[str, list[Array], dict]]) -> None:
        """Nodes between a node's result and all that read it: each an operator, its further
        inputs, and its attributes."""
        name, value = node.output[0], f"{node.output[0]}/right"
        node.output[0] = value
        made = []
        for number, (kind, arrays, attributes) in enumerate(steps):
            last = number == len(steps) - 1
            inputs = [value]
            for array in arrays:
                inputs.append(f"{self.label}/fault{number}/{len(inputs)}")
                self.model.graph.initializer.append(numpy_helper.from_array(array, inputs[-1]))
            value = name if last else f"{self.label}/fault{number}"
            made.append(
                helper.make_node(
                    kind, inputs, [value], name=f"{self.label}/fault{number}", **attributes
                )
            )
        rest = list(self.model.graph.node)
        del self.model.graph.node[:]
        self.model.graph.node.extend([*rest[: self._after], *made, *rest[self._after :]])


# In files ----------------------------------------------------------------------------------------


def channel_weights(place: Place) -> str:
    """The weights of one channel in another order."""
    found = [(n, a) for n, a in place.constants(["DequantizeLinear"], 0) if a.ndim > 1]
    for node, weights in found:
        rows = weights if "Conv" in place.label or "CONV" in place.label else weights.T
        at = place.rng.integers(len(rows))
        rows[at] = np.roll(rows[at].reshape(-1), 1).reshape(rows[at].shape)
        place.change(node, 0, weights)
        return f"weights of channel {at}"
    return ""


def channel_bias(place: Place) -> str:
    for node, bias in place.constants(["DequantizeLinear"], 0):
        if bias.dtype == np.int32 and bias.ndim == 1 and bias.size > 1:
            at = place.rng.integers(bias.size)
            bias[at] += np.int32(np.abs(bias).max() // 2 + 200)
            place.change(node, 0, bias)
            return f"bias of channel {at}"
    return ""


def zero_point(place: Place) -> str:
    for node, zero in place.constants(["QuantizeLinear"], 2):
        place.change(node, 2, (zero ^ np.asarray(3, zero.dtype)).astype(zero.dtype))
        return f"zero point {int(zero.reshape(-1)[0])} with three more or less"
    return ""


def scale(place: Place) -> str:
    for node, was in place.constants(["QuantizeLinear"], 1):
        place.change(node, 1, (was * np.float32(1.05)).astype(np.float32))
        return "scale of the result 5 % larger"
    return ""


def padding(place: Place) -> str:
    for node in place.nodes:
        for each in node.attribute:
            if each.name == "pads" and any(each.ints):
                half = len(each.ints) // 2
                sums = [a + b for a, b in zip(each.ints[:half], each.ints[half:], strict=True)]
                begin = [s - a if 2 * a != s else s for a, s in zip(each.ints, sums, strict=False)]
                each.ints[:] = [*begin, *(s - b for s, b in zip(sums, begin, strict=True))]
                return f"pads {list(each.ints)}"
    return ""


def clamp(place: Place) -> str:
    """An activation whose upper end is 60 % of the codes: of many values cut off."""
    return _widened(place, lambda low: [("Min", [np.array(low + 154, np.int32)], {})])


def saturated(place: Place) -> str:
    """Codes doubled, and cut off."""
    return _widened(
        place,
        lambda low: [
            ("Sub", [np.array(low, np.int32)], {}),
            ("Mul", [np.array(2, np.int32)], {}),
            ("Add", [np.array(low, np.int32)], {}),
        ],
    )


def one_quantum(place: Place) -> str:
    return _widened(place, lambda low: [("Add", [np.array(1, np.int32)], {})])


def one_quantum_of_a_channel(place: Place) -> str:
    if (found := place.result()) is None or len(place.sizes) != 4:
        return ""
    axis = 1 if found[0].output[0].endswith("/nchw") else 3
    step = np.zeros([1, *(n if i == axis else 1 for i, n in enumerate(place.sizes) if i)], np.int32)
    step.reshape(-1)[place.rng.integers(step.size)] = 1
    return _widened(place, lambda low: [("Add", [step], {})])


def constant(place: Place) -> str:
    return _widened(
        place,
        lambda low: [
            ("Mul", [np.array(0, np.int32)], {}),
            ("Add", [np.array(low + 100, np.int32)], {}),
        ],
    )


def swapped(place: Place) -> str:
    """Two axes of the same size."""
    if (found := place.result()) is None:
        return ""
    sizes = place.sizes
    for a, b in ((1, 2), (2, 3)):
        if len(sizes) > b and sizes[a] == sizes[b] > 1:
            order = list(range(len(sizes)))
            order[a], order[b] = b, a
            place.behind(found[0], [("Transpose", [], {"perm": order})])
            return f"axes {a} and {b} swapped"
    return ""


def _widened(place: Place, steps: Callable[[int], list[tuple[str, list[Array], dict]]]) -> str:
    """`steps` on the codes of the result as int32, cut to codes."""
    if (found := place.result()) is None:
        return ""
    node, low = found
    ends = [np.array(end, np.int32) for end in (low, low + 255)]
    wide = {"to": onnx.TensorProto.INT32}
    cut = [("Clip", ends, {}), ("Cast", [], {"to": place.kind})]
    place.behind(node, [("Cast", [], wide), *steps(low), *cut])
    return "codes of the result"


KINDS: Mapping[str, Callable[[Place], str]] = {
    each.__name__: each
    for each in (
        *(channel_weights, channel_bias, zero_point, scale, padding, clamp, saturated),
        *(one_quantum, one_quantum_of_a_channel, constant, swapped),
    )
}


# In translators ----------------------------------------------------------------------------------


def faulty_resolver(op: Op, version: int, output: str, kind: str) -> OpResolver:
    """A resolver whose translator of `op` gets one operator wrong, the one that makes `output`."""
    resolver = BuiltinOpResolver()
    right = resolver.find(op, version)
    assert right is not None and right.translate is not None

    def translate(view: OperatorView[Any], g: Any) -> None:
        right.translate(_TRANSLATOR[kind](view) if view.output.name == output else view, g)

    wrong = Registration(translate, right.kernel, right.inputs, state=right.state)
    resolver.add_builtin(op, wrong, version, version)
    return resolver


def _with_input(view: OperatorView[Any], at: int, tensor: TensorView) -> OperatorView[Any]:
    return replace(view, inputs=(*view.inputs[:at], tensor, *view.inputs[at + 1 :]))


def _other_weights(view: OperatorView[Any]) -> OperatorView[Any]:
    weights = view.inputs[1]
    assert weights is not None and weights.data is not None
    turned = np.roll(weights.data.reshape(-1), 1).reshape(weights.data.shape)
    return _with_input(view, 1, replace(weights, constant=turned))


def _other_bias(view: OperatorView[Any]) -> OperatorView[Any]:
    bias = view.inputs[2]
    assert bias is not None and bias.data is not None
    return _with_input(view, 2, replace(bias, constant=np.roll(bias.data, 1)))


def _other_scale(view: OperatorView[Any]) -> OperatorView[Any]:
    made = view.output
    assert made.quantization is not None
    larger = replace(made.quantization, scale=(made.quantization.scale * 1.05).astype(np.float32))
    return replace(view, outputs=(replace(made, quantization=larger), *view.outputs[1:]))


_TRANSLATOR: Mapping[str, Callable[[OperatorView[Any]], OperatorView[Any]]] = {
    "weights": _other_weights,
    "bias": _other_bias,
    "result": _other_scale,
}
TRANSLATOR_KINDS = tuple(_TRANSLATOR)


def halves() -> bytes:
    """As MoveNet's SUB: LiteRT rounds halves upwards, its reference kernel away from zero."""
    codes = T((1, 256), TensorType.INT8, 1.0)
    tensors = {"x": codes, "y": codes, "z": T((1, 256), TensorType.INT8, 2.0), "r": T((1, 256))}
    nodes = [Node(Op.SUB, ["x", "y"], ["z"], SubOptions()), Node(Op.DEQUANTIZE, ["z"], ["r"])]
    return model_of(Sub(tensors, nodes, ["x", "y"], ["r"]))
