"""SKIP_GRAM against LiteRT."""

from __future__ import annotations

from typing import Any

import ai_edge_litert.interpreter as litert
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.one_op import T, one_op_model
from tflite_ort import Interpreter, KernelError
from tflite_ort.fallback_kernels import kernel
from tflite_ort.schema import Op, SkipGramOptions, TensorType


def grams(make: Any, sentence: bytes, options: SkipGramOptions) -> list[bytes]:
    strings = T((1,), TensorType.STRING)
    interpreter = make(model_content=one_op_model(Op.SKIP_GRAM, [strings], [strings], options))
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.array([sentence], np.object_))
    interpreter.invoke()
    result = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    assert result.ndim == 1
    return list(result)


def check(sentence: bytes, size: int, skip: int, every: bool) -> None:
    options = SkipGramOptions(ngram_size=size, max_skip_size=skip, include_all_ngrams=every)
    expected = grams(litert.Interpreter, sentence, options)
    assert grams(Interpreter, sentence, options) == expected, (sentence, options)


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("skip", [0, 1, 3])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 6])
def test_groups_of_words(size: int, skip: int, every: bool) -> None:
    check(b"the quick brown fox jumps", size, skip, every)


SPACED = [
    b"",
    b" ",
    b"a",
    b" a b",
    b"a  b\t\nc",
    b"a b ",
    b" a",
    b"\x0ba\x0cb\rc",
    b"\xc3\xa9 \xa0",
]


@pytest.mark.parametrize("sentence", SPACED)
def test_spaces(sentence: bytes) -> None:
    """One at the beginning swallows a word."""
    check(sentence, 1, 0, False)


def test_no_string_is_refused() -> None:
    strings = T((0,), TensorType.STRING)
    interpreter = Interpreter(
        model_content=one_op_model(Op.SKIP_GRAM, [strings], [strings], SkipGramOptions())
    )
    interpreter.allocate_tensors()
    with pytest.raises(KernelError, match=r"input has shape \(0,\)"):
        interpreter.invoke()


def test_version() -> None:
    assert kernel.versions(Op.SKIP_GRAM) == [1]


@given(st.text("ab \t\n", max_size=14), st.integers(0, 4), st.integers(-1, 3), st.booleans())
def test_drawn_sentences(sentence: str, size: int, skip: int, every: bool) -> None:
    check(sentence.encode(), size, skip, every)
