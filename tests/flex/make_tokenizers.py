"""Makes the models of the tokenizers that the cases have, `tests/flex/tokenizers/models.npz`::

    python tests/flex/make_tokenizers.py tests/flex/tokenizers/models.npz

with a Python that has TensorFlow 2.18.1, tensorflow-text 2.18.1 and sentencepiece.
"""

from __future__ import annotations

import io
import os
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import sentencepiece
from tensorflow_text.core.pybinds import (
    pywrap_fast_bert_normalizer_model_builder as normalizers,
)
from tensorflow_text.core.pybinds import (
    pywrap_fast_wordpiece_tokenizer_model_builder as wordpieces,
)
from tensorflow_text.core.pybinds import pywrap_model_converter as converter
from tensorflow_text.core.pybinds import pywrap_whitespace_tokenizer_config_builder as whitespace
from vocabulary import INDICATED, WORDS

CORPUS = [
    "hello world, the tokenizer splits words into pieces",
    "pieces of words are in the vocabulary of the model",
    "h\u00e9llo w\u00f6rld \u4e2d\u6587 the world is a model of the world",
    "split the text, and the text is split into the pieces",
    "numbers 42 and 123 and 9 are words too!",
]


def sentencepieces(**options):
    """A model of SentencePiece."""
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS * 4),
        model_writer=made,
        hard_vocab_limit=False,
        minloglevel=2,
        **options,
    )
    return made.getvalue()


# A character, or several, and what stands for them.
RULES = "41\t61\n42\t62\nE9\t65 301\nFF21\t61\nA0\t20\n65 301\tE9\n2167\t76 69 69 69\n"


def main(path):
    """Writes the models."""
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as rules:
        rules.write(RULES)
        rules.flush()
        ruled = sentencepieces(vocab_size=95, normalization_rule_tsv=rules.name)
    build = wordpieces.build_fast_wordpiece_model
    models = {
        "spaces": whitespace.build_whitespace_tokenizer_config(),
        "words": build(list(WORDS), 20, "##", "[UNK]", True, True),
        "texts": build(list(WORDS), 20, "##", "[UNK]", False, True),
        "indicated": build(list(INDICATED), 20, "##", "[UNK]", False, False),
        "joined": build(list(WORDS), 20, "", "[UNK]", False, True),
        "lower": normalizers.build_fast_bert_normalizer_model(True),
        "plain": normalizers.build_fast_bert_normalizer_model(False),
        "unigram": sentencepieces(vocab_size=90, normalization_rule_name="identity"),
        "bpe": sentencepieces(
            model_type="bpe",
            vocab_size=330,
            byte_fallback=True,
            normalization_rule_name="identity",
            user_defined_symbols=["<sep>"],
            add_dummy_prefix=False,
            remove_extra_whitespaces=False,
        ),
        "encoder": converter.convert_sentencepiece_model(ruled),
        "decoder": converter.convert_sentencepiece_model_for_decoder(ruled),
        "bare": sentencepieces(
            vocab_size=80, bos_id=-1, eos_id=-1, normalization_rule_name="identity"
        ),
    }
    np.savez_compressed(
        path, **{key: np.frombuffer(made, np.uint8) for key, made in models.items()}
    )


if __name__ == "__main__":
    main(sys.argv[1])
