"""Makes the models of `models/` and TensorFlow's answers, in a Python that has TensorFlow 2.18.1::

    python tests/flex/make_models.py tests/flex/models [NAME...]

Each is a network of Keras, or a function, with lists. It is converted with `SELECT_TF_OPS` and an
open batch, so that the lists stay. The answers are those for batches of 1 and 3, and a time of 7.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf

K, L = tf.keras, tf.keras.layers


def network(shape, *layers):
    return K.Sequential([K.Input(shape), *layers])


def with_states():
    x = K.Input((5, 3))
    return K.Model(x, L.LSTM(4, return_state=True)(x))


def growing(x):
    array = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    for i in tf.range(tf.shape(x)[0]):
        array = array.write(i, x[i] * tf.cast(i, tf.float32))
    return array.stack()


NETWORKS = {
    "lstm": lambda: network((5, 3), L.LSTM(4)),
    "lstm_sequence": lambda: network((5, 3), L.LSTM(4, return_sequences=True)),
    "lstm_states": with_states,
    "lstm_backwards": lambda: network((5, 3), L.LSTM(3, go_backwards=True, return_sequences=True)),
    "lstm_hard": lambda: network(
        (5, 3), L.LSTM(4, activation="relu", recurrent_activation="hard_sigmoid")
    ),
    "lstm_open_time": lambda: network((None, 3), L.LSTM(4, return_sequences=True), L.Dense(2)),
    "lstm_last_open_time": lambda: network((None, 3), L.LSTM(4), L.Dense(2)),
    "lstm_dropout": lambda: network((None, 3), L.LSTM(4, dropout=0.2, recurrent_dropout=0.3)),
    "lstm_masked": lambda: network((5, 3), L.Masking(0.0), L.LSTM(3, return_sequences=True)),
    "gru": lambda: network((5, 3), L.GRU(4)),
    "gru_reset_before": lambda: network((5, 3), L.GRU(4, reset_after=False)),
    "gru_open_time": lambda: network((None, 3), L.GRU(4, return_sequences=True)),
    "rnn": lambda: network((5, 3), L.SimpleRNN(4, return_sequences=True)),
    "rnn_open_time": lambda: network((None, 3), L.SimpleRNN(4)),
    "bidirectional": lambda: network((5, 3), L.Bidirectional(L.LSTM(4, return_sequences=True))),
    "bidirectional_open_time": lambda: network(
        (None, 3), L.Bidirectional(L.GRU(4, return_sequences=True))
    ),
    "stacked": lambda: network((5, 3), L.LSTM(4, return_sequences=True), L.LSTM(3), L.Dense(2)),
    "stacked_open_time": lambda: network(
        (None, 3), L.GRU(4, return_sequences=True), L.GRU(3, return_sequences=True), L.Dense(2)
    ),
    "convlstm": lambda: network(
        (4, 6, 6, 1), L.ConvLSTM2D(2, 3, padding="same", return_sequences=True)
    ),
    "time_distributed": lambda: network((5, 4), L.TimeDistributed(L.Dense(3)), L.LSTM(2)),
}


def printed(x):
    tf.print("sum", tf.reduce_sum(x))
    for i in tf.range(2):
        tf.print("step", i, x)
        x = x * 2.0
    tf.debugging.assert_less(x, 1e6, message=tf.strings.format("{}", x))
    return x


def scattered(x):
    array = tf.TensorArray(tf.float32, size=0, dynamic_size=True, element_shape=[4])
    return array.scatter([2, 0, 1], x[:1] * [[1.0], [2.0], [3.0]]).stack()


def shortened(x):
    array = tf.TensorArray(tf.float32, size=0, dynamic_size=True, element_shape=[4])
    for i in tf.range(3):
        array = array.write(i, x[0] * tf.cast(i, tf.float32))
    return tf.raw_ops.TensorListStack(
        input_handle=tf.raw_ops.TensorListResize(input_handle=array.flow, size=tf.shape(x)[0]),
        element_shape=[4],
        element_dtype=tf.float32,
    )


def concatenated(x):
    array = tf.TensorArray(tf.float32, size=3, infer_shape=False, element_shape=[None, 4])
    for i in tf.range(3):
        array = array.write(i, x * tf.cast(i, tf.float32))
    return array.concat()


def divided(x):
    array = tf.TensorArray(tf.float32, size=2, infer_shape=False, element_shape=[None, 4])
    size = tf.shape(x)[0]
    array = array.split(tf.concat([x, x + 1.0], 0), tf.stack([size, size]))
    return array.read(0) * array.read(1)


def slices(*arrays):
    return tf.data.Dataset.from_tensor_slices(arrays if len(arrays) > 1 else arrays[0])


def dataset(x):
    doubled = slices(x).map(lambda row: row * 2.0 - tf.reduce_mean(x))
    kept = doubled.filter(lambda row: tf.reduce_sum(row) > 0.0)
    return kept.reduce(tf.zeros([4]), lambda total, row: total * 0.5 + row)


def dataset_batches(x):
    batches = slices(x).batch(2).repeat(2).take(3)
    found = batches.reduce(0.0, lambda total, rows: total * 0.5 + tf.reduce_sum(rows))
    whole = slices(x).repeat(5).batch(4, drop_remainder=True)
    last = whole.reduce(0.0, lambda total, rows: total * 0.5 + tf.reduce_max(rows))
    return found, last, slices(x).repeat().take(7).reduce(0, lambda total, row: total + 1)


def dataset_nested(x):
    def parts(row):
        return slices(row + tf.reduce_max(x)).take(2).map(lambda one: one * row[3])

    found = slices(x).flat_map(parts).take_while(lambda one: one < 3.0)
    return found.reduce((0.0, 0), lambda state, one: (state[0] * 0.9 + one, state[1] + 1))


def dataset_pairs(x):
    count = tf.shape(x)[0]
    pairs = slices(x, tf.range(count)).filter(lambda row, place: place % 2 == 0)
    sums = pairs.batch(3).map(lambda rows, places: (rows * 2.0, places + 1))
    start = (tf.zeros([4]), tf.constant(0))

    def added(state, element):
        rows, places = element
        return state[0] + tf.reduce_sum(rows, 0), state[1] * 10 + tf.reduce_sum(places)

    return sums.reduce(start, added)


FUNCTIONS = {
    "dataset": ((None, 4), dataset),
    "dataset_batches": ((None, 4), dataset_batches),
    "dataset_nested": ((None, 4), dataset_nested),
    "dataset_pairs": ((None, 4), dataset_pairs),
    "printed": ((None, 4), printed),
    "scattered": ((None, 4), scattered),
    "shortened": ((None, 4), shortened),
    "concatenated": ((None, 4), concatenated),
    "divided": ((None, 4), divided),
    "map_fn": ((None, 4), lambda x: tf.map_fn(lambda row: tf.reduce_sum(row) * row + 1.0, x)),
    "map_fn_two": (
        (None, 4),
        lambda x: tf.map_fn(
            lambda row: (row * 2.0, tf.reduce_sum(row)),
            x,
            fn_output_signature=(tf.float32, tf.float32),
        ),
    ),
    "scan": (
        (None, 4),
        lambda x: tf.scan(lambda a, row: tf.tanh(a * 0.5 + row), x, initializer=tf.zeros(4)),
    ),
    "growing": ((None, 4), growing),
}


def converted(name):
    """The bytes of a model."""
    if name in NETWORKS:
        converter = tf.lite.TFLiteConverter.from_keras_model(NETWORKS[name]())
    else:
        shape, function = FUNCTIONS[name]
        given = tf.TensorSpec(shape, tf.float32)
        whole = tf.function(function).get_concrete_function(given)
        converter = tf.lite.TFLiteConverter.from_concrete_functions([whole])
    converter.target_spec.supported_ops = [
        tf.lite.OpsSet.TFLITE_BUILTINS,
        tf.lite.OpsSet.SELECT_TF_OPS,
    ]
    converter._experimental_lower_tensor_list_ops = False
    return converter.convert()


def answers(content):
    """By name: the inputs and the outputs for each batch."""
    found = {}
    for batch in (1, 3):
        interpreter = tf.lite.Interpreter(model_content=content)
        (given,) = interpreter.get_input_details()
        sizes = [7 if size < 0 else int(size) for size in given["shape_signature"]]
        x = np.random.default_rng(batch).normal(size=[batch, *sizes[1:]]).astype(np.float32)
        interpreter.resize_tensor_input(given["index"], x.shape)
        interpreter.allocate_tensors()
        interpreter.set_tensor(given["index"], x)
        interpreter.invoke()
        found[f"{batch}.input"] = x
        for number, each in enumerate(interpreter.get_output_details()):
            found[f"{batch}.{number}"] = interpreter.get_tensor(each["index"])
    return found


if __name__ == "__main__":
    folder, *names = sys.argv[1:]
    for name in names or [*NETWORKS, *FUNCTIONS]:
        tf.random.set_seed(1)
        K.utils.set_random_seed(1)
        content = converted(name)
        Path(folder, f"{name}.tflite").write_bytes(content)
        np.savez_compressed(Path(folder, f"{name}.npz"), **answers(content))
