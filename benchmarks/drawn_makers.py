"""Networks as converters write them, drawn at random: Keras layers and whole applications.

Needs TensorFlow 2.18 or later, and not this library:

    python benchmarks/drawn_makers.py FOLDER [--count 200] [--seed 1] [--kinds float,int8]

Writes ``NUMBER_NAME_KIND.tflite`` for each network and each kind of numbers, and index.json. A seed
gives the same networks again. Kinds: float, half (float16 weights), dynamic (8-bit weights), int8,
16x8. A network that TensorFlow cannot convert in a kind is named and left out.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
from keras import layers
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

Tensor = Any
KINDS = ("float", "half", "dynamic", "int8", "16x8")
_SMALL, _ACTIVATIONS = (
    (4, 8, 12, 16, 24, 32, 48, 64),
    ("relu", "relu6", "hard_swish", "swish", "elu", "gelu", "leaky_relu", "tanh", "sigmoid"),
)


class Draw:
    """A seeded source of choices."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def one_of(self, choices: Any) -> Any:
        """One of `choices`."""
        return choices[int(self._rng.integers(len(choices)))]

    def between(self, low: int, high: int) -> int:
        """An integer, both ends included."""
        return int(self._rng.integers(low, high + 1))

    def chance(self, part: float) -> bool:
        """True in this part of all calls."""
        return bool(self._rng.random() < part)


