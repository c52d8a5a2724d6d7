"""Runs models in TensorFlow's interpreter, in a process that has TensorFlow and nothing of ours.

Standard input: (model, arrays) by name, pickled; standard output: the outputs, or a text where they
were refused. The parent and the child are our own.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import tensorflow as tf

if importlib.util.find_spec("tensorflow_text"):
    import tensorflow_text  # noqa: F401  # its operators are there then


def run(model, arrays):
    """The outputs of a model; a text where it is refused."""
    try:
        interpreter = tf.lite.Interpreter(model_content=model)
        for detail, array in zip(interpreter.get_input_details(), arrays, strict=True):
            interpreter.resize_tensor_input(detail["index"], array.shape)
        interpreter.allocate_tensors()
        for detail, array in zip(interpreter.get_input_details(), arrays, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]
    except (ValueError, RuntimeError, TypeError) as error:
        return str(error)


if __name__ == "__main__":
    given = pickle.load(sys.stdin.buffer)
    answers = {name: run(*each) for name, each in given.items()}
    sys.stdout.buffer.write(b"ANSWERS" + pickle.dumps(answers, protocol=4))
