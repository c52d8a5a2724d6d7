"""`TextClassifier` and `TextEmbedder`; numbers of words are those that MediaPipe 1.2.3 gives."""

from __future__ import annotations

import numpy as np
import pytest

from tests.one_op import Node, T, graph_model
from tests.prediction.models import described
from tests.test_tasks import base
from tflite_ort import ModelError, tasks
from tflite_ort.metadata import Metadata
from tflite_ort.schema import CastOptions, FullyConnectedOptions, Op, TensorType
from tflite_ort.schema.file.model_metadata import (
    AssociatedFile,
    AssociatedFileType,
    BertTokenizerOptions,
    ProcessUnit,
    RegexTokenizerOptions,
    SubGraphMetadata,
    TensorMetadata,
)
from tflite_ort.schema.file.model_metadata import ModelMetadata as Table
from tflite_ort.tasks import text
from tflite_ort.tasks.text_input import WordPieces, Words, text_input

LENGTH = 6
_VOCABULARY = (AssociatedFile(name="vocab.txt", type=AssociatedFileType.VOCABULARY),)
_LABELS = (AssociatedFile(name="labels.txt", type=AssociatedFileType.TENSOR_AXIS_LABELS),)
WORDS = "<PAD> 0\n<START> 1\n<UNKNOWN> 2\nthe 3\nfilm 4\nwas 5\ngreat 6\nit's 7\n"
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "##ing", "act", "film", "!", "中", "é", "'", "s"]


def regex_units(pattern: str = r"[^\w\']+") -> tuple[ProcessUnit, ...]:
    options = RegexTokenizerOptions(delim_regex_pattern=pattern, vocab_file=_VOCABULARY)
    return (ProcessUnit(options=options),)


def counting_model(pattern: str = r"[^\w\']+", length: int = LENGTH) -> bytes:
    """Of the numbers of six words the sum, the first one, and the last one."""
    weights = np.zeros((3, length), np.float32)
    weights[0], weights[1, 0], weights[2, -1] = 1, 1, 1
    integers = T((1, length), TensorType.INT32)
    tensors = {"ids": integers, "f": T((1, length)), "w": T.constant(weights), "y": T((1, 3))}
    options = CastOptions(TensorType.INT32, TensorType.FLOAT32)
    nodes = [
        Node(Op.CAST, ["ids"], ["f"], options),
        Node(Op.FULLY_CONNECTED, ["f", "w", None], ["y"], FullyConnectedOptions()),
    ]
    given = TensorMetadata(name="ids", process_units=regex_units(pattern))
    made = TensorMetadata(name="counts", associated_files=_LABELS)
    files = {"vocab.txt": WORDS, "labels.txt": "sum\nfirst\nlast\n"}
    return described(graph_model(tensors, nodes, ["y"]), given, [made], files)


def test_a_text_is_classified() -> None:
    options = text.TextClassifierOptions(base(counting_model()), max_results=2)
    with text.TextClassifier.create_from_options(options) as classifier:
        (head,) = classifier.classify("the film, was...").classifications
        again = classifier.classify("").classifications[0]
    assert (head.head_index, head.head_name) == (0, "counts")
    found = [(each.index, each.score, each.category_name) for each in head.categories]
    assert found == [(0, 13.0, "sum"), (1, 1.0, "first")]
    assert [each.score for each in again.categories] == [1, 1]
    options = text.TextClassifierOptions(
        base(counting_model()), score_threshold=1, category_denylist=["sum"]
    )
    classifier = text.TextClassifier.create_from_options(options)
    (head,) = classifier.classify("the film, was...").classifications
    assert [each.category_name for each in head.categories] == ["first"]


def test_a_text_as_a_vector() -> None:
    options = text.TextEmbedderOptions(base(counting_model()), l2_normalize=True)
    with text.TextEmbedder.create_from_options(options) as embedder:
        (one,) = embedder.embed("the film").embeddings
        (other,) = embedder.embed("great " * 9).embeddings
    np.testing.assert_allclose(one.embedding, np.array([8, 1, 0]) / np.sqrt(65), rtol=1e-6)
    assert (one.head_index, one.head_name) == (0, "counts")
    expected = np.array([31, 1, 6]) / np.sqrt(31**2 + 1 + 36)
    assert text.TextEmbedder.cosine_similarity(one, other) == pytest.approx(
        one.embedding @ expected
    )


