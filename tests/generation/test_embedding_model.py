"""`EmbeddingModel`: what tokens a model is given, and which of its vectors is taken."""

from __future__ import annotations

import io
import json
import zlib
from pathlib import Path
from typing import Any

import ai_edge_litert.interpreter as litert
import numpy as np
import numpy.typing as npt
import pytest
import sentencepiece
import tokenizers
from tokenizers import models, pre_tokenizers, processors
from typer.testing import CliRunner

from tests.made_bundles import litertlm
from tests.models import newer_model_path
from tests.one_op import Node, T, graph_model
from tflite_ort import EmbeddingModel, GenerationError, open_bundle
from tflite_ort.command.cli import app
from tflite_ort.schema import (
    CastOptions,
    FullyConnectedOptions,
    GatherOptions,
    Op,
    ReducerOptions,
    ReshapeOptions,
    TensorType,
)

Array = npt.NDArray[Any]

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "cat", "dog", "sat", "down"]
TEXTS = ["a cat sat down", "dog", "", "a " * 40]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tokenizers.Tokenizer(
        models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    ends = [("[CLS]", 2), ("[SEP]", 3)]
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=ends
    )
    path = tmp_path_factory.mktemp("words") / "tokenizer.json"
    made.save(str(path))
    return path


def expected_ids(text: str, most: int) -> list[int]:
    ids = [2, *(WORDS.index(word) for word in text.split()), 3]
    return ids if len(ids) <= most else [*ids[: most - 1], 3]


def reference(path: Path, text: str) -> list[Array]:
    """What LiteRT makes of the tokens of a text."""
    interpreter = litert.Interpreter(str(path))
    interpreter.allocate_tensors()
    for details in interpreter.get_input_details():
        row = np.zeros(details["shape"], details["dtype"])
        ids = expected_ids(text, row.shape[1])
        if "types" not in details["name"]:
            row[0, : len(ids)] = ids if "ids" in details["name"] else 1
        interpreter.set_tensor(details["index"], row)
    interpreter.invoke()
    found = []
    for details in interpreter.get_output_details():
        scale, zero_point = details["quantization"]
        values = interpreter.get_tensor(details["index"]).astype(np.float32)
        found.append((values - zero_point) * scale if scale else values)
    return found


def cosine(one: Array, other: Array) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


@pytest.mark.parametrize(("name", "least"), [("float", 0.9999), ("int8", 0.99), ("a16w8", 0.99)])
@pytest.mark.parametrize("pooling", ["output", "mean", "first"])
def test_vectors_of_bert(name: str, least: float, pooling: Any, vocabulary: Path) -> None:
    path = newer_model_path(f"bert_tiny_{name}.tflite")
    vectors = EmbeddingModel(str(path), vocabulary, pooling=pooling)(TEXTS)
    assert vectors.shape == (4, 128) and vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-5)
    cosines = []
    for vector, text in zip(vectors, TEXTS, strict=True):
        hidden, pooled = sorted(reference(path, text), key=lambda e: -e.ndim)
        count = len(expected_ids(text, hidden.shape[1]))
        wanted = {"output": pooled[0], "mean": hidden[0, :count].mean(0), "first": hidden[0, 0]}
        cosines.append(cosine(vector, wanted[pooling]))
    print(f"{name}, {pooling}: the least cosine is {min(cosines):.6f}")  # shown by -rP
    assert min(cosines) >= least


def counting(name: str = "ids", length: int = 6, **more: T) -> bytes:
    """Of the numbers of tokens: the first three, and the sum."""
    weights = np.zeros((4, length), np.float32)
    weights[:3, :3], weights[3] = np.eye(3), 1
    tensors = {name: T((1, length), TensorType.INT32), "f": T((1, length)), "y": T((1, 4))}
    nodes = [
        Node(Op.CAST, [name], ["f"], CastOptions(TensorType.INT32, TensorType.FLOAT32)),
        Node(Op.FULLY_CONNECTED, ["f", "w", None], ["y"], FullyConnectedOptions()),
    ]
    return graph_model({**tensors, "w": T.constant(weights)}, nodes, ["y"])


