"""A small CNN for 8x8 digits in numpy: forward, backward and training, reproducible from a seed.

3x3 convolution, depthwise 3x3 with dilation 2, 1x1 convolution, 2x2 max pool, dense, softmax.
Letters in shapes: N images, C channels.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_digits

Array = npt.NDArray[Any]
Arrays = dict[str, Array]

SIZE = 8
CONV_CHANNELS = 16
POINTWISE_CHANNELS = 32
FLAT = (SIZE // 2) ** 2 * POINTWISE_CHANNELS
CLASSES = 10
HELD_OUT = 360


@dataclass(frozen=True, slots=True)
class Digits:
    """Images float32 [N, 8, 8, 1] in 0..1 and labels int64 [N]."""

    images: Array
    labels: Array

    def __getitem__(self, rows: Any) -> "Digits":
        return Digits(self.images[rows], self.labels[rows])


@dataclass(frozen=True, slots=True)
class Network:
    """What training needs of a network.

    Args:
        initial_weights: from a random generator.
        forward: (weights, images) -> every layer's output by the layer's name.
        backward: (weights, these outputs, labels) -> the gradients of the mean cross entropy.
        rate: how fast it learns at first.
    """

    initial_weights: Callable[[np.random.Generator], Arrays]
    forward: Callable[[Arrays, Array], Arrays]
    backward: Callable[[Arrays, Arrays, Array], Arrays]
    rate: float = 0.003


def load_split(seed: int = 0) -> tuple[Digits, Digits]:
    """The digits as (training, held out), shuffled by `seed`."""
    raw = load_digits()
    images = (raw.images[..., np.newaxis] / 16).astype(np.float32)
    shuffled = Digits(images, raw.target)[np.random.default_rng(seed).permutation(len(images))]
    return shuffled[HELD_OUT:], shuffled[:HELD_OUT]


def initial_weights(rng: np.random.Generator) -> Arrays:
    """He-scaled filters [inputs, outputs] and zero biases [outputs]; depthwise is [taps, C]."""
    shapes = {
        "conv": (9, CONV_CHANNELS),
        "depthwise": (9, CONV_CHANNELS),
        "pointwise": (CONV_CHANNELS, POINTWISE_CHANNELS),
        "logits": (FLAT, CLASSES),
    }
    weights = {}
    for name, shape in shapes.items():
        scale = np.sqrt(2 / shape[0])
        weights[f"{name}/filter"] = rng.normal(0, scale, shape).astype(np.float32)
        weights[f"{name}/bias"] = np.zeros(shape[1], np.float32)
    return weights


def taps(x: Array, dilation: int) -> Array:
    """The 3x3 neighbourhood of every pixel, zeros outside: [N, 8, 8, C] -> [N, 8, 8, 9, C]."""
    padded = np.pad(x, ((0, 0), (dilation, dilation), (dilation, dilation), (0, 0)))
    return np.stack([padded[:, i : i + SIZE, j : j + SIZE] for i, j in offsets(dilation)], axis=3)


def taps_gradient(gradient: Array, dilation: int) -> Array:
    """The transpose of `taps`: every tap's gradient added back to its pixel."""
    n, channels = gradient.shape[0], gradient.shape[4]
    padded = np.zeros((n, SIZE + 2 * dilation, SIZE + 2 * dilation, channels), np.float32)
    for tap, (i, j) in enumerate(offsets(dilation)):
        padded[:, i : i + SIZE, j : j + SIZE] += gradient[:, :, :, tap]
    return padded[:, dilation:-dilation, dilation:-dilation]


def offsets(dilation: int) -> Iterator[tuple[int, int]]:
    return ((i * dilation, j * dilation) for i in range(3) for j in range(3))


