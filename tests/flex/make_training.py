"""Makes the models of `training/`, in a Python that has TensorFlow 2.18.1::

    python tests/flex/make_training.py tests/flex/training [NAME...]

Each is a convolutional network with batch norm, with the signatures train, infer, save and restore.
Beside it stands what TensorFlow's interpreter answers: the losses of 50 steps, what the network
says then, and the checkpoint that it saves.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
from training_data import SLICES, STEPS, TENSORS, batch

K, L = tf.keras, tf.keras.layers
IMAGES = tf.TensorSpec([None, 8, 8, 1], tf.float32)
LABELS = tf.TensorSpec([None], tf.int32)
PATH = tf.TensorSpec([], tf.string)


class Trained(tf.Module):
    """A network with its signatures; `kept` are its variables."""

    def signatures(self):
        names = ("train", "infer", "save", "restore")
        return {name: getattr(self, name).get_concrete_function() for name in names}

    @tf.function(input_signature=[PATH])
    def save(self, path):
        names = [f"v{i}" for i in range(len(self.kept))]
        values = [v.read_value() for v in self.kept]
        tf.raw_ops.Save(filename=path, tensor_names=names, data=values)
        return {"path": path}


class Keras(Trained):
    """A network and an optimizer of Keras 3, and a checkpoint of one file."""

    def __init__(self):
        K.utils.set_random_seed(1)
        layers = [
            K.Input((8, 8, 1)),
            L.Conv2D(3, 3, padding="same", use_bias=False),
            L.BatchNormalization(),
            L.ReLU(),
            L.MaxPooling2D(),
            L.DepthwiseConv2D(3, padding="same", activation="elu"),
            L.AveragePooling2D(2, strides=1),
            L.Flatten(),
            L.Dense(3),
        ]
        self.model = K.Sequential(layers)
        self.optimizer = K.optimizers.Adam(0.02)
        self.optimizer.build(self.model.trainable_variables)
        self.loss = K.losses.SparseCategoricalCrossentropy(from_logits=True)
        # A converter sees first values of the variables of TensorFlow alone that the module has.
        self.kept = [v.value for v in (*self.model.variables, *self.optimizer.variables)]

    @tf.function(input_signature=[IMAGES, LABELS])
    def train(self, images, labels):
        with tf.GradientTape() as tape:
            loss = self.loss(labels, self.model(images, training=True))
        gradients = tape.gradient(loss, self.model.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.model.trainable_variables, strict=True))
        return {"loss": loss}

    @tf.function(input_signature=[IMAGES])
    def infer(self, images):
        return {"logits": self.model(images, training=False)}

    @tf.function(input_signature=[PATH])
    def restore(self, path):
        for i, v in enumerate(self.kept):
            found = tf.raw_ops.Restore(file_pattern=path, tensor_name=f"v{i}", dt=v.dtype)
            v.assign(tf.ensure_shape(found, v.shape))
        return {"path": path}


class Fused(Trained):
    """TensorFlow's own batch norm, and momentum. The converter of 2.18.1 leaves SaveV2 out."""

    def __init__(self):
        draw = np.random.default_rng(1)

        def variable(*shape):
            return tf.Variable(draw.normal(size=shape).astype(np.float32) * 0.3)

        self.first, self.second = variable(3, 3, 1, 4), variable(3, 3, 4, 4)
        self.scale, self.offset = tf.Variable(tf.ones(4)), variable(4)
        self.mean, self.variance = tf.Variable(tf.zeros(4)), tf.Variable(tf.ones(4))
        self.bias, self.dense = variable(4), variable(16, 3)
        self.weights = [self.first, self.second, self.scale, self.offset, self.bias, self.dense]
        self.slots = [tf.Variable(tf.zeros_like(each)) for each in self.weights]
        self.kept = [*self.weights, *self.slots, self.mean, self.variance]

    def network(self, x, training):
        x = tf.nn.conv2d(x, self.first, 1, "SAME")
        given = {"x": x, "scale": self.scale, "offset": self.offset, "is_training": training}
        moments = {"mean": self.mean, "variance": self.variance}
        x, mean, variance, *_ = tf.raw_ops.FusedBatchNormV3(**given, **moments)
        if training:
            self.mean.assign_sub((self.mean - mean) * 0.1)
            self.variance.assign_sub((self.variance - variance) * 0.1)
        x = tf.nn.max_pool2d(tf.nn.relu(x), 2, 2, "VALID")
        x = tf.nn.bias_add(tf.nn.conv2d(x, self.second, 2, "SAME"), self.bias)
        return tf.matmul(tf.reshape(tf.nn.softplus(x), [-1, 16]), self.dense)

    @tf.function(input_signature=[IMAGES, LABELS])
    def train(self, images, labels):
        with tf.GradientTape() as tape:
            logits = self.network(images, True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, self.weights)
        for gradient, weight, slot in zip(gradients, self.weights, self.slots, strict=True):
            tf.raw_ops.ResourceApplyMomentum(
                var=weight.handle, accum=slot.handle, lr=0.05, grad=gradient, momentum=0.9
            )
        return {"loss": loss}

    @tf.function(input_signature=[IMAGES])
    def infer(self, images):
        return {"logits": self.network(images, False)}

    @tf.function(input_signature=[PATH])
    def restore(self, path):
        names = [f"v{i}" for i in range(len(self.kept))]
        found = tf.raw_ops.RestoreV2(
            prefix=path,
            tensor_names=names,
            shape_and_slices=[""] * len(names),
            dtypes=[v.dtype for v in self.kept],
        )
        for v, value in zip(self.kept, found, strict=True):
            v.assign(tf.ensure_shape(value, v.shape))
        return {"path": path}


NETWORKS = {"keras": Keras, "fused": Fused}


def converted(name):
    """The bytes of a model."""
    module = NETWORKS[name]()
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder, signatures=module.signatures())
        converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        converter.target_spec.supported_ops = [
            tf.lite.OpsSet.TFLITE_BUILTINS,
            tf.lite.OpsSet.SELECT_TF_OPS,
        ]
        converter.experimental_enable_resource_variables = True
        return converter.convert()


def record(name, folder):
    content = converted(name)
    (folder / f"{name}.tflite").write_bytes(content)
    interpreter = tf.lite.Interpreter(model_content=content)
    train = interpreter.get_signature_runner("train")
    losses = []
    for step in range(STEPS):
        images, labels = batch(step)
        losses.append(train(images=images, labels=labels)["loss"])
    infer = interpreter.get_signature_runner("infer")
    logits = infer(images=batch(STEPS)[0])["logits"]
    path = np.array(os.fsencode(folder / f"{name}.checkpoint"))
    interpreter.get_signature_runner("save")(path=path)
    np.savez_compressed(folder / f"{name}.npz", losses=losses, logits=logits)
    print(name, len(content), losses[::10])


def record_types(folder):
    """The same tensors as checkpoints of both kinds."""
    names = [*TENSORS, "sliced", "sliced"]
    told = ["" for _ in TENSORS] + list(SLICES)
    values = [tf.constant(each) for each in (*TENSORS.values(), *SLICES.values())]
    tf.raw_ops.SaveV2(
        prefix=str(folder / "types"), tensor_names=names, shape_and_slices=told, tensors=values
    )
    tf.raw_ops.SaveSlices(
        filename=str(folder / "types.checkpoint"),
        tensor_names=names,
        shapes_and_slices=told,
        data=values,
    )


if __name__ == "__main__":
    folder, *names = sys.argv[1:]
    for name in names or NETWORKS:
        record(name, Path(folder))
    record_types(Path(folder))