def main() -> None:
    """Make the networks that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the number of the first network")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default="", help="all of each network; one drawn kind without")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("fork")
    for number in range(options.first, options.first + options.count):
        process = context.Process(target=_network, args=(options, number))
        process.start()
        process.join()
        if process.exitcode:  # TensorFlow's calibration ends the process for some
            print(f"{number:04}: exit status {process.exitcode}", flush=True)
    found = sorted(options.folder.glob("*.tflite"))
    index = json.dumps([_row(path) for path in found], indent=1)
    (options.folder / "index.json").write_text(index)  # this process has no tflite_ort


def _row(path: Path) -> dict[str, str]:
    _, family, kind = path.stem.split("_", 2)
    return {"file": path.name, "family": family, "quant_kind": kind, "kind": "network"}


def _network(options: argparse.Namespace, number: int) -> None:
    keras.backend.clear_session()
    keras.utils.set_random_seed(options.seed * 100_003 + number)
    draw = Draw(options.seed * 100_003 + number)
    name, make = draw.one_of(list(NETWORKS.items()))
    kinds = options.kinds.split(",") if options.kinds else [draw.one_of(KINDS)]
    model = make(draw)
    for kind in kinds:
        path = options.folder / f"{number:04}_{name}_{kind}.tflite"
        try:
            path.write_bytes(_converted(model, kind))  # this process has no tflite_ort
        except (ValueError, RuntimeError, tf.errors.OpError) as error:
            print(f"{path.name}: {type(error).__name__}: {str(error)[:120]}", flush=True)
            continue
        print(path.name, path.stat().st_size, flush=True)


def _converted(model: keras.Model, kind: str) -> bytes:
    shapes = [(1, *each.shape[1:]) for each in model.inputs]
    types = [each.dtype for each in model.inputs]

    def samples() -> Iterator[list[Any]]:
        rng = np.random.default_rng(0)
        for _ in range(4):
            yield [
                rng.random(shape, np.float32)
                if kind_of == "float32"
                else rng.integers(0, 50, shape).astype(kind_of)
                for shape, kind_of in zip(shapes, types, strict=True)
            ]

    specs = [tf.TensorSpec(s, t) for s, t in zip(shapes, types, strict=True)]
    function = tf.function(lambda *x: model(x if len(x) > 1 else x[0], training=False))
    frozen = convert_variables_to_constants_v2(function.get_concrete_function(*specs))
    converter = tf.lite.TFLiteConverter.from_concrete_functions([frozen], model)
    if kind != "float":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if kind == "half":
        converter.target_spec.supported_types = [tf.float16]
    if kind in ("int8", "16x8"):
        converter.representative_dataset = samples
    if kind == "int8":
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
        if any(each != "float32" for each in types):
            converter.inference_input_type = tf.float32
    if kind == "16x8":
        wide = "EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8"
        converter.target_spec.supported_ops = [getattr(tf.lite.OpsSet, wide)]
    return bytes(converter.convert())


# Parts of networks ------------------------------------------------------------------------------


def activated(draw: Draw, x: Tensor, kind: str | None = None) -> Tensor:
    """`x` through an activation, some of them written out by single operators."""
    kind = kind or draw.one_of((*_ACTIVATIONS, "prelu", "written_prelu", "mish", "hard_sigmoid"))
    if kind == "prelu":
        shared = list(range(1, len(x.shape) - 1))
        slopes = keras.initializers.RandomUniform(0.05, 0.4)
        return layers.PReLU(slopes, shared_axes=shared)(x)
    if kind == "written_prelu":
        slope = float(np.float32(0.25))
        return layers.Lambda(lambda y: tf.where(y > 0, y, y * slope))(x)
    if kind == "mish":
        return layers.Lambda(lambda y: y * tf.tanh(tf.math.softplus(y)))(x)
    return layers.Activation(kind)(x)


def convolved(draw: Draw, x: Tensor, units: int, stride: int = 1, act: str | None = None) -> Tensor:
    """A convolution of a drawn form, a normalization, an activation."""
    window, form = draw.one_of((1, 3, 3, 5)), draw.one_of(("plain", "separable", "depthwise"))
    dilation = 2 if stride == 1 and draw.chance(0.1) else 1
    shared = {"strides": stride, "padding": "same", "use_bias": draw.chance(0.5)}
    if form == "plain" or x.shape[-1] < 4:
        x = layers.Conv2D(units, window, dilation_rate=dilation, **shared)(x)
    elif form == "separable":
        x = layers.SeparableConv2D(units, window, **shared)(x)
    else:
        x = layers.DepthwiseConv2D(max(window, 3), **shared)(x)
        x = layers.Conv2D(units, 1)(activated(draw, layers.BatchNormalization()(x), act))
    if draw.chance(0.8):
        x = layers.BatchNormalization()(x)
    return activated(draw, x, act)


def excited(draw: Draw, x: Tensor) -> Tensor:
    """Squeeze and excitation."""
    units = x.shape[-1]
    pooled = layers.GlobalAveragePooling2D(keepdims=True)(x)
    inner = layers.Conv2D(max(4, units // 4), 1, activation="relu")(pooled)
    gate = layers.Conv2D(units, 1, activation=draw.one_of(("sigmoid", "hard_sigmoid")))(inner)
    return layers.Multiply()([x, gate])


def shuffled(x: Tensor) -> Tensor:
    """A channel shuffle of two groups."""
    _, height, width, channels = x.shape
    x = layers.Reshape((height, width, 2, channels // 2))(x)
    return layers.Reshape((height, width, channels))(layers.Permute((1, 2, 4, 3))(x))


def attended(draw: Draw, x: Tensor) -> Tensor:
    """A block of a transformer over [batch, tokens, width]."""
    width, heads = x.shape[-1], draw.one_of((1, 2, 4))
    y = layers.LayerNormalization(epsilon=1e-6)(x)
    y = layers.MultiHeadAttention(heads, max(4, width // heads))(y, y)
    x = layers.Add()([x, y])
    y = layers.LayerNormalization(epsilon=1e-6)(x)
    y = layers.Dense(width * 2, activation=draw.one_of(("gelu", "relu", "swish")))(y)
    return layers.Add()([x, layers.Dense(width)(y)])


def headed(draw: Draw, x: Tensor) -> Tensor:
    """Classes, or one number, of a map or of rows."""
    if len(x.shape) == 4:
        x = draw.one_of((layers.GlobalAveragePooling2D, layers.GlobalMaxPooling2D))()(x)
    elif len(x.shape) == 3:
        x = draw.one_of((layers.GlobalAveragePooling1D, layers.GlobalMaxPooling1D))()(x)
    units = draw.one_of((1, 2, 10, 100))
    return layers.Dense(units, activation="sigmoid" if units == 1 else "softmax")(x)


# Families of networks ---------------------------------------------------------------------------


def image(draw: Draw) -> keras.Model:
    """A classifier of small images with residuals."""
    size = draw.one_of((24, 32, 48, 64, 96, 128))
    x = source = keras.Input((size, size, draw.one_of((1, 3))))
    units = draw.one_of(_SMALL)
    x = convolved(draw, x, units, 2)
    act = draw.one_of((None, *_ACTIVATIONS))
    for _ in range(draw.between(2, 6)):
        if draw.chance(0.4):
            units = draw.one_of(_SMALL)
            x = convolved(draw, x, units, 2, act)
        y = convolved(draw, x, units, 1, act)
        y = excited(draw, y) if draw.chance(0.25) else y
        if draw.chance(0.6) and y.shape == x.shape:
            y = layers.Add()([x, y])
        elif draw.chance(0.3):
            y = layers.Concatenate()([x, y])
        x = shuffled(y) if draw.chance(0.15) and y.shape[-1] % 2 == 0 else y
    return keras.Model(source, headed(draw, x))


def pictures(draw: Draw) -> keras.Model:
    """A map of the size of the image: segmentation, depth, more pixels."""
    size = draw.one_of((32, 64, 96))
    x = source = keras.Input((size, size, 3))
    act, skips = draw.one_of(_ACTIVATIONS), []
    for units in sorted(draw.one_of(_SMALL) for _ in range(draw.between(2, 3))):
        x = convolved(draw, x, units, 1, act)
        skips.append(x)
        x = layers.MaxPooling2D()(x) if draw.chance(0.5) else convolved(draw, x, units, 2, act)
    for skip in reversed(skips):
        up = draw.one_of(("nearest", "bilinear", "transposed", "depth"))
        units = skip.shape[-1]
        if up == "transposed":
            x = layers.Conv2DTranspose(units, draw.one_of((2, 3, 4)), 2, padding="same")(x)
        elif up == "depth":
            x = layers.Conv2D(4 * units, 1)(x)
            x = layers.Lambda(lambda y: tf.nn.depth_to_space(y, 2))(x)
        else:
            x = layers.UpSampling2D(interpolation=up)(x)
        x = layers.Concatenate()([x, skip]) if draw.chance(0.7) else x
        x = convolved(draw, x, units, 1, act)
    last = draw.one_of(("softmax", "sigmoid", None))
    return keras.Model(source, layers.Conv2D(draw.one_of((1, 2, 8)), 1, activation=last)(x))


def sound(draw: Draw) -> keras.Model:
    """Convolutions in time over features, causal or not."""
    steps, features = draw.one_of((32, 49, 98, 200)), draw.one_of((10, 13, 40, 64))
    x = source = keras.Input((steps, features))
    padding, act = draw.one_of(("same", "causal", "valid")), draw.one_of(_ACTIVATIONS)
    for level in range(draw.between(2, 5)):
        wide = 2**level if padding != "valid" and draw.chance(0.5) else 1
        units = draw.one_of(_SMALL)
        y = layers.Conv1D(units, 3, padding=padding, dilation_rate=wide)(x)
        y = activated(draw, layers.BatchNormalization()(y), act)
        y = layers.Add()([x, y]) if y.shape == x.shape else y
        x = layers.MaxPooling1D()(y) if draw.chance(0.3) and y.shape[1] > 8 else y
    return keras.Model(source, headed(draw, x))


def sequence(draw: Draw) -> keras.Model:
    """Recurrent layers over features or over tokens."""
    steps = draw.one_of((8, 16, 32, 64))
    if draw.chance(0.3):
        source = keras.Input((steps,), dtype="int32")
        x = layers.Embedding(50, draw.one_of((8, 16, 32)))(source)
    else:
        x = source = keras.Input((steps, draw.one_of((1, 3, 6, 20, 40))))
    if draw.chance(0.4):
        x = layers.Conv1D(draw.one_of(_SMALL), 3, activation="relu", padding="same")(x)
    kind = draw.one_of((layers.LSTM, layers.GRU, layers.SimpleRNN))
    for last in (False, True)[-draw.between(1, 2) :]:
        layer = kind(draw.one_of((8, 16, 32, 64)), return_sequences=not last)
        x = layers.Bidirectional(layer)(x) if draw.chance(0.3) else layer(x)
    return keras.Model(source, headed(draw, x))


def transformer(draw: Draw) -> keras.Model:
    """Blocks of attention over tokens or patches."""
    width = draw.one_of((16, 32, 64, 128))
    if draw.chance(0.5):
        source = keras.Input((draw.one_of((8, 32, 64)),), dtype="int32")
        x = layers.Embedding(50, width)(source)
    else:
        source = keras.Input((32, 32, 3))
        x = layers.Conv2D(width, 8, 8)(source)
        x = layers.Reshape((16, width))(x)
    for _ in range(draw.between(1, 3)):
        x = attended(draw, x)
    return keras.Model(source, headed(draw, layers.LayerNormalization()(x)))


def numbers(draw: Draw) -> keras.Model:
    """Dense layers over a row of numbers, or over several inputs."""
    sources = [keras.Input((draw.one_of((1, 4, 9, 32, 128)),)) for _ in range(draw.between(1, 2))]
    x = layers.Concatenate()(sources) if len(sources) > 1 else sources[0]
    if draw.chance(0.3):
        width = x.shape[-1]
        x = layers.Normalization(mean=np.zeros(width), variance=np.full(width, 2.0))(x)
    for _ in range(draw.between(1, 4)):
        y = layers.Dense(draw.one_of(_SMALL))(x)
        y = layers.BatchNormalization()(y) if draw.chance(0.3) else y
        y = activated(draw, y)
        x = layers.Add()([x, y]) if y.shape == x.shape else y
    return keras.Model(sources, headed(draw, x))


def application(draw: Draw) -> keras.Model:
    """A network of keras.applications at a small size."""
    size, made = draw.one_of((32, 64, 96)), keras.applications
    shape = {"input_shape": (size, size, 3), "weights": None, "classes": 10}
    makers: list[Callable[[], keras.Model]] = [
        lambda: made.MobileNet(alpha=draw.one_of((0.25, 0.5)), **shape),
        lambda: made.MobileNetV2(alpha=draw.one_of((0.35, 0.5)), **shape),
        lambda: made.MobileNetV3Small(alpha=0.75, **shape),
        lambda: made.EfficientNetB0(**shape),
        lambda: made.EfficientNetV2B0(**shape),
        lambda: made.DenseNet121(**shape),
        lambda: made.NASNetMobile(**shape),
        lambda: made.ResNet50V2(**shape),
    ]
    return draw.one_of(makers)()


NETWORKS: dict[str, Callable[[Draw], keras.Model]] = {
    each.__name__: each
    for each in (image, pictures, sound, sequence, transformer, numbers, application)
}


if __name__ == "__main__":
    main()
