"""Tokenizers that ask for more than there is: a process of their own ends, ours goes on."""

from __future__ import annotations

import io
import json
import os
import signal
from typing import Any

import numpy as np
import pytest

from tests.generation.models import LETTERS, field, library
from tflite_ort.base import library_process
from tflite_ort.generation.errors import GenerationError
from tflite_ort.generation.vocabulary import Vocabulary

PADDING = {"direction": "Right", "pad_id": 0, "pad_type_id": 0, "pad_token": "h"}
FIXED = {"strategy": {"Fixed": 2**40}, "pad_to_multiple_of": None}
MULTIPLE = {"strategy": "BatchLongest", "pad_to_multiple_of": 2**60}
GROWS = {"type": "Replace", "pattern": {"String": "h"}, "content": "h" * 1000}


def described(**more: Any) -> bytes:
    """A ``tokenizer.json`` with one token."""
    plain = {"added_tokens": [], "model": {"type": "BPE", "vocab": {"h": 0}, "merges": []}}
    return json.dumps({"version": "1.0", **plain, **more}).encode()


def sentences(kind: str) -> bytes:
    """A model of SentencePiece."""
    trainer, stream = library("sentencepiece").SentencePieceTrainer, io.BytesIO()
    words = [" ".join(LETTERS[:26])] * 40
    choices = {"vocab_size": 30, "model_type": kind, "minloglevel": 2}
    trainer.train(sentence_iterator=iter(words), model_writer=stream, **choices)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"padding": {**PADDING, **FIXED}}, "more memory"),
        ({"padding": {**PADDING, **MULTIPLE}}, "more memory"),
        ({"normalizer": {"type": "Sequence", "normalizers": [GROWS] * 12}}, "more memory"),
        ({"decoder": {"type": "Sequence", "decoders": [GROWS] * 12}}, "more memory"),
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}}, "cannot be read"),
        ({"decoder": {"type": "Strip", "content": "h", "start": 2**62, "stop": 2**62}}, "failed"),
        ({"model": {"type": "BPE", "vocab": {"h": 0}, "merges": [["h", "e"]]}}, "cannot be read"),
        ({"model": {"type": "BPE", "vocab": {"h": -1}, "merges": []}}, "cannot be read"),
    ],
)
def test_a_hostile_tokenizer(more: dict[str, Any], message: str) -> None:
    library("tokenizers")
    vocabulary = Vocabulary("tokenizers", described(**more))
    with pytest.raises(GenerationError, match=f"the tokenizer .*{message}|the tokenizer {message}"):
        vocabulary.text(vocabulary.tokens("h"))


def test_one_that_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each match is short enough for the library; there are many."""
    library("tokenizers")
    monkeypatch.setattr(library_process, "_SECONDS", 0.3)
    slow = {"type": "Split", "pattern": {"Regex": "(h+h+)+x"}, "behavior": "Isolated"}
    vocabulary = Vocabulary("tokenizers", described(pre_tokenizer={**slow, "invert": False}))
    with pytest.raises(GenerationError, match=r"more than 0\.3 s"):
        vocabulary.tokens("hhhhhhhhhh " * 200_000)
    assert vocabulary.tokens("h") == (0,)


def test_another_process_is_started() -> None:
    library("tokenizers")
    vocabulary = Vocabulary("tokenizers", described())
    assert vocabulary.tokens("hh") == (0, 0)
    process = vocabulary._library._process
    assert process is not None
    os.kill(process.pid, signal.SIGTERM)
    process.wait()
    with pytest.raises(GenerationError, match="the tokenizer failed"):
        vocabulary.tokens("hh")
    assert vocabulary.tokens("hh") == (0, 0)
    with pytest.raises(GenerationError, match="half a character"):
        vocabulary.tokens("\ud800")
    assert vocabulary.texts([0], [0, 0]) == ["h", "h h"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_fork_asks_a_process_of_its_own() -> None:
    library("tokenizers")
    vocabulary = Vocabulary("tokenizers", described())
    vocabulary.ready()
    child = os.fork()
    if not child:
        right = vocabulary.tokens("hhh") == (0, 0, 0)
        vocabulary._library.close()
        os._exit(0 if right else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert vocabulary.tokens("h") == (0,)


def test_no_process_is_left() -> None:
    library("tokenizers")
    vocabulary = Vocabulary("tokenizers", described())
    process = vocabulary._library._process
    assert process is not None
    assert process.poll() is None
    del vocabulary
    assert process.poll() is not None


@pytest.mark.parametrize("kind", ["unigram", "char"])
def test_damaged_models_of_sentencepiece(kind: str) -> None:
    content = sentences(kind)
    rng = np.random.default_rng(5)
    damaged = [content[: len(content) * at // 8] for at in range(8)]
    damaged += [content + field(1, field(2, float("nan"))) * 3, field(1, b"") * 100_000]
    for _ in range(12):
        changed = bytearray(content)
        for place in rng.integers(0, len(content), 3):
            changed[place] = rng.integers(256)
        damaged.append(bytes(changed))
    for each in damaged:
        try:
            vocabulary = Vocabulary("sentencepiece", each)
            vocabulary.texts(vocabulary.tokens("a b"), range(5))
        except GenerationError as error:
            assert "the tokenizer" in str(error)  # or it is read
