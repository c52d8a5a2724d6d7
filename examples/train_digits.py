"""Train a small CNN on scikit-learn's 8x8 digits and write it as float32 and int8 TFLite.

    python examples/train_digits.py --out bridge/digits

The models and held-out digits in `bridge/digits` were written by this script; one seed gives one
result on one machine. Quantisation is post-training: int8 weights (per output channel where
TFLite's first int8 versions had that), int8 activations with ranges seen on the training images.
"""

import argparse
import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from digits_network import Array, Arrays, Digits, forward, load_split, train
from tflite_ort import Interpreter
from tflite_ort.schema import (
    ActivationFunctionType,
    Buffer,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    Model,
    Op,
    Operator,
    OperatorCode,
    Padding,
    Pool2DOptions,
    QuantizationParameters,
    ReshapeOptions,
    SignatureDef,
    SoftmaxOptions,
    SubGraph,
    Tensor,
    TensorMap,
    TensorType,
    write_model,
)
from tflite_ort.versioning import update_versions

try:
    from ai_edge_litert.interpreter import Interpreter as LiteRT
except ImportError:
    LiteRT = None

SHIPPED = 24
SAME, VALID, RELU = Padding.SAME, Padding.VALID, ActivationFunctionType.RELU
TENSOR_TYPE = {
    np.dtype(np.float32): TensorType.FLOAT32,
    np.dtype(np.int8): TensorType.INT8,
    np.dtype(np.int32): TensorType.INT32,
}


@dataclass(frozen=True, slots=True)
class Layer:
    """One operator, with its output's name and shape."""

    name: str
    shape: tuple[int, ...]
    op: Op
    options: Any


LAYERS = (
    Layer("conv", (1, 8, 8, 16), Op.CONV_2D, Conv2DOptions(SAME, 1, 1, RELU)),
    Layer(
        "depthwise",
        (1, 8, 8, 16),
        Op.DEPTHWISE_CONV_2D,
        DepthwiseConv2DOptions(SAME, 1, 1, 1, RELU, dilation_w_factor=2, dilation_h_factor=2),
    ),
    Layer("pointwise", (1, 8, 8, 32), Op.CONV_2D, Conv2DOptions(SAME, 1, 1, RELU)),
    Layer("pool", (1, 4, 4, 32), Op.MAX_POOL_2D, Pool2DOptions(VALID, 2, 2, 2, 2)),
    Layer("flatten", (1, 512), Op.RESHAPE, ReshapeOptions((1, 512))),
    Layer("logits", (1, 10), Op.FULLY_CONNECTED, FullyConnectedOptions()),
    Layer("probabilities", (1, 10), Op.SOFTMAX, SoftmaxOptions(beta=1.0)),
)
CHANNEL_AXIS = {"conv": 0, "depthwise": 3, "pointwise": 0}


def tflite_filters(weights: Arrays) -> Arrays:
    """Filters as TFLite stores them: [O, 3, 3, C], depthwise [1, 3, 3, C], dense [O, inputs]."""
    return {
        "conv": weights["conv/filter"].T.reshape(-1, 3, 3, 1),
        "depthwise": weights["depthwise/filter"].reshape(1, 3, 3, -1),
        "pointwise": weights["pointwise/filter"].T[:, np.newaxis, np.newaxis],
        "logits": weights["logits/filter"].T,
    }


@dataclass(slots=True)
class GraphWriter:
    """Collects tensors, buffers and operators of one subgraph."""

    tensors: list[Tensor] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=lambda: [Buffer()])
    codes: list[OperatorCode] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)

    def activation(
        self, name: str, shape: tuple[int, ...], quantization: QuantizationParameters | None
    ) -> int:
        kind = TensorType.FLOAT32 if quantization is None else TensorType.INT8
        self.tensors.append(Tensor(shape, kind, 0, name, quantization))
        return len(self.tensors) - 1

    def constant(
        self, name: str, array: Array, quantization: QuantizationParameters | None = None
    ) -> int:
        data = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
        self.buffers.append(Buffer(data))
        kind = TENSOR_TYPE[array.dtype]
        self.tensors.append(Tensor(array.shape, kind, len(self.buffers) - 1, name, quantization))
        return len(self.tensors) - 1

    def operator(self, layer: Layer, inputs: list[int], output: int) -> None:
        code = OperatorCode(builtin_code=layer.op)
        if code not in self.codes:
            self.codes.append(code)
        index = self.codes.index(code)
        self.operators.append(Operator(index, tuple(inputs), (output,), layer.options))

    def model(self, first: int, last: int) -> Model:
        graph = SubGraph(tuple(self.tensors), (first,), (last,), tuple(self.operators), "main")
        signature = SignatureDef(
            inputs=(TensorMap("image", first),),
            outputs=(TensorMap("probabilities", last),),
            signature_key="serving_default",
        )
        return Model(
            version=3,
            operator_codes=tuple(self.codes),
            subgraphs=(graph,),
            buffers=tuple(self.buffers),
            signature_defs=(signature,),
        )


def affine(values: Array) -> QuantizationParameters:
    """The int8 scale and zero point that cover the range of `values` and zero."""
    low, high = min(values.min(), 0.0), max(values.max(), 0.0)
    scale = np.float32((high - low) / 255)
    return parameters(scale, np.round(-128 - low / scale))