@pytest.mark.parametrize(
    ("said", "ids"),
    [
        ("the film was great", [1, 3, 4, 5, 6, 0]),
        ("it's... The", [1, 7, 2, 0, 0, 0]),
        ("", [1, 0, 0, 0, 0, 0]),
        ("the " * 9, [1, 3, 3, 3, 3, 3]),
        ("caf\xe9 the", [1, 2, 3, 0, 0, 0]),
    ],
)
def test_words(said: str, ids: list[int]) -> None:
    metadata = metadata_of(regex_units(), {"vocab.txt": WORDS.encode()})
    read = text_input(metadata, [np.int32], ["ids"])
    assert isinstance(read, Words)
    assert [each.tolist() for each in read(said, LENGTH)] == [[ids]]
    assert read("the film", None)[0].tolist() == [[1, 3, 4]]


@pytest.mark.parametrize(
    ("said", "pieces"),
    [
        ("Acting!", ["act", "##ing", "!"]),
        ("film  film", ["film", "film"]),
        ("a's", ["a", "'", "s"]),
        ("a\u4e2d\xc9", ["a", "中", "[UNK]"]),
        ("\xe9", ["é"]),
        ("acted", ["[UNK]"]),
        ("a" * 101, ["[UNK]"]),
        ("a " * 9, ["a"] * 6),
        ("", []),
    ],
)
def test_pieces_of_words(said: str, pieces: list[str]) -> None:
    read = WordPieces({piece: number for number, piece in enumerate(PIECES)})
    ids, mask, segments = (each.tolist()[0] for each in read(said, 8))
    expected = [2, *map(PIECES.index, pieces), 3]
    assert ids == expected + [0] * (8 - len(expected))
    assert mask == [1] * len(expected) + [0] * (8 - len(expected))
    assert segments == [0] * 8


def metadata_of(units: tuple[ProcessUnit, ...], files: dict[str, bytes]) -> Metadata:
    graph = SubGraphMetadata(input_process_units=units)
    return Metadata(files=files, table=Table(subgraph_metadata=(graph,)))


def test_the_order_of_the_inputs_of_bert() -> None:
    units = (ProcessUnit(options=BertTokenizerOptions(vocab_file=_VOCABULARY)),)
    metadata = metadata_of(units, {"vocab.txt": "\n".join(PIECES).encode()})
    for names, order in (
        (["input_word_ids", "input_mask", "input_type_ids"], (0, 1, 2)),
        (["segment_ids", "mask", "ids"], (2, 1, 0)),
        (["x", "y", "z"], (0, 1, 2)),
    ):
        read = text_input(metadata, [np.int32] * 3, names)
        assert isinstance(read, WordPieces)
        assert read.order == order
        made = [each.tolist()[0] for each in read("a", 4)]
        expected = ([2, 4, 3, 0], [1, 1, 1, 0], [0, 0, 0, 0])
        assert [made[place] for place in order] == list(expected)


def test_what_tells_no_tokenizer_is_refused() -> None:
    for units, files, why in (
        ((), {}, "no tokenizer that is known"),
        (regex_units(), {}, "has no vocabulary"),
        (regex_units("(a+)+$"), {"vocab.txt": b""}, "no list of characters"),
        (regex_units("(?=a)"), {"vocab.txt": b""}, "no list of characters"),
        (regex_units("[z-a]"), {"vocab.txt": b""}, "is wrong"),
    ):
        with pytest.raises(ModelError, match=why):
            text_input(metadata_of(units, files), [np.int32], ["ids"])
    with pytest.raises(ModelError, match="no tokenizer that is known"):
        text_input(metadata_of(regex_units(), {}), [np.int32] * 2, ["a", "b"])


def test_an_odd_model_of_text_is_an_error() -> None:
    plain = graph_model({"x": T((1, 3)), "y": T((1, 3))}, [Node(Op.TANH, ["x"], ["y"])], ["y"])
    with pytest.raises(ModelError, match="no tokenizer"):
        tasks.text.TextClassifier.create_from_options(text.TextClassifierOptions(base(plain)))
    short = text.TextEmbedderOptions(base(counting_model(length=1)))
    (found,) = text.TextEmbedder.create_from_options(short).embed("the film").embeddings
    assert found.embedding.tolist() == [1, 1, 1]
