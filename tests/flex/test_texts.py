"""TensorFlow's operators on text, in numpy: each computes what TensorFlow says it does."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.flex.nodes import Attributes, flex_model
from tests.models import model_path
from tests.one_op import T
from tests.ops.custom_op import by_numpy, invoked
from tflite_ort import Interpreter, KernelError
from tflite_ort.fallback_kernels.idioms.regular_expressions import Expression
from tflite_ort.schema import TensorType

Array = npt.NDArray[Any]
INT64, STRING = TensorType.INT64, TensorType.STRING


def texts(*words: bytes) -> Array:
    return np.array(words, np.object_)


def test_hash_buckets_are_those_of_tensorflow() -> None:
    """The example of TensorFlow's documentation."""
    model = flex_model("StringToHashBucketFast", [T((3,), STRING)], [T((3,), INT64)], num_buckets=3)
    (got,) = by_numpy(model, [texts(b"Hello", b"TensorFlow", b"2.x")])
    assert got.tolist() == [0, 2, 2]


def decoding(**attributes: Any) -> bytes:
    outputs = [T((2,), INT64), T((1,), TensorType.INT32), T((1,), INT64)]
    given = {"input_encoding": b"UTF-8", "errors": b"replace", "replacement_char": 0xFFFD}
    return flex_model("UnicodeDecodeWithOffsets", [T((2,), STRING)], outputs, **given | attributes)


@given(st.lists(st.text(max_size=6), min_size=2, max_size=2))
def test_characters_and_their_bytes(words: list[str]) -> None:
    splits, characters, starts = by_numpy(decoding(), [texts(*(w.encode() for w in words))])
    assert splits.tolist() == [0, len(words[0]), len(words[0]) + len(words[1])]
    assert "".join(map(chr, characters)) == "".join(words)
    assert starts.tolist() == [len(w[:i].encode()) for w in words for i in range(len(w))]


@pytest.mark.parametrize(
    ("attributes", "characters", "starts"),
    [
        ({}, [97, 0xFFFD, 0xFFFD, 98, 9, 0xFFFD], [0, 1, 2, 3, 0, 1]),
        ({"replacement_char": 63}, [97, 63, 63, 98, 9, 63], [0, 1, 2, 3, 0, 1]),
        ({"errors": b"ignore"}, [97, 98, 9], [0, 3, 0]),
        (
            {"replace_control_characters": True},
            [97, 0xFFFD, 0xFFFD, 98, 0xFFFD, 0xFFFD],
            [0, 1, 2, 3, 0, 1],
        ),
    ],
)
def test_broken_characters(
    attributes: Attributes, characters: list[int], starts: list[int]
) -> None:
    feeds = [texts(b"a\xff\xfeb", b"\t\xe2\x82")]
    _, found, offsets = by_numpy(decoding(**attributes), feeds)
    assert (found.tolist(), offsets.tolist()) == (characters, starts)


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [({"errors": b"strict"}, "not valid"), ({"input_encoding": b"UTF-16"}, "expected UTF-8")],
)
def test_texts_that_cannot_be_decoded(attributes: Attributes, reason: str) -> None:
    with pytest.raises(KernelError, match=reason):
        by_numpy(decoding(**attributes), [texts(b"\xff", b"")])


def test_characters_become_text() -> None:
    inputs = [T((5,), TensorType.INT32), T((3,), INT64)]
    given = {"output_encoding": b"UTF-8", "errors": b"replace", "replacement_char": 63}
    model = flex_model("UnicodeEncode", inputs, [T((2,), STRING)], **given)
    feeds = [np.array([104, 228, 0xD800, -5, 0x1F600], np.int32), np.array([0, 2, 5])]
    assert by_numpy(model, feeds)[0].tolist() == ["hä".encode(), "??\U0001f600".encode()]
    with pytest.raises(KernelError, match="of 5 values"):
        by_numpy(model, [feeds[0], np.array([0, 2, 9])])


@pytest.mark.parametrize(
    ("ranges", "splits", "values"),
    [
        (([0, 5], [3, 6], [1, 1]), [0, 3, 4], [0, 1, 2, 5]),
        ((0, [2, 0], 1), [0, 2, 2], [0, 1]),
        (([9], 0, -4), [0, 3], [9, 5, 1]),
    ],
)
def test_ragged_range(ranges: tuple[Any, ...], splits: list[int], values: list[int]) -> None:
    feeds = [np.array(numbers, np.int64) for numbers in ranges]
    inputs, outputs = [T(feed.shape, INT64) for feed in feeds], [T((1,), INT64), T((1,), INT64)]
    got = by_numpy(flex_model("RaggedRange", inputs, outputs), feeds)
    assert [array.tolist() for array in got] == [splits, values]


def test_whitespace_tokenizer() -> None:
    """Every Flex operator of the model; ragged rows are made by the builtin ones between."""
    content = model_path("tflite-support__whitespace_tokenizer_flex_delegate.tflite").read_bytes()
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    text = " hello  brave\u3000w\u00f6rld\n".encode()
    for words in (text, b"", b"one", b"\xff two"):
        found, splits = invoked(interpreter, [texts(words)])
        want = [word.encode() for word in words.decode(errors="replace").split()]
        assert (found.tolist(), splits.tolist()) == (want, [0, len(want)])


@pytest.mark.parametrize(
    "pattern",
    [r"\p{Greek}", r"(?i)\pL", r"\p{L", "(a*)*", "(?:x+x+)+y", r"\C", r"\B", "(x|x)*y", "é(?i)é"],
)
def test_expressions_that_are_not_the_same_or_take_long_are_refused(pattern: str) -> None:
    with pytest.raises(KernelError, match="regular expression"):
        Expression(pattern.encode())


@pytest.mark.parametrize(
    ("pattern", "text"), [("x*x*x*y", b"x" * 3000), (r"\D", b"\xff"), ("a?" * 40 + "b", b"a" * 40)]
)
def test_expressions_that_take_long_on_a_text_are_refused(pattern: str, text: bytes) -> None:
    with pytest.raises(KernelError, match="regular expression"):
        Expression(pattern.encode()).replaced(text, b"", everywhere=True)


def test_bytes_that_are_not_utf8_stay() -> None:
    assert Expression(b"a+").replaced(b"\xffaa\xe9a", b"", everywhere=True) == b"\xff\xe9"