def test_dimensions_and_length(vocabulary: Path) -> None:
    model = EmbeddingModel(counting(), vocabulary)
    raw = model(["a cat", "a cat sat down"], normalize=False)
    assert raw.tolist() == [[2, 4, 5, 14], [2, 4, 5, 2 + 4 + 5 + 7 + 8 + 3]]
    assert model("cat " * 9, normalize=False).tolist() == [2, 5, 5, 2 + 4 * 5 + 3]
    cut = model("a cat", dimensions=2)
    np.testing.assert_allclose(cut, np.array([2, 4]) / np.sqrt(20), rtol=1e-6)
    assert model([]).shape == (0, 4)
    for dimensions in (0, 5):
        with pytest.raises(ValueError, match="dimensions must be 1 to 4"):
            model(["a"], dimensions=dimensions)


def test_a_model_of_sentencepiece(tmp_path: Path) -> None:
    stream = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a cat sat", "a dog sat down"] * 20),
        model_writer=stream,
        vocab_size=20,
        model_type="char",
        minloglevel=2,
    )
    (tmp_path / "s.model").write_bytes(stream.getvalue())
    processor = sentencepiece.SentencePieceProcessor(model_proto=stream.getvalue())
    ids = processor.encode("a cat")
    assert len(ids) == 6
    vector = EmbeddingModel(counting(length=9), tmp_path / "s.model")("a cat", normalize=False)
    whole = [processor.bos_id(), *ids, processor.eos_id()]
    assert vector.tolist() == [*whole[:3], sum(whole)]
    cut = EmbeddingModel(counting(length=4), tmp_path / "s.model")("a cat", normalize=False)
    assert cut.tolist() == [*whole[:3], sum(whole[:3]) + processor.eos_id()]


def test_a_bundle_brings_its_tokenizer(vocabulary: Path) -> None:
    text = vocabulary.read_bytes()
    section = len(text).to_bytes(8, "little") + zlib.compress(text)
    sections = [(3, counting(), {}), (6, section, {})]
    assert EmbeddingModel(litertlm(sections))("a", normalize=False).tolist() == [2, 4, 3, 9]
    # Field 2 stands before a text and field 3 behind it: the numbers 8 and 7.
    ends = bytes([0x12, 4, 0x0A, 2, 0x08, 8, 0x1A, 4, 0x0A, 2, 0x08, 7])
    told = EmbeddingModel(litertlm([*sections, (8, ends, {})]))
    assert told("a", normalize=False).tolist() == [8, 4, 7, 19]
    with pytest.raises(GenerationError, match="no tokenizer"):
        EmbeddingModel(counting())


def test_what_is_no_encoder_is_refused(vocabulary: Path) -> None:
    floats = graph_model({"x": T((1, 3)), "y": T((1, 3))}, [Node(Op.TANH, ["x"], ["y"])], ["y"])
    with pytest.raises(GenerationError, match="input 'x' is no row of tokens"):
        EmbeddingModel(floats, vocabulary)
    with pytest.raises(GenerationError, match="no input for the numbers"):
        EmbeddingModel(counting("mask"), vocabulary)
    with pytest.raises(GenerationError, match=r"several may be the vector .* pooling='output'"):
        EmbeddingModel(str(newer_model_path("bert_tiny_float.tflite")), vocabulary)
    with pytest.raises(GenerationError, match="none is the vector"):
        EmbeddingModel(counting(), vocabulary, pooling="mean")
    wrong: Any = "max"
    with pytest.raises(ValueError, match="pooling must be one of"):
        EmbeddingModel(counting(), vocabulary, pooling=wrong)


