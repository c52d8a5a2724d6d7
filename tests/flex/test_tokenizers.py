"""tf.text's tokenizers: whole models, damaged models, and what is refused."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.flex.cases import Case, Handle, cases_of, texts
from tests.flex.nodes import flex_model
from tests.flex.test_cases import check, invoked
from tests.flex.tokenizer_models import tokenizer
from tests.flex.vocabulary import BATCHES
from tests.one_op import T
from tests.ops.custom_op import by_numpy
from tflite_ort import BridgeError, Interpreter, KernelError, WellKnownOpResolver
from tflite_ort.fallback_kernels.idioms import sentencepieces, unicode_properties
from tflite_ort.schema import TensorType

Array = npt.NDArray[Any]

FOLDER = Path(__file__).parent / "tokenizers"
NAMES = sorted(path.stem for path in FOLDER.glob("*.tflite"))
# These have operators that TFLite's Flex delegate does not have.
CUSTOM = {"fast_wordpiece", "packed", "plain_pieces", "plain_starts"}
PLAIN = ("FastBertNormalize", "FastWordpieceTokenizeWithOffsets")


def as_texts(array: Array) -> Array:
    if array.dtype.kind != "S":
        return array
    return texts(*(bytes(each) for each in array.reshape(-1))).reshape(array.shape)


@pytest.mark.parametrize("name", NAMES)
def test_a_model_computes_what_tensorflow_does(name: str) -> None:
    resolver = WellKnownOpResolver() if name in CUSTOM else None
    interpreter = Interpreter(str(FOLDER / f"{name}.tflite"), resolver=resolver)
    (given,) = interpreter.get_input_details()
    case = Case(name, [])
    with np.load(FOLDER / f"{name}.npz") as stored:
        for number, batch in enumerate(BATCHES):
            x = texts(*batch)
            interpreter.resize_tensor_input(given["index"], x.shape)
            interpreter.allocate_tensors()
            interpreter.set_tensor(given["index"], x)
            interpreter.invoke()
            got = [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]
            want = [as_texts(stored[f"{number}.{place}"]) for place in range(len(got))]
            check(got, want, case, f"{name}, batch {number}")


def damaged(content: Array, draw: random.Random) -> Array:
    """A few bytes are others, or the end is away."""
    made = content.copy()
    for _ in range(draw.choice([1, 1, 3, 20])):
        made[draw.randrange(len(made))] = draw.choice([0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)])
    return made[: draw.randrange(len(made))] if draw.random() < 0.2 else made


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["words", "texts", "plain"])
def test_damaged_models_are_refused(name: str, seed: int) -> None:
    """Or answer something: each within a moment."""
    draw = random.Random(seed)
    words = texts(b"unaffable hello abcx", b"##", "\u00e4\u4e2d!".encode() * 5)
    operator = PLAIN[name != "plain"]
    outcomes = set[bool]()
    for _ in range(40):
        content = damaged(tokenizer(name), draw)
        count = 3 if name == "plain" else 5
        case = Case(operator, [words, content], outputs=count, exports=False)
        try:
            invoked([case], [])
            outcomes.add(True)
        except BridgeError:
            outcomes.add(False)
    assert outcomes == {True, False}, f"seed {seed}"


def test_damaged_sentencepieces_are_refused() -> None:
    draw = random.Random(1)
    flags = [np.array(False)] * 3
    rest = np.array(0, np.int32), np.array(0, np.float32), *flags
    outcomes = set[bool]()
    for _ in range(6):
        content = damaged(tokenizer("unigram"), draw).tobytes()
        handle = Handle("SentencepieceOp", {"model": content})
        case = Case("SentencepieceTokenizeOp", [handle, texts(b"hello world"), *rest])
        try:
            invoked([case], [])
            outcomes.add(True)
        except BridgeError:
            outcomes.add(False)
    assert False in outcomes


def test_tokens_that_there_are_not_are_refused() -> None:
    splits = np.array([0, 2], np.int64)
    for ids in ([1, 99], [-1, 0]):
        given = [np.array(ids, np.int32), splits, tokenizer("texts")]
        with pytest.raises(KernelError, match="token"):
            invoked([Case("TFText>FastWordpieceDetokenize", given)], [])


def test_a_handle_of_no_known_model() -> None:
    """Early converters wrote handles as int32."""
    handle = T((), TensorType.INT32)
    model = flex_model("SentencepieceVocabSizeOp", [handle], [handle])
    with pytest.raises(KernelError, match="which model of SentencePiece it asks"):
        by_numpy(model, [np.array(0, np.int32)])


def test_labels_of_a_text_that_ends_inside_a_character() -> None:
    given = [texts(b"a\xe4"), np.zeros(2, np.int32), np.array([0, 2], np.int32)]
    case = Case("SplitMergeTokenizeWithOffsets", given)
    with pytest.raises(KernelError, match="inside a character"):
        invoked([case], [])


@pytest.mark.parametrize("pattern", [b"(a*)", b"(a)?b"])
def test_splits_at_nothing_are_refused(pattern: bytes) -> None:
    """TensorFlow does not come to an end, or reads what is not there."""
    scalars = [np.array(pattern, object), np.array(b"", object)]
    case = Case("RegexSplitWithOffsets", [texts(b"xbx"), *scalars], constants=(1, 2))
    with pytest.raises(KernelError, match="matches nothing, or without its group"):
        invoked([case], [])


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentencepieces, "installed", lambda name: False)
    monkeypatch.setattr(unicode_properties, "optional_module", lambda name: None)
    unicode_properties.script_of.cache_clear()
    unicode_properties._regex.cache_clear()
    unicode_properties._any_script.cache_clear()
    for operator in ("SentencepieceVocabSizeOp", "UnicodeScriptTokenizeWithOffsets"):
        family = "sentencepiece" if "piece" in operator else "tokenizers"
        case = next(case for case in cases_of(family) if case.operator == operator)
        with pytest.raises(KernelError, match=r"pip install 'tflite-ort\[text\]'"):
            invoked([case], [])