def symmetric(filter: Array, axis: int | None) -> QuantizationParameters:
    """int8 scales for a filter, one for each index of `axis` or one for all; zero points 0."""
    others = tuple(i for i in range(filter.ndim) if i != axis)
    scale = np.abs(filter).max(axis=None if axis is None else others) / np.float32(127)
    return parameters(scale, np.zeros_like(scale), axis or 0)


def parameters(scale: Any, zero_point: Any, axis: int = 0) -> QuantizationParameters:
    return QuantizationParameters(
        scale=np.atleast_1d(scale).astype(np.float32),
        zero_point=np.atleast_1d(zero_point).astype(np.int64),
        quantized_dimension=axis,
    )


def activation_parameters(seen: Arrays) -> dict[str, QuantizationParameters]:
    """Quantisation of every layer's output, from the activations seen on the training images."""
    found = {name: affine(values) for name, values in seen.items()}
    found["pool"] = found["flatten"] = found["pointwise"]
    # TFLite fixes the output of an int8 SOFTMAX.
    found["probabilities"] = parameters(1 / 256, -128)
    return found


def stored(array: Array, quantization: QuantizationParameters, dtype: type) -> Array:
    """round(array / scale) + zero point, with per-channel scales along their dimension."""
    shape = np.ones(array.ndim, int)
    shape[quantization.quantized_dimension] = -1
    scale, zero_point = (p.reshape(shape) for p in (quantization.scale, quantization.zero_point))
    limits = np.iinfo(dtype)
    return np.clip(np.round(array / scale) + zero_point, limits.min, limits.max).astype(dtype)


def weight_tensors(
    writer: GraphWriter, name: str, weights: Arrays, input: QuantizationParameters | None
) -> list[int]:
    """The filter and bias of layer `name`, quantised when its input is."""
    filter, bias = tflite_filters(weights)[name], weights[f"{name}/bias"]
    if input is None:
        return [writer.constant(f"{name}/filter", filter), writer.constant(f"{name}/bias", bias)]
    of_filter = symmetric(filter, CHANNEL_AXIS.get(name))
    scale = of_filter.scale * input.scale
    of_bias = parameters(scale, np.zeros_like(scale))
    return [
        writer.constant(f"{name}/filter", stored(filter, of_filter, np.int8), of_filter),
        writer.constant(f"{name}/bias", stored(bias, of_bias, np.int32), of_bias),
    ]


def trained_model(weights: Arrays, calibration: Array | None = None) -> Model:
    """The network as float32, or as int8 with the ranges seen on `calibration` images."""
    quantization = {}
    if calibration is not None:
        quantization = activation_parameters(forward(weights, calibration))
    writer = GraphWriter()
    first = previous = writer.activation("image", (1, 8, 8, 1), quantization.get("image"))
    input_name = "image"
    for layer in LAYERS:
        inputs = [previous]
        if f"{layer.name}/filter" in weights:
            inputs += weight_tensors(writer, layer.name, weights, quantization.get(input_name))
        elif layer.op is Op.RESHAPE:
            inputs.append(writer.constant("flatten/shape", np.array(layer.shape, np.int32)))
        previous = writer.activation(layer.name, layer.shape, quantization.get(layer.name))
        writer.operator(layer, inputs, previous)
        input_name = layer.name
    # The versions that these types and options need, and the oldest TFLite that runs them.
    return update_versions(writer.model(first, previous))


def correct(interpreter: Any, digits: Digits) -> int:
    """How many of the digits an Interpreter, ours or LiteRT's, reads rightly."""
    interpreter.allocate_tensors()
    image, answer = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    scale, zero_point = image["quantization"]
    images = digits.images
    if scale:
        images = np.round(images / np.float32(scale) + zero_point).astype(image["dtype"])
    right = 0
    for picture, label in zip(images, digits.labels, strict=True):
        interpreter.set_tensor(image["index"], picture[np.newaxis])
        interpreter.invoke()
        right += int(interpreter.get_tensor(answer["index"]).argmax() == label)
    return right


def ship(out: Path, name: str, model: Model, held_out: Digits) -> None:
    """Write the model with its measured accuracy in the description."""
    right = correct(Interpreter(model_content=write_model(model)), held_out)
    score = f"{right} of {len(held_out.labels)} held-out digits right"
    data = write_model(dataclasses.replace(model, description=f"8x8 digits, {name}: {score}"))
    (out / f"{name}.tflite").write_bytes(data)
    print(f"{name:8} {score}, {len(data) / 1024:.1f} KiB")
    if LiteRT is not None:
        print(f"{'':8} {correct(LiteRT(model_content=data), held_out)} with LiteRT")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--epochs", type=int, default=40)
    arguments.add_argument("--out", type=Path, default=Path())
    chosen = arguments.parse_args()
    training, held_out = load_split()
    weights = train(training, chosen.epochs)
    answers = forward(weights, held_out.images)["logits"].argmax(axis=1)
    print(f"trained  {np.mean(answers == held_out.labels):.2%} of the held-out digits right")
    chosen.out.mkdir(parents=True, exist_ok=True)
    ship(chosen.out, "float32", trained_model(weights), held_out)
    ship(chosen.out, "int8", trained_model(weights, training.images), held_out)
    pixels = np.round(held_out.images[:SHIPPED, :, :, 0] * 16).astype(np.uint8)
    np.savez_compressed(
        chosen.out / "held_out.npz", images=pixels, labels=held_out.labels[:SHIPPED]
    )


if __name__ == "__main__":
    main()