def forward(weights: Arrays, images: Array) -> Arrays:
    """Every layer's output by the layer's name."""
    w, n = weights, len(images)
    image_taps = taps(images, 1)[..., 0]
    conv = relu(image_taps @ w["conv/filter"] + w["conv/bias"])
    products = taps(conv, 2) * w["depthwise/filter"]
    depthwise = relu(products.sum(axis=3) + w["depthwise/bias"])
    pointwise = relu(depthwise @ w["pointwise/filter"] + w["pointwise/bias"])
    pool = pointwise.reshape(n, SIZE // 2, 2, SIZE // 2, 2, -1).max(axis=(2, 4))
    flatten = pool.reshape(n, -1)
    logits = flatten @ w["logits/filter"] + w["logits/bias"]
    return {
        "image": images,
        "conv": conv,
        "depthwise": depthwise,
        "pointwise": pointwise,
        "pool": pool,
        "flatten": flatten,
        "logits": logits,
        "probabilities": softmax(logits),
    }


def backward(weights: Arrays, a: Arrays, labels: Array) -> Arrays:
    """The gradient of the mean cross entropy for every weight, from `forward`'s activations."""
    w, n = weights, len(labels)
    one_hot = np.eye(CLASSES, dtype=np.float32)[labels]
    d_logits = (a["probabilities"] - one_hot) / np.float32(n)
    d_pool = (d_logits @ w["logits/filter"].T).reshape(a["pool"].shape)
    is_largest = a["pointwise"] == doubled(a["pool"])
    d_pointwise = doubled(d_pool) * is_largest * (a["pointwise"] > 0)
    d_depthwise = (d_pointwise @ w["pointwise/filter"].T) * (a["depthwise"] > 0)
    d_products = d_depthwise[:, :, :, np.newaxis] * w["depthwise/filter"]
    d_conv = taps_gradient(d_products, 2) * (a["conv"] > 0)
    conv_taps, image_taps = taps(a["conv"], 2), taps(a["image"], 1)[..., 0]
    return {
        "conv/filter": rows(image_taps).T @ rows(d_conv),
        "conv/bias": rows(d_conv).sum(axis=0),
        "depthwise/filter": (conv_taps * d_depthwise[:, :, :, np.newaxis]).sum(axis=(0, 1, 2)),
        "depthwise/bias": rows(d_depthwise).sum(axis=0),
        "pointwise/filter": rows(a["depthwise"]).T @ rows(d_pointwise),
        "pointwise/bias": rows(d_pointwise).sum(axis=0),
        "logits/filter": a["flatten"].T @ d_logits,
        "logits/bias": d_logits.sum(axis=0),
    }


def doubled(x: Array) -> Array:
    return x.repeat(2, axis=1).repeat(2, axis=2)


def rows(x: Array) -> Array:
    return x.reshape(-1, x.shape[-1])


def relu(x: Array) -> Array:
    return np.maximum(x, np.float32(0))


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


CNN = Network(initial_weights, forward, backward)


def train(
    digits: Digits, epochs: int, seed: int = 0, batch: int = 64, network: Network = CNN
) -> Arrays:
    """Weights after `epochs` of Adam with a cosine learning rate."""
    rng = np.random.default_rng(seed)
    weights = network.initial_weights(rng)
    mean = {name: np.zeros_like(w) for name, w in weights.items()}
    square = {name: np.zeros_like(w) for name, w in weights.items()}
    batches = len(digits.labels) // batch
    steps = epochs * batches
    for step in range(steps):
        if step % batches == 0:
            order = rng.permutation(len(digits.labels))
        start = step % batches * batch
        part = digits[order[start : start + batch]]
        rate = network.rate * (1 + np.cos(np.pi * step / steps)) / 2
        outputs = network.forward(weights, part.images)
        gradients = network.backward(weights, outputs, part.labels)
        for name, gradient in gradients.items():
            mean[name] += np.float32(0.1) * (gradient - mean[name])
            square[name] += np.float32(0.001) * (gradient**2 - square[name])
            step_mean = mean[name] / (1 - 0.9 ** (step + 1))
            step_square = square[name] / (1 - 0.999 ** (step + 1))
            weights[name] -= np.float32(rate) * (step_mean / (np.sqrt(step_square) + 1e-8))
    return weights
