"""`LanguageDetector`, and the operators of its models: NGramHash and KmeansEmbeddingLookup.

Probabilities are those that MediaPipe 1.2.3 gives for the same files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from flatbuffers import flexbuffers

from tests.one_op import Node, T, graph_model
from tests.ops.custom_op import by_numpy, custom_model
from tests.prediction.models import described
from tests.test_tasks import base
from tflite_ort import KernelError, ModelError
from tflite_ort.fallback_kernels.idioms.letters import is_letter, lowered
from tflite_ort.fallback_kernels.idioms.short_texts import hashes, pieces
from tflite_ort.schema import (
    ConcatenationOptions,
    FullyConnectedOptions,
    Op,
    SoftmaxOptions,
    StridedSliceOptions,
    TensorType,
)
from tflite_ort.schema.file.model_metadata import (
    AssociatedFile,
    AssociatedFileType,
    TensorMetadata,
)
from tflite_ort.tasks import text

Array = npt.NDArray[Any]

LANGUAGES = ("en", "de", "ja-Latn", "fr", "uk")
_SEED, _VOCABULARIES, _CODES, _BLOCK, _BLOCKS = 12345678901234567890, (500, 1000), 8, 4, 256


def hash_options(
    lengths: Sequence[int] = (1, 3),
    sizes: Sequence[int] = _VOCABULARIES,
    seed: int = _SEED,
    most: int | None = None,
    lower: bool = True,
) -> bytes:
    """The options of NGramHash, as MediaPipe reads them: with vectors of one type."""
    builder = flexbuffers.Builder()
    with builder.Map():
        builder.Key("seed")
        builder.UInt(seed)
        builder.Key("ngram_lengths")
        builder.TypedVectorFromElements(list(lengths))
        builder.Key("vocab_sizes")
        builder.TypedVectorFromElements(list(sizes))
        builder.Key("lowercase_input")
        builder.Bool(lower)
        if most is not None:
            builder.Key("max_splits")
            builder.Int(most)
    return bytes(builder.Finish())


def detector(options: bytes, labels: bool = True) -> bytes:
    """A model as the published one is: numbers of characters and of groups of them, a vector for
    each, and a layer over both."""
    rng = np.random.default_rng(7)
    width = _CODES * _BLOCK
    tensors = {"text": T((1,), TensorType.STRING), "ids": T((1, 2, 1), TensorType.INT32)}
    nodes = [Node("NGramHash", ["text"], ["ids"], options)]
    slices = StridedSliceOptions(begin_mask=4, end_mask=4, shrink_axis_mask=2)
    for row, size in enumerate(_VOCABULARIES):
        codes = rng.integers(0, _BLOCKS, (size + 1, _CODES), np.uint8)
        book = rng.normal(size=(_BLOCKS, _BLOCK)).astype(np.float32)
        ends = [[0, row, 0], [1, row + 1, 0], [1, 1, 1]]
        tensors |= {
            f"{name}{row}": T.constant(np.int32(e)) for name, e in zip("bes", ends, strict=True)
        }
        tensors |= {
            f"row{row}": T((1, 1), TensorType.INT32),
            f"codes{row}": T.constant(codes),
            f"book{row}": T.constant(book),
            f"v{row}": T((1, width)),
        }
        nodes += [
            Node(Op.STRIDED_SLICE, ["ids", f"b{row}", f"e{row}", f"s{row}"], [f"row{row}"], slices),
            Node("KmeansEmbeddingLookup", [f"row{row}", f"codes{row}", f"book{row}"], [f"v{row}"]),
        ]
    weights = rng.normal(size=(len(LANGUAGES), 2 * width)).astype(np.float32)
    count = len(LANGUAGES)
    tensors |= {"both": T((1, 2 * width)), "w": T.constant(weights)}
    tensors |= {"z": T((1, count)), "y": T((1, count))}
    nodes += [
        Node(Op.CONCATENATION, ["v0", "v1"], ["both"], ConcatenationOptions(axis=1)),
        Node(Op.FULLY_CONNECTED, ["both", "w", None], ["z"], FullyConnectedOptions()),
        Node(Op.SOFTMAX, ["z"], ["y"], SoftmaxOptions(beta=1.0)),
    ]
    files = (AssociatedFile(name="labels.txt", type=AssociatedFileType.TENSOR_AXIS_LABELS),)
    made = TensorMetadata(name="probability", associated_files=files if labels else ())
    lines = {"labels.txt": "\n".join(LANGUAGES)} if labels else {}
    return described(graph_model(tensors, nodes, ["y"]), TensorMetadata(name="text"), [made], lines)


MODELS = {
    "lowered": hash_options(),
    "as it is": hash_options(lower=False),
    "short": hash_options((2, 4), most=9),
}
TEXTS = (
    "Hello world",
    "Привіт, світе!",
    "İstanbul İİİ",
    "",
    "ẞẞ Ⱥ Ⱥⱥ Ω K Å",
    "日本語 𐐀 テキスト \u13a0\u13a1",
)
# By model and text.
PROBABILITIES = {
    "lowered": [
        [0.065253, 0.002312, 0.099835, 0.204612, 0.627989],
        [0.072358, 0.237981, 0.230638, 0.4217, 0.037324],
        [0.012253, 0.000859, 0.001874, 0.112367, 0.872648],
        [0.003292, 0.004585, 0.41458, 0.577184, 0.00036],
        [0.001096, 0.001006, 0.01516, 0.946549, 0.036189],
        [0.054416, 0.054013, 0.14459, 0.742645, 0.004335],
    ],
    "as it is": [
        [0.046651, 0.000515, 0.361143, 0.045158, 0.546533],
        [0.051755, 0.421318, 0.166934, 0.344756, 0.015238],
        [0.088054, 0.018161, 0.406053, 0.320524, 0.167209],
        [0.003292, 0.004585, 0.41458, 0.577184, 0.00036],
        [0.032432, 0.094677, 0.228718, 0.598291, 0.045883],
        [0.016558, 0.008534, 0.310842, 0.663085, 0.000981],
    ],
    "short": [
        [0.000188, 0.009481, 0.742074, 0.232897, 0.01536],
        [0.087937, 0.020954, 0.031433, 0.614316, 0.24536],
        [0.050583, 0.018708, 0.82233, 0.001392, 0.106987],
        [0.001021, 1e-06, 0.978007, 0.002798, 0.018173],
        [0.010905, 0.232493, 0.017663, 0.302408, 0.436531],
        [0.000162, 0.001087, 0.189204, 0.808326, 0.001222],
    ],
}


def detect(content: bytes, said: str, **options: Any) -> Any:
    made = text.LanguageDetectorOptions(base(content), **options)
    with text.LanguageDetector.create_from_options(made) as task:
        return task.detect(said)


@pytest.mark.parametrize("name", MODELS)
def test_languages_are_those_of_mediapipe(name: str) -> None:
    made = text.LanguageDetectorOptions(base(detector(MODELS[name])))
    with text.LanguageDetector.create_from_options(made) as task:
        for said, wanted in zip(TEXTS, PROBABILITIES[name], strict=True):
            found = task.detect(said).languages
            order = [each.probability for each in found]
            assert order == sorted(order, reverse=True)
            named = {each.language_code: each.probability for each in found}
            np.testing.assert_allclose([named[each] for each in LANGUAGES], wanted, atol=2e-6)


def test_options_and_names() -> None:
    content = detector(MODELS["lowered"])
    found = detect(content, "Hello world", max_results=3, category_denylist=["uk"])
    assert [each.language_code for each in found.detections] == ["fr", "ja-Latn", "en"]
    assert found.languages is found.detections
    (best,) = detect(content, "Hello world", score_threshold=0.5).languages
    assert isinstance(best, text.LanguageDetectorResult.LanguagePrediction)
    assert best.language_code == "uk"
    with pytest.raises(ValueError, match="missing language code"):
        detect(detector(MODELS["lowered"], labels=False), "Hello world")
    with pytest.raises(ValueError, match="not both"):
        text.LanguageDetectorResult(languages=[], detections=[])


def murmur(content: bytes, seed: int) -> int:
    """MurmurHash64A by its definition."""
    factor, whole = 0xC6A4A7935BD1E995, 2**64
    found = seed ^ (len(content) * factor % whole)
    for start in range(0, len(content) // 8 * 8, 8):
        word = int.from_bytes(content[start : start + 8], "little") * factor % whole
        found = (found ^ (word ^ word >> 47) * factor % whole) * factor % whole
    if rest := content[len(content) // 8 * 8 :]:
        found = (found ^ int.from_bytes(rest, "little")) * factor % whole
    found = (found ^ found >> 47) * factor % whole
    return found ^ found >> 47


def test_hashes() -> None:
    rng = np.random.default_rng(11)
    strings = [rng.integers(0, 256, size, np.uint8).tobytes() for size in (*range(20), 64, 71)]
    for seed in (0, 123, 2**64 - 1):
        assert hashes(strings, seed).tolist() == [murmur(each, seed) for each in strings]
    assert hashes([], 0).tolist() == []


@pytest.mark.parametrize(
    ("said", "lower", "most", "wanted"),
    [
        (b"Ab1", True, 128, b"^ab $"),
        (b"Ab1", False, 128, b"^Ab $"),
        (b"Ab1", True, 4, b"^ab$"),
        (b"Ab1", True, 1, b"^$"),
        ("\u0130".encode(), True, 9, b"^i $"),  # a byte is left, of the end of the text
        ("\u023a".encode(), True, 9, b"^$"),  # its small letter has a byte more
        (b"a\xffb", True, 9, b"^a$"),  # the sign for what is wrong has three bytes
        (b"a\xffb", False, 9, b"^a b$"),
        (b"a\xe2\x82", True, 9, b"^a$"),
        (b"a\xe2\x82", False, 9, b"^a$"),
        (b"", True, 9, b"^$"),
    ],
)
def test_pieces(said: bytes, lower: bool, most: int, wanted: bytes) -> None:
    assert b"".join(pieces(said, lower, most)) == wanted


def test_letters() -> None:
    """Those of Unicode 6.2: what came later is none."""
    for character, small in (("A", "a"), ("\xc9", "\xe9"), ("\u2126", "\u03c9"), ("\u0130", "i")):
        assert is_letter(ord(character)) and lowered(ord(character)) == ord(small)
    for character in ("\u13a0", "\u4e2d", "\U00020000", "\xdf"):
        assert is_letter(ord(character)) and lowered(ord(character)) == ord(character)
    for character in ("1", " ", "@", "\u0660", "\uab70", "\U00016e40", "\U0010ffff", "\u0300"):
        assert not is_letter(ord(character)) and lowered(ord(character)) == ord(character)


def hash_model(options: bytes) -> bytes:
    strings, numbers = T((1,), TensorType.STRING), T((1, 1, 1), TensorType.INT32)
    return custom_model("NGramHash", [strings], [numbers], options)


def test_groups_at_the_end_are_shorter() -> None:
    (found,) = by_numpy(hash_model(hash_options((1, 2), (100, 200), 123)), [np.array([b"HI"])])
    groups = [[b"^", b"h", b"i", b"$"], [b"^h", b"hi", b"i$", b"$"]]
    wanted = [
        [murmur(each, 123) % size + 1 for each in row]
        for row, size in zip(groups, (100, 200), strict=True)
    ]
    assert found.tolist() == [wanted]


@pytest.mark.parametrize(
    "options",
    [
        hash_options((), ()),
        hash_options((1, 2), (5,)),
        hash_options((1,), (0,)),
        hash_options((1,), (5,), most=0),
        b"no map",
    ],
)
def test_options_that_are_none_are_refused(options: bytes) -> None:
    with pytest.raises(ModelError):
        by_numpy(hash_model(options), [np.array([b"a"])])


def test_no_file_makes_a_text_take_for_ever() -> None:
    options = hash_options((2**31 - 1,), (5,), most=2**31 - 1)
    with pytest.raises(KernelError, match="more than can be hashed"):
        by_numpy(hash_model(options), [np.array([b"a" * 100_000])])


def test_vectors_of_tokens() -> None:
    rng = np.random.default_rng(2)
    codes, book = rng.integers(0, 3, (6, 2), np.uint8), rng.normal(size=(3, 4)).astype(np.float32)
    inputs = [T((1, 5), TensorType.INT32), T.constant(codes), T.constant(book)]

    def vector(*tokens: int) -> Array:
        model = custom_model("KmeansEmbeddingLookup", inputs, [T((1, 8))])
        return by_numpy(model, [np.array([tokens], np.int32)])[0]

    wanted = np.mean([book[codes[token]].reshape(-1) for token in (5, 1)], axis=0)
    np.testing.assert_allclose(vector(5, 1, 0, 2, 9), [wanted], rtol=1e-6)
    assert not vector(0, 1, 2, 3, 4).any()
    for wrong in (6, -1):
        with pytest.raises(KernelError, match="of 6"):
            vector(wrong, 0, 0, 0, 0)
