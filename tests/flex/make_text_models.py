"""Makes whole models with tf.text's tokenizers, and what TensorFlow's interpreter answers::

    python tests/flex/make_text_models.py tests/flex/tokenizers

with a Python that has TensorFlow 2.18.1 and tensorflow-text 2.18.1. Most are converted with
`SELECT_TF_OPS`; what TFLite's Flex delegate does not have stays a custom operator.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
import tensorflow_text as text
from tensorflow.lite.python import interpreter
from tensorflow_text.core.pybinds import tflite_registrar
from vocabulary import BATCHES, WORDS


def table():
    """The vocabulary."""
    numbers = tf.range(len(WORDS), dtype=tf.int64)
    filled = tf.lookup.KeyValueTensorInitializer(list(WORDS), numbers, tf.string, tf.int64)
    return tf.lookup.StaticVocabularyTable(filled, 1)


class Layers(tf.Module):
    """What the functions use."""

    def __init__(self, folder):
        super().__init__()
        with np.load(folder / "models.npz") as stored:
            pieces = stored["unigram"].tobytes()
        self.bert = text.BertTokenizer(table(), lower_case=True, unknown_token="[UNK]")
        self.numbers = text.BertTokenizer(table(), lower_case=False)
        self.spaces = text.WhitespaceTokenizer()
        self.pieces = text.SentencepieceTokenizer(pieces, add_bos=True, add_eos=True)
        self.split = text.RegexSplitter(r"\s|,")
        self.fast = text.FastWordpieceTokenizer(
            list(WORDS), "##", unknown_token="[UNK]", no_pretokenization=True
        )


def dense(ragged):
    return [each.to_tensor() for each in ragged]


def packed(layers, x):
    """Both segments of BERT, in 12 tokens."""
    tokens = layers.numbers.tokenize(x).merge_dims(-2, -1)
    trimmed = text.RoundRobinTrimmer(6).trim([tokens, tokens])
    numbers, _ = text.combine_segments(trimmed, 101, 102)
    return text.pad_model_inputs(numbers, 12)


FUNCTIONS = {
    "bert": lambda layers, x: layers.bert.tokenize(x).merge_dims(-2, -1).to_tensor(),
    "bert_offsets": lambda layers, x: [
        each.merge_dims(-2, -1).to_tensor() for each in layers.bert.tokenize_with_offsets(x)
    ],
    "fast_wordpiece": lambda layers, x: dense(
        each.merge_dims(-2, -1)
        for each in layers.fast.tokenize_with_offsets(layers.spaces.tokenize(x))
    ),
    "ngrams": lambda layers, x: text.ngrams(
        layers.spaces.tokenize(x), 2, reduction_type=text.Reduction.STRING_JOIN
    ).to_tensor(),
    "packed": packed,
    "regex": lambda layers, x: layers.split.split(x).to_tensor(),
    "round": lambda layers, x: layers.pieces.detokenize(layers.pieces.tokenize(x)),
    "sentencepiece": lambda layers, x: layers.pieces.tokenize(x).to_tensor(),
    "whitespace": lambda layers, x: dense(layers.spaces.tokenize_with_offsets(x)),
}


# Without TensorFlow's operators.
PLAIN = {
    "plain_starts": lambda layers, x: layers.spaces.tokenize_with_offsets(x)[1].to_tensor(-1),
    "plain_pieces": lambda layers, x: layers.fast.tokenize(layers.spaces.tokenize(x)).to_tensor(
        shape=[None, 3, 2]
    ),
}


def converted(layers, function, kinds):
    """The bytes of a model."""
    given = [tf.TensorSpec([None], tf.string)]
    traced = tf.function(lambda x: function(layers, x), given).get_concrete_function()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([traced], layers)
    converter.allow_custom_ops = True
    converter.target_spec.supported_ops = kinds
    return converter.convert()


def answers(model):
    """The outputs for each batch."""
    runner = interpreter.InterpreterWithCustomOps(
        custom_op_registerers=tflite_registrar.SELECT_TFTEXT_OPS, model_content=model
    )
    (given,) = runner.get_input_details()
    for number, batch in enumerate(BATCHES):
        texts = np.array([*batch, None], object)[:-1]
        runner.resize_tensor_input(given["index"], texts.shape)
        runner.allocate_tensors()
        runner.set_tensor(given["index"], texts)
        runner.invoke()
        for place, detail in enumerate(runner.get_output_details()):
            if not detail["shape"].all():  # TensorFlow gives no tensor without elements
                yield f"{number}.{place}", np.empty(detail["shape"], detail["dtype"])
                continue
            array = runner.get_tensor(detail["index"])
            yield f"{number}.{place}", array.astype("S") if array.dtype == object else array


def main(folder):
    """Writes all models."""
    layers = Layers(folder)
    builtin, flex = tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS
    for name, function in (FUNCTIONS | PLAIN).items():
        model = converted(layers, function, [builtin] if name in PLAIN else [builtin, flex])
        (folder / f"{name}.tflite").write_bytes(model)
        np.savez_compressed(folder / f"{name}.npz", **dict(answers(model)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