def test_on_the_command_line(vocabulary: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "m.tflite", tmp_path / "v.npy"
    path.write_bytes(counting())
    given = ["embed", str(path), "--tokenizer", str(vocabulary), "--dimensions", "2"]
    done = CliRunner().invoke(app, [*given, "a cat", "dog"])
    assert done.exit_code == 0, done.output
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    np.testing.assert_allclose(lines[0], np.array([2, 4]) / np.sqrt(20), rtol=1e-6)
    done = CliRunner().invoke(app, [*given, "-", "--out", str(out)], input="a cat\ndog\n")
    assert done.exit_code == 0, done.output
    np.testing.assert_allclose(np.load(out), lines, rtol=1e-6)
    assert CliRunner().invoke(app, [*given[:-1], "9", "a"]).exit_code == 2


@pytest.mark.parametrize("name", ["float", "int8"])
def test_texts_run_in_batches(name: str, vocabulary: Path) -> None:
    """More texts than a batch has, of other lengths: each has the vector that it has alone."""
    path = newer_model_path(f"bert_tiny_{name}.tflite")
    model = EmbeddingModel(str(path), vocabulary, pooling="mean")
    texts = [
        " ".join(["a", "cat", "dog", "sat", "down"][: 1 + n % 5] * (1 + n % 3)) for n in range(37)
    ]
    together = model(texts)
    assert model._batches is not None and model._batches.batch_size > 1
    alone = np.stack([model(text) for text in texts])
    cosines = (together * alone).sum(axis=1)
    assert cosines.min() >= (0.99999 if name == "float" else 0.999)


def embedded(length: int = 6, pieces: int = 1) -> bytes:
    """A bundle of two models: of a token's number n the vector (n, n * n, 1), and of vectors and a
    mask the sum of those that count."""
    table = np.stack([np.arange(10), np.arange(10) ** 2, np.ones(10)], -1).astype(np.float32)
    embedder = graph_model(
        {
            "tokens": T((1, pieces), TensorType.INT32),
            "t": T.constant(table),
            "v": T((1, pieces, 3)),
        },
        [Node(Op.GATHER, ["t", "tokens"], ["v"], GatherOptions())],
        ["v"],
    )
    tensors = {
        "embeddings": T((1, length, 3)),
        "mask": T((1, length), TensorType.INT32),
        "f": T((1, length)),
        "shape": T.constant(np.array([1, length, 1], np.int32)),
        "column": T((1, length, 1)),
        "kept": T((1, length, 3)),
        "axis": T.constant(np.array([1], np.int32)),
        "y": T((1, 3)),
    }
    nodes = [
        Node(Op.CAST, ["mask"], ["f"], CastOptions(TensorType.INT32, TensorType.FLOAT32)),
        Node(Op.RESHAPE, ["f", "shape"], ["column"], ReshapeOptions()),
        Node(Op.MUL, ["embeddings", "column"], ["kept"]),
        Node(Op.SUM, ["kept", "axis"], ["y"], ReducerOptions(keep_dims=False)),
    ]
    encoder = graph_model(tensors, nodes, ["y"])
    sections = [
        (3, encoder, {"model_type": "tf_lite_text_encoder"}),
        (3, embedder, {"model_type": "tf_lite_embedder"}),
    ]
    return litertlm(sections)


@pytest.mark.parametrize("pieces", [1, 4, 6])
def test_an_encoder_that_takes_vectors_of_tokens(pieces: int, vocabulary: Path) -> None:
    model = EmbeddingModel(embedded(pieces=pieces), vocabulary)
    texts = ["a cat", "dog", "", "a cat sat down"]
    found = model(texts, normalize=False)
    for row, text in zip(found, texts, strict=True):
        ids = np.array(expected_ids(text, 6))
        assert row.tolist() == [ids.sum(), (ids**2).sum(), len(ids)]
        assert model(text, normalize=False).tolist() == row.tolist()


def test_vectors_of_tokens_need_a_model_that_makes_them(vocabulary: Path) -> None:
    bundle = open_bundle(embedded())
    names = [each.name for each in bundle.models]
    encoder = bytes(bundle.model_content(next(each for each in names if "encoder" in each)))
    with pytest.raises(GenerationError, match="no embedder"):
        EmbeddingModel(encoder, vocabulary)
    wrong = litertlm(
        [
            (3, encoder, {"model_type": "tf_lite_text_encoder"}),
            (3, encoder, {"model_type": "tf_lite_embedder"}),
        ]
    )
    with pytest.raises(GenerationError, match="model for single tokens"):
        EmbeddingModel(wrong, vocabulary)


def test_a_vector_does_not_depend_on_other_texts(vocabulary: Path) -> None:
    """Nor on their number, in a network whose weights alone have 8 bits."""
    path = newer_model_path("distilbert_dyn8.tflite")
    model = EmbeddingModel(str(path), vocabulary, pooling="output")
    alone = model("a cat", normalize=False)
    for others in (["dog", "sat down"], ["a " * 60] * 3):
        first = model(["a cat", *others], normalize=False)[0]
        np.testing.assert_allclose(first, alone, atol=1e-5 * np.abs(alone).max())
