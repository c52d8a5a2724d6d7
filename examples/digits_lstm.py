"""A small LSTM that reads an 8x8 digit row by row, in numpy and as TFLite's operators.

One LSTM layer over the eight rows, a dense layer on its last output, softmax. Letters in shapes:
N images, T rows, H units; gates stand in TFLite's order: input, forget, cell, output.
"""

import numpy as np

from digits_network import CLASSES, SIZE, Array, Arrays, Network, rows, softmax
from tflite_ort.schema import (
    ActivationFunctionType,
    FullyConnectedOptions,
    Model,
    ModelBuilder,
    Op,
    QuantizationParameters,
    ReshapeOptions,
    SoftmaxOptions,
    StridedSliceOptions,
    SubgraphBuilder,
    TensorType,
    UnidirectionalSequenceLSTMOptions,
)
from tflite_ort.versioning import update_versions
from tflite_writer import (
    Layer,
    activation_parameters,
    add_activation,
    add_layer,
    add_weights,
    stored,
    symmetric,
)

UNITS = 40
GATES = ("input", "forget", "cell", "output")
Quantizations = dict[str, QuantizationParameters]


def initial_weights(rng: np.random.Generator) -> Arrays:
    """Gates side by side, [T, 4 * H] and [H, 4 * H]; the forget gate starts open."""
    bias = np.zeros(4 * UNITS, np.float32)
    bias[UNITS : 2 * UNITS] = 1
    return {
        "lstm/kernel": normal(rng, SIZE, 4 * UNITS),
        "lstm/recurrent": normal(rng, UNITS, 4 * UNITS),
        "lstm/bias": bias,
        "logits/filter": normal(rng, UNITS, CLASSES),
        "logits/bias": np.zeros(CLASSES, np.float32),
    }


def normal(rng: np.random.Generator, inputs: int, outputs: int) -> Array:
    return rng.normal(0, np.sqrt(1 / inputs), (inputs, outputs)).astype(np.float32)


def forward(weights: Arrays, images: Array) -> Arrays:
    """Every layer's output by its name; gates, cells and hidden states of all rows [T, N, ...]."""
    x = images[..., 0].swapaxes(0, 1)
    h = c = np.zeros((len(images), UNITS), np.float32)
    gates, cells, hidden = [], [c], [h]
    for row in x:
        z = row @ weights["lstm/kernel"] + h @ weights["lstm/recurrent"] + weights["lstm/bias"]
        i, f, g, o = np.split(z, 4, axis=1)
        i, f, g, o = sigmoid(i), sigmoid(f), np.tanh(g), sigmoid(o)
        c = f * c + i * g
        h = o * np.tanh(c)
        gates.append(np.stack([i, f, g, o]))
        cells.append(c)
        hidden.append(h)
    logits = h @ weights["logits/filter"] + weights["logits/bias"]
    return {
        "image": images,
        "gates": np.stack(gates),
        "cells": np.stack(cells),
        "hidden": np.stack(hidden),
        "logits": logits,
        "probabilities": softmax(logits),
    }


def backward(weights: Arrays, a: Arrays, labels: Array) -> Arrays:
    """The gradient of the mean cross entropy for every weight, from `forward`'s activations."""
    w, n = weights, np.float32(len(labels))
    d_logits = (a["probabilities"] - np.eye(CLASSES, dtype=np.float32)[labels]) / n
    d_h, d_c = d_logits @ w["logits/filter"].T, np.float32(0)
    d_sums = np.zeros((SIZE, len(labels), 4 * UNITS), np.float32)
    for t in reversed(range(SIZE)):
        i, f, g, o = a["gates"][t]
        shown = np.tanh(a["cells"][t + 1])
        d_c = d_c + d_h * o * (1 - shown**2)
        of_gates = (d_c * g, d_c * a["cells"][t], d_c * i, d_h * shown)
        slopes = (i * (1 - i), f * (1 - f), 1 - g**2, o * (1 - o))
        d_sums[t] = np.concatenate([d * s for d, s in zip(of_gates, slopes, strict=True)], axis=1)
        d_h, d_c = d_sums[t] @ w["lstm/recurrent"].T, d_c * f
    x = a["image"][..., 0].swapaxes(0, 1)
    return {
        "lstm/kernel": rows(x).T @ rows(d_sums),
        "lstm/recurrent": rows(a["hidden"][:-1]).T @ rows(d_sums),
        "lstm/bias": d_sums.sum(axis=(0, 1)),
        "logits/filter": a["hidden"][-1].T @ d_logits,
        "logits/bias": d_logits.sum(axis=0),
    }


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


