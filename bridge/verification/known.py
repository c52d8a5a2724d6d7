"""Where LiteRT and ONNX Runtime are known to compute differently: the rows of docs/numbers.md."""

from __future__ import annotations

from tflite_ort.schema import OperatorView, TensorType

_LAYERS = frozenset(
    {
        *("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV", "BATCH_MATMUL"),
        *("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_LSTM"),
        *("RNN", "UNIDIRECTIONAL_SEQUENCE_RNN", "BIDIRECTIONAL_SEQUENCE_RNN", "SVDF"),
        *("EMBEDDING_LOOKUP", "CONV_3D"),
    }
)
_INTEGERS = frozenset(
    {TensorType.INT8, TensorType.UINT8, TensorType.INT4, TensorType.UINT4, TensorType.INT2}
)
_FLOATS = frozenset({TensorType.FLOAT32, TensorType.FLOAT16})

_HYBRID = (
    "Its weights are integers and its activations floats: TFLite rounds each row of activations to "
    "8 bits. This library does so where 8 bits are faster (hybrid='auto'), and dequantizes the "
    "weights elsewhere."
)
_LAYER = (
    "8-bit layers add in int32; on x86 without VNNI ONNX Runtime saturates the 16-bit sums of "
    "uint8 activations with int8 weights, unless the session entry session.x64quantprecision is 1."
)
_FLOAT_LAYER = "ONNX Runtime adds up in another order: the last bits of floats differ."
_INT16 = (
    "The interpreter sums, adds and multiplies 16-bit activations as LiteRT on the CPU; elsewhere, "
    "and in exports, they are real numbers in float32 between 16-bit codes: one quantum off."
)
_RECURRENT = "Each step feeds the next: small differences grow along a sequence."

# By operator: of quantized tensors, and of floats.
_QUANTIZED = {
    "AVERAGE_POOL_2D": "LiteRT rounds halves away from zero, ONNX Runtime to even.",
    "ADD": "LiteRT multiplies by 21-bit numbers, ONNX Runtime in float32: halves go either way.",
    "SUB": "LiteRT rounds halves up, ONNX Runtime to even.",
    "RESIZE_BILINEAR": "LiteRT rounds halves up, ONNX Runtime to even.",
    "SOFTMAX": "LiteRT makes 255/256 of a softmax of one element, ONNX Runtime wraps it to 0.",
    "QUANTIZE": "LiteRT multiplies by fixed-point numbers, halves away from zero; ONNX Runtime "
    "multiplies in float32, halves to even.",
    "LEAKY_RELU": "LiteRT has slopes in 256ths; its two kernels differ in 1 to 16 % of the codes.",
    "TRANSPOSE_CONV": "ONNX Runtime's ConvTranspose takes floats.",
}
_FLOAT = {
    "LOGISTIC": "ONNX Runtime's Sigmoid is off by 1e-8: very small results become 0.",
    "MAXIMUM": "Of NaN LiteRT gives the second operand, ONNX Runtime NaN.",
    "MINIMUM": "Of NaN LiteRT gives the second operand, ONNX Runtime NaN.",
    "CAST": "LiteRT saturates in a cast to integers; ONNX leaves it undefined.",
    "PAD": "Of a Pad and a MaxPool ONNX Runtime makes one, which pads with the lowest number.",
    "DIV": "ONNX Runtime ends the process at a division of integers by 0.",
}


def is_hybrid(op: OperatorView[object]) -> bool:
    """Whether `op` multiplies float activations by integer weights."""
    types = [tensor.type for tensor in op.present_inputs()]
    floats = bool(types) and types[0] in _FLOATS
    return op.name in _LAYERS and floats and bool(_INTEGERS.intersection(types))


# What explains one quantum, or the last bits.
_SMALL = frozenset({_FLOAT_LAYER, _HYBRID, _INT16, *_QUANTIZED.values(), _FLOAT["LOGISTIC"]})


def known_difference(op: OperatorView[object], far: bool = False) -> str:
    """A sentence on what is known to differ in `op`; empty if nothing is.

    Args:
        far: it differs by more than rounding explains.
    """
    types = [tensor.type for tensor in op.present_inputs()]
    quantized = any(tensor.is_quantized for tensor in op.outputs)
    said = []
    if is_hybrid(op):
        said.append(_HYBRID)
    elif op.name in _LAYERS:
        said.append(_LAYER if quantized else _FLOAT_LAYER)
    if "LSTM" in op.name or "RNN" in op.name or op.name == "SVDF":
        said.append(_RECURRENT)
    if quantized and TensorType.INT16 in types:
        said.append(_INT16)
    table = _QUANTIZED if quantized else _FLOAT
    said.append(table.get(op.name, ""))
    return " ".join(each for each in said if each and not (far and each in _SMALL))
