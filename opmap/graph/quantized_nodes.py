"""Nodes between real numbers and codes: weights, biases, QuantizeLinear, fused activations."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph.forms import (
    Domain,
    Target,
    carried_codes,
    carried_type,
    carried_zero_point,
)
from tflite_ort.opmap.graph.nodes import Nodes
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import (
    ActivationFunctionType,
    ModelError,
    Quantization,
    TensorType,
    TensorView,
    Untranslatable,
)
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.schema.values import semantics

Array = npt.NDArray[Any]


_LARGEST_FLOAT = float(np.finfo(np.float32).max)
# Below this, 8-bit codes less their zero points are exact in float32.
_EXACT = 1 << 23
_LAYERS = frozenset({"Conv", "ConvTranspose", "Gemm"})
# ONNX Runtime moves a QuantizeLinear or a Transpose past these.
_PASSED = frozenset({"Clip", "Relu", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})


class QuantizedNodes(Nodes):
    """Nodes, with the types that carry quantized weights and activations.

    Args:
        weight_type: the type that carries 8-bit weights.

    Attributes:
        target: what the graph is made for.
    """

    target: Target

    def __init__(self, weight_type: TensorType) -> None:
        super().__init__()
        self.weight_type = weight_type

    def weights(
        self,
        tensor: TensorView,
        *,
        permutation: Sequence[int] | None = None,
        shape: Sequence[int] | None = None,
        axis: int = 0,
        real: bool = False,
    ) -> ir.Value:
        """Constant weights as real numbers, laid out by numpy: first `permutation`, then `shape`.

        Args:
            axis: the dimension of the result along which per-channel scales run.
            real: dequantize in numpy instead of by a DequantizeLinear in the graph.
        """
        data, quantization = tensor.data, tensor.quantization
        if data is None:
            raise Untranslatable("weights are not constant")

        def relaid(array: Array) -> Array:
            moved = array if permutation is None else np.transpose(array, permutation)
            return moved if shape is None else np.reshape(moved, shape)

        if real and quantization is not None:
            scales = quantization.scale.tobytes(), quantization.zero_point.tobytes()
            make = partial(dequantized, data, quantization)
            return self._laid(tensor, lambda: relaid(make()), permutation, shape, scales)
        if not tensor.is_quantized:
            return self._laid(tensor, partial(relaid, data), permutation, shape)
        assert quantization is not None
        of, to = tensor.type, self.weight_type
        zero_point = carried_zero_point(data.dtype, of, quantization.zero_point, to)
        return self._dequantized_constant(
            self._laid(tensor, lambda: carried_codes(relaid(data), of, to), permutation, shape, to),
            quantization.scale,
            zero_point,
            axis,
            tensor.name,
        )

    def _laid(
        self,
        tensor: TensorView,
        make: Callable[[], Array],
        permutation: Sequence[int] | None,
        shape: Sequence[int] | None,
        *further: Hashable,
    ) -> ir.Value:
        layout = (*(each and tuple(each) for each in (permutation, shape)), *further)
        return self.constants.laid(tensor.constant, layout, make, tensor.name)

    def packed_weights(self, tensor: TensorView, *, permutation: Sequence[int]) -> ir.Value:
        """Constant 4-bit weights as a DequantizeLinear of INT4, which has two codes in a byte.

        ONNX Runtime fuses it with a MatMul to MatMulNBits, which never unpacks all weights. In a
        body it looks for the weights among those of the body, and refuses the whole graph.
        """
        real = self._packed_weights(tensor, permutation)
        return self.apart(real) if self._depth else real

    def _packed_weights(self, tensor: TensorView, permutation: Sequence[int]) -> ir.Value:
        data, quantization, blocks = tensor.data, tensor.quantization, tensor.blocks
        if data is None:
            raise Untranslatable("4-bit weights are not constant")
        codes = self.constants.packed(tensor.constant, data, permutation, tensor.name)
        if blocks is not None:
            scale = np.transpose(blocks.scale, permutation).astype(np.float32)
            scales = self.constants.add(scale, f"{tensor.name}_scale")
            axis = permutation.index(tensor.rank - 1)
            return self.op("DequantizeLinear", codes, scales, axis=axis, block_size=blocks.size)
        if quantization is None or quantization.zero_point.any():
            raise Untranslatable("4-bit weights without a scale around 0")
        axis = permutation.index(quantization.axis)
        return self._dequantized_constant(codes, quantization.scale, None, axis, tensor.name)

    def bias(self, tensor: TensorView, scale: npt.ArrayLike) -> ir.Value:
        """A constant bias [N] as real numbers.

        Args:
            scale: [1] or [N], input scale times filter scale. As in TFLite's kernels it is the
                scale of integer codes; the own scale of the bias is ignored.
        """
        if tensor.data is None:
            raise Untranslatable("bias is not constant")
        scales = np.asarray(scale, np.float32)
        if tensor.type is TensorType.INT32:
            codes = self.constants.add(tensor.data, tensor.name)
            return self._dequantized_constant(codes, scales, None, 0, tensor.name)
        if tensor.type is TensorType.INT64:  # of 16-bit activations; ONNX does not dequantize it
            return self._wide_bias(tensor.data, scales, tensor.name)
        return self.constants.add(tensor.data, tensor.name)

    def _wide_bias(self, codes: Array, scales: npt.NDArray[np.float32], name: str) -> ir.Value:
        """A bias of 64-bit codes as floats. ONNX Runtime quantizes these again, to 32 bits that
        wrap, so large codes are rounded to their 31 highest bits here."""
        reals = codes * scales.astype(np.float64)
        if np.all(np.abs(codes.astype(np.float64)) < 2**30):
            if self.target.paired_codes:  # an NPU has no float bias beside codes
                held = self.constants.add(codes.astype(np.int32), name)
                return self._dequantized_constant(held, scales, None, 0, name)
            return self.constants.add(reals.astype(np.float32), name)
        units = np.maximum(np.abs(reals) / (2.0**31 - 1), np.finfo(np.float32).tiny)
        held = self.constants.add(np.rint(reals / units).astype(np.int32), name)
        return self._dequantized_constant(held, units.astype(np.float32), None, 0, name)

    def quantize(self, value: ir.Value, tensor: TensorView) -> ir.Value:
        """The carried codes of `tensor` for real numbers; halves are rounded to even."""
        producer, parameters = value.producer(), self._parameters(tensor, carried_type(tensor))
        twice = producer is not None and producer.op_type == "DequantizeLinear"
        if producer is not None and twice and (codes := _unchanged(producer, parameters)):
            return codes
        if twice or _has_float_weights(origin(value)):
            # Of two pairs of QuantizeLinear and DequantizeLinear in a row ONNX Runtime makes one,
            # with a mean scale, and it rounds float weights between a DequantizeLinear and a
            # QuantizeLinear to 8 bits.
            value = self._recoded(value) if twice else self.apart(value)
        return self.op("QuantizeLinear", value, *parameters)

    def dequantize(self, value: ir.Value, tensor: TensorView) -> ir.Value:
        """The real numbers for carried codes of `tensor`."""
        return self._dequantize(value, tensor, carried_type(tensor))

    def zero_code(self, tensor: TensorView) -> ir.Value:
        """The carried code of `tensor` for 0."""
        return self._parameters(tensor, carried_type(tensor))[1]

    def apart(self, value: ir.Value) -> ir.Value:
        """`value` behind a node that keeps ONNX Runtime from fusing its producer and users."""
        return self.op("Max", value, self.constant(np.finfo(np.float32).min))

    def _recoded(self, value: ir.Value) -> ir.Value:
        """`apart`, for codes that become other codes. ONNX Runtime turns a LeakyRelu between codes
        into one lookup in a table; here its slope is 1 and changes nothing."""
        if not self.target.code_tables:
            return self.apart(value)
        return self.op("LeakyRelu", value, alpha=1.0)

    def quantize_units(self, value: ir.Value, tensor: TensorView) -> ir.Value:
        """The carried codes of `tensor` for `value` in units of its scale; halves go up."""
        whole = self.op("Floor", self.op("Add", value, self.constant(0.5, np.float32)))
        return self.op(
            "QuantizeLinear", whole, *self._parameters(tensor, carried_type(tensor), 1.0)
        )

    def steps_of_codes(self, codes: ir.Value, tensor: TensorView, step: float) -> ir.Value:
        """Codes that are carried as those of `tensor`, in float32: counted from code 0 of the file,
        times `step`."""
        return self.op("DequantizeLinear", codes, *self._code_parameters(tensor, step))

    def quantize_codes(self, value: ir.Value, tensor: TensorView) -> ir.Value:
        """The carried codes of `tensor` for floats that are near codes as the file has them."""
        return self.op("QuantizeLinear", value, *self._code_parameters(tensor, 1.0))

    def filed(self, value: ir.Value, tensor: TensorView) -> ir.Value:
        """The codes of the file for carried codes of `tensor`."""
        carried = carried_type(tensor)
        return (
            value if carried is tensor.type else self._recode(value, tensor, carried, tensor.type)
        )

    def _dequantized_constant(
        self,
        codes: ir.Value,
        scale: npt.NDArray[np.float32],
        zero_point: Array | None,
        axis: int,
        name: str,
    ) -> ir.Value:
        """DequantizeLinear of an initializer, with a scale and a zero point of its own: when ONNX
        Runtime rewrites weights it fails on shared ones."""
        per_channel = scale.size > 1
        parameters = [
            self.constants.add(
                np.ascontiguousarray(array) if per_channel else array.reshape(()), f"{name}_{what}"
            )
            for array, what in ((scale, "scale"), (zero_point, "zero_point"))
            if array is not None
        ]
        return self.op("DequantizeLinear", codes, *parameters, axis=axis if per_channel else None)

    def _parameters(
        self, tensor: TensorView, type_: TensorType, step: float | None = None
    ) -> tuple[ir.Value, ir.Value]:
        """Scale and zero point of an activation: scalars, since QLinearAdd refuses [1].

        Args:
            step: a scale in place of that of `tensor`.
        """
        quantization = tensor.quantization
        if quantization is None:
            raise Untranslatable(f"{tensor.name!r} has no scale")
        if quantization.per_channel:
            raise Untranslatable(f"activation {tensor.name!r} is quantized per channel")
        low, high = semantics.quantized_range(tensor.type)
        if not low <= quantization.scalar_zero_point <= high:
            raise ModelError(
                f"tensor {tensor.name!r}: zero point {quantization.scalar_zero_point} is no "
                f"{tensor.type.name} code"
            )
        scale = float(quantization.scalar_scale if step is None else step)
        if abs(scale) * (high - low) > _LARGEST_FLOAT:
            raise Untranslatable(f"codes times {scale:g} exceed float32")
        zero_point = quantization.scalar_zero_point + _shift(tensor.type, type_)
        dtype = NUMPY_DTYPE[type_]
        return (
            self.constant(np.float32(scale)),
            self.constant(np.asarray(zero_point, dtype)),
        )

    def _code_parameters(
        self, tensor: TensorView, step: float, type_: TensorType | None = None
    ) -> tuple[ir.Value, ir.Value]:
        """A scale of `step`, and the code of `type_` that stands for code 0 of the file. `type_` is
        that of carried codes if it is None."""
        type_ = carried_type(tensor) if type_ is None else type_
        zero_point = np.asarray(_shift(tensor.type, type_), NUMPY_DTYPE[type_])
        return self.constant(np.float32(step)), self.constant(zero_point)

    def _dequantize(self, value: ir.Value, tensor: TensorView, type_: TensorType) -> ir.Value:
        return self._decoded(value, type_, self._parameters(tensor, type_))

    def _decoded(
        self, codes: ir.Value, type_: TensorType, parameters: tuple[ir.Value, ir.Value]
    ) -> ir.Value:
        real = self.op("DequantizeLinear", codes, *parameters)
        # ONNX Runtime moves a DequantizeLinear of int8 behind a Transpose and the like, and from
        # opset 21 on it refuses the QuantizeLinear that it makes for that: its zero point is uint8.
        # Codes of INT8 become others here.
        return self.apart(real) if type_ in (TensorType.INT4, TensorType.INT2) else real

    def _recode(
        self, value: ir.Value, tensor: TensorView, source: TensorType, target: TensorType
    ) -> ir.Value:
        """From int8 to uint8 codes of the same real numbers, or back: exact, code - zero stays."""
        if tensor.quantization is not None and tensor.quantization.per_channel:
            given, made = (self._code_parameters(tensor, 1, type_) for type_ in (source, target))
        else:
            given, made = (self._parameters(tensor, type_) for type_ in (source, target))
        return self.op("QuantizeLinear", self._decoded(value, source, given), *made)

    def _clamp_codes(
        self,
        value: ir.Value,
        tensor: TensorView,
        domain: Domain,
        activation: ActivationFunctionType,
    ) -> ir.Value:
        if activation is ActivationFunctionType.NONE:
            return value
        quantization = tensor.quantization
        assert quantization is not None
        low, high = semantics.quantized_activation_bounds(
            activation, tensor.type, quantization.scalar_scale, quantization.scalar_zero_point
        )
        if (low, high) == semantics.quantized_range(tensor.type):
            return value
        type_ = tensor.type if domain is Domain.FILE else carried_type(tensor)
        if type_ is TensorType.INT16 and not self.target.paired_codes:
            # ONNX Runtime has no Clip of these codes, and leaves out a Clip of reals that are all
            # within 1e-7 of its limits.
            parameters = self._parameters(tensor, type_, 1.0)
            bounds = (
                self.constant(code - quantization.scalar_zero_point, np.float32)
                for code in (low, high)
            )
            steps = self.op("DequantizeLinear", value, *parameters)
            return self.op("QuantizeLinear", self.op("Clip", steps, *bounds), *parameters)
        shift, dtype = _shift(tensor.type, type_), NUMPY_DTYPE[type_]
        bounds = (self.constant(bound + shift, dtype) for bound in (low, high))
        return self.op("Clip", value, *bounds)

    def _clamp(
        self, value: ir.Value, activation: ActivationFunctionType, tensor: TensorView
    ) -> ir.Value:
        low, high = semantics.activation_bounds(activation)
        if low is None and high is None:
            return value
        if tensor.dtype.kind != "f":
            return self._clamp_integers(value, low, high, tensor)
        if (low, high) == (0.0, None):
            return self.op("Relu", value)
        bounds = (
            None if bound is None else self.constant(bound, tensor.dtype) for bound in (low, high)
        )
        return self.op("Clip", value, *bounds)

    def _clamp_integers(
        self, value: ir.Value, low: float | None, high: float | None, tensor: TensorView
    ) -> ir.Value:
        """Plain integers between two whole numbers."""
        if tensor.dtype.kind not in "iu":
            raise Untranslatable(f"a fused activation of {tensor.type.name} arithmetic")
        narrow = tensor.type is TensorType.INT16  # ONNX Runtime has no Clip of these
        dtype = np.dtype(np.int32) if narrow else tensor.dtype
        bounds = [
            None if bound is None else self.constant(int(bound), dtype) for bound in (low, high)
        ]
        if tensor.type is TensorType.INT64:
            value = value if bounds[0] is None else self.larger(value, bounds[0])
            return value if bounds[1] is None else self.smaller(value, bounds[1])
        if narrow:
            clipped = self.op("Clip", self.cast(value, ir.DataType.INT32), *bounds)
            return self.cast(clipped, ir.DataType.INT16)
        return self.op("Clip", value, *bounds)


def _shift(source: TensorType, target: TensorType) -> int:
    """The number to add to `source` codes for `target` codes of the same real numbers."""
    return 128 * ((source is TensorType.INT8) - (target is TensorType.INT8))


def dequantized(data: Array, quantization: Quantization) -> npt.NDArray[np.float32]:
    """scale * (data - zero_point) in float32, per channel where there are several scales."""
    shape = [1] * data.ndim
    if quantization.per_channel:
        shape[quantization.axis] = -1
    scale = quantization.scale.reshape(shape)
    zero_point = quantization.zero_point.reshape(shape)
    if data.itemsize == 1 and not zero_point.any():  # no integers of 64 bits between
        return np.asarray(np.multiply(data, scale, dtype=np.float32))
    if data.itemsize == 1 and np.abs(zero_point).max() < _EXACT:
        centred = np.asarray(np.subtract(data, zero_point.astype(np.float32), dtype=np.float32))
        return np.asarray(np.multiply(centred, scale, out=centred))
    real: npt.NDArray[np.float32] = (data - zero_point).astype(np.float32) * scale
    return real


def _unchanged(node: ir.Node, parameters: tuple[ir.Value, ir.Value]) -> ir.Value | None:
    """The codes that a DequantizeLinear reads, where they are quantized by its own parameters."""
    same = [a is b for a, b in zip(node.inputs[1:], parameters, strict=False)]
    return node.inputs[0] if same == [True, True] else None


def origin(value: ir.Value) -> ir.Node | None:
    """The node that computes `value`; nodes that ONNX Runtime moves others past are skipped."""
    node = value.producer()
    while node is not None and node.op_type in _PASSED:
        source = node.inputs[0]
        node = None if source is None else source.producer()
    return node


def _has_float_weights(node: ir.Node | None) -> bool:
    """Whether `node` is a layer whose weights are constant floats."""
    weights = node.inputs[1] if node is not None and node.op_type in _LAYERS else None
    return weights is not None and weights.producer() is None