LSTM = Network(initial_weights, forward, backward, rate=0.02)

ROWS = Layer("rows", (1, SIZE, SIZE), Op.RESHAPE, ReshapeOptions((1, SIZE, SIZE)))
READ = Layer(
    "hidden",
    (1, SIZE, UNITS),
    Op.UNIDIRECTIONAL_SEQUENCE_LSTM,
    UnidirectionalSequenceLSTMOptions(fused_activation_function=ActivationFunctionType.TANH),
)
# All units of the last step; its axis goes.
LAST = Layer(
    "last",
    (1, UNITS),
    Op.STRIDED_SLICE,
    StridedSliceOptions(begin_mask=0b101, end_mask=0b101, shrink_axis_mask=0b010),
)
LOGITS = Layer("logits", (1, CLASSES), Op.FULLY_CONNECTED, FullyConnectedOptions())
PROBABILITIES = Layer("probabilities", (1, CLASSES), Op.SOFTMAX, SoftmaxOptions(beta=1.0))


def trained_lstm(weights: Arrays, calibration: Array | None = None) -> Model:
    """The network as float32, or as int8 with the ranges seen on `calibration` images."""
    quantization: Quantizations = {}
    if calibration is not None:
        seen = forward(weights, calibration)
        quantization = activation_parameters(seen)
        # A cell state is in units of a power of two.
        bits = 15 - np.ceil(np.log2(np.abs(seen["cells"]).max()))
        quantization["cells"] = QuantizationParameters.affine(2.0**-bits)
    of_image, of_hidden = quantization.get("image"), quantization.get("hidden")
    builder = ModelBuilder()
    graph = builder.subgraph("main")
    image = add_activation(graph, "image", (1, SIZE, SIZE, 1), of_image)
    graph.constant("rows/shape", np.array(ROWS.shape, np.int32))
    rows = add_layer(graph, ROWS, [image, "rows/shape"], of_image)
    hidden = lstm_layer(graph, weights, quantization, rows)
    bounds = {"last/0": [0, -1, 0], "last/1": [0, 0, 0], "last/2": [1, 1, 1]}
    for name, places in bounds.items():
        graph.constant(name, places)
    last = add_layer(graph, LAST, [hidden, *bounds], of_hidden)
    dense = (weights["logits/filter"].T, weights["logits/bias"])
    dense_tensors = add_weights(graph, "logits", dense, of_hidden)
    logits = add_layer(graph, LOGITS, [last, *dense_tensors], quantization.get("logits"))
    answer = add_layer(graph, PROBABILITIES, [logits], quantization.get("probabilities"))
    graph.inputs(image).outputs(answer).signature("serving_default")
    return update_versions(builder.model())


def lstm_layer(
    graph: SubgraphBuilder, weights: Arrays, quantization: Quantizations, source: str
) -> str:
    """All hidden states; weights are split into gates [H, inputs]."""
    of_hidden, of_image = quantization.get("hidden"), quantization.get("image")
    biases = np.split(weights["lstm/bias"], 4)
    pairs = [
        add_weights(graph, f"lstm/{gate}", (kernel, bias), of_image)
        for gate, kernel, bias in zip(GATES, gates(weights["lstm/kernel"]), biases, strict=True)
    ]
    recurrent = [f"lstm/{gate}/recurrent" for gate in GATES]
    for name, matrix in zip(recurrent, gates(weights["lstm/recurrent"]), strict=True):
        of_matrix = None if of_image is None else symmetric(matrix, None)
        codes = matrix if of_matrix is None else stored(matrix, of_matrix, np.int8)
        graph.constant(name, codes, quantization=of_matrix)
    of_cells, state = quantization.get("cells"), (1, UNITS)
    states = (
        add_activation(graph, "output_state", state, of_hidden, is_variable=True),
        add_activation(graph, "cell_state", state, of_cells, TensorType.INT16, is_variable=True),
    )
    scales: list[str] = []
    if of_hidden is not None:  # of the gates' sums, where they are normalised, and of the output
        scales = [add_activation(graph, f"{gate}_sums", (), None) for gate in GATES]
        scales.append(add_activation(graph, "output", (), of_hidden))
    kernels, biased = zip(*pairs, strict=True)
    absent = (None,) * 4
    inputs = (source, *kernels, *recurrent, *absent[:3], *biased, *absent[:2], *states, *absent)
    return add_layer(graph, READ, inputs, of_hidden, scales)


def gates(matrix: Array) -> list[Array]:
    """[H, inputs] of every gate, of [inputs, 4 * H]."""
    return [np.ascontiguousarray(part.T) for part in np.split(matrix, 4, axis=1)]
