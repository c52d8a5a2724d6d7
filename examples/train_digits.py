"""Train a CNN and an LSTM on scikit-learn's 8x8 digits and write them as float32 and int8 TFLite.

    python examples/train_digits.py --out bridge/command/digits

This script wrote the models and held-out digits in `bridge/command/digits`; one seed gives one
result on one machine. Quantization is post-training: int8 weights (per output channel where
TFLite's first int8 versions had that), int8 activations with ranges seen on the training images.
"""

import argparse
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from digits_lstm import LSTM, trained_lstm
from digits_network import CNN, Array, Arrays, Digits, forward, load_split, train
from tflite_ort import Interpreter
from tflite_ort.schema import (
    ActivationFunctionType,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    Model,
    ModelBuilder,
    Op,
    Padding,
    Pool2DOptions,
    ReshapeOptions,
    SoftmaxOptions,
    write_model,
)
from tflite_ort.versioning import update_versions
from tflite_writer import Layer, activation_parameters, add_activation, add_layer, add_weights

try:
    from ai_edge_litert.interpreter import Interpreter as LiteRT
except ImportError:
    LiteRT = None

SHIPPED = 24
SAME, VALID, RELU = Padding.SAME, Padding.VALID, ActivationFunctionType.RELU
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


def trained_model(weights: Arrays, calibration: Array | None = None) -> Model:
    """The network as float32, or as int8 with the ranges seen on `calibration` images."""
    quantization = {}
    if calibration is not None:
        quantization = activation_parameters(forward(weights, calibration))
        # What moves codes keeps their scale.
        quantization["pool"] = quantization["flatten"] = quantization["pointwise"]
    builder, filters = ModelBuilder(), tflite_filters(weights)
    graph = builder.subgraph("main")
    first = previous = add_activation(graph, "image", (1, 8, 8, 1), quantization.get("image"))
    for layer in LAYERS:
        inputs = [previous]
        if f"{layer.name}/filter" in weights:
            filter, bias = filters[layer.name], weights[f"{layer.name}/bias"]
            of_input, axis = quantization.get(previous), CHANNEL_AXIS.get(layer.name)
            inputs += add_weights(graph, layer.name, (filter, bias), of_input, axis)
        elif layer.op is Op.RESHAPE:
            graph.constant("flatten/shape", np.array(layer.shape, np.int32))
            inputs.append("flatten/shape")
        previous = add_layer(graph, layer, inputs, quantization.get(layer.name))
    graph.inputs(first).outputs(previous).signature("serving_default")
    # The versions that these types and options need, and the oldest TFLite that runs them.
    return update_versions(builder.model())


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
        interpreter.reset_all_variables()  # an LSTM goes on where it was
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
    chosen.out.mkdir(parents=True, exist_ok=True)
    for network, prefix, model in ((CNN, "", trained_model), (LSTM, "lstm_", trained_lstm)):
        weights = train(training, chosen.epochs, network=network)
        answers = network.forward(weights, held_out.images)["logits"].argmax(axis=1)
        print(f"trained  {np.mean(answers == held_out.labels):.2%} of the held-out digits right")
        ship(chosen.out, f"{prefix}float32", model(weights), held_out)
        ship(chosen.out, f"{prefix}int8", model(weights, training.images), held_out)
    pixels = np.round(held_out.images[:SHIPPED, :, :, 0] * 16).astype(np.uint8)
    np.savez_compressed(
        chosen.out / "held_out.npz", images=pixels, labels=held_out.labels[:SHIPPED]
    )


if __name__ == "__main__":
    main()
