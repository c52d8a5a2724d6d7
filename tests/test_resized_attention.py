"""Attention composites with resized inputs, by name as LiteRT's default runs them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest
from flatbuffers import flexbuffers

from tests.models import model_path
from tests.oracle import litert
from tests.registered import invoked
from tflite_ort import BridgeError, Interpreter, ModelError, export_onnx
from tflite_ort.schema import read_model, write_model
from tflite_ort.schema.file.model import Model

Array = npt.NDArray[np.float32]

# Inputs in the file's order: values, mask, queries, keys; 32 heads of queries share 4 of keys.
NAME = "litert__odml_sdpa_composite_gqa.tflite"
KEYS, HEADS, SHARED, SIZE = 64, 32, 4, 4


def _shapes(batch: int, tokens: int, keys: int = KEYS) -> list[tuple[int, ...]]:
    cache = batch, keys, SHARED, SIZE
    return [cache, (batch, 1, tokens, keys), (batch, tokens, HEADS, SIZE), cache]


def _drawn(shapes: list[tuple[int, ...]]) -> list[Array]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def _attention(values: Array, mask: Array, queries: Array, keys: Array, scale: float) -> Array:
    q = queries.transpose(0, 2, 1, 3)
    k, v = (np.repeat(each, HEADS // SHARED, 2).transpose(0, 2, 1, 3) for each in (keys, values))
    scores = q @ k.swapaxes(-1, -2) * scale + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return (weights @ v).transpose(0, 2, 1, 3)


def _ours(content: bytes, feeds: list[Array]) -> Array:
    interpreter = Interpreter(model_content=content)
    for detail, feed in zip(interpreter.get_input_details(), feeds, strict=True):
        interpreter.resize_tensor_input(detail["index"], feed.shape)
    interpreter.allocate_tensors()
    for detail, feed in zip(interpreter.get_input_details(), feeds, strict=True):
        interpreter.set_tensor(detail["index"], feed)
    interpreter.invoke()
    assert all(each.delegate != "numpy" for each in interpreter.delegation())
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


@pytest.mark.parametrize(
    ("batch", "tokens", "keys"), [(2, 1, 64), (3, 1, 64), (1, 7, 64), (3, 5, 64), (2, 3, 16)]
)
def test_a_resized_composite_gives_what_litert_gives(batch: int, tokens: int, keys: int) -> None:
    content, feeds = model_path(NAME).read_bytes(), _drawn(_shapes(batch, tokens, keys))
    got = _ours(content, feeds)
    (want,) = litert(content, feeds)
    np.testing.assert_allclose(got, want, atol=1e-5 * float(np.abs(want).max()))
    np.testing.assert_allclose(got, _attention(*feeds, SIZE**-0.5), atol=1e-5)


@pytest.mark.parametrize(("heads", "shared"), [(32, 32), (8, 4), (32, 8), (4, 4)])
def test_other_numbers_of_heads(heads: int, shared: int) -> None:
    """The decomposition of the file has the heads of keys that 32 heads of queries read."""
    batch, tokens = 2, 3
    cache, queries = (batch, KEYS, shared, SIZE), (batch, tokens, heads, SIZE)
    content = model_path(NAME).read_bytes()
    feeds = _drawn([cache, (batch, 1, tokens, KEYS), queries, cache])
    got = _ours(content, feeds)
    (want,) = litert(content, feeds)
    np.testing.assert_allclose(got, want, atol=1e-5 * float(np.abs(want).max()))


def test_one_head_of_keys() -> None:
    """LiteRT refuses it: all heads of the queries read it."""
    cache, queries = (2, KEYS, 1, SIZE), (2, 3, HEADS, SIZE)
    feeds = _drawn([cache, (2, 1, 3, KEYS), queries, cache])
    values, mask, q, keys = feeds
    wide = [np.repeat(each, HEADS, 2) for each in (values, keys)]
    got = _ours(model_path(NAME).read_bytes(), feeds)
    want = _ours(model_path(NAME).read_bytes(), [wide[0], mask, q, wide[1]])
    np.testing.assert_allclose(got, want, atol=1e-5)


@pytest.mark.parametrize("heads", [2, 6, 33])
def test_heads_that_do_not_divide(heads: int) -> None:
    cache, queries = (2, KEYS, SHARED, SIZE), (2, 3, heads, SIZE)
    with pytest.raises(BridgeError, match=r"out of bounds|division by 0"):
        _ours(model_path(NAME).read_bytes(), _drawn([cache, (2, 1, 3, KEYS), queries, cache]))


def test_an_interpreter_is_resized_there_and_back() -> None:
    interpreter = Interpreter(model_path(NAME))
    for batch in (1, 2, 1, 3):
        feeds = _drawn(_shapes(batch, 1))
        got = invoked(interpreter, *feeds)[0]
        np.testing.assert_allclose(got, _attention(*feeds, SIZE**-0.5), atol=1e-5)


def test_an_export_of_other_shapes(tmp_path: Path) -> None:
    feeds = _drawn(_shapes(3, 2))
    names = [each["name"] for each in Interpreter(model_path(NAME)).get_input_details()]
    shapes = {name: feed.shape for name, feed in zip(names, feeds, strict=True)}
    export_onnx(model_path(NAME), tmp_path / "m.onnx", input_shapes=shapes)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    given = {each.name: x for each, x in zip(session.get_inputs(), feeds, strict=True)}
    (got,) = session.run(None, given)
    np.testing.assert_allclose(got, _attention(*feeds, SIZE**-0.5), atol=1e-5)


def _with_attributes(attributes: dict[str, float]) -> Model:
    model = read_model(model_path(NAME))
    graph, body = model.subgraphs
    (composite,) = graph.operators
    data = np.frombuffer(bytes(flexbuffers.Dumps(attributes)), np.uint8)
    options = replace(composite.options, composite_attributes=data)
    graph = replace(graph, operators=(replace(composite, options=options),))
    return replace(model, subgraphs=(graph, body))


@pytest.mark.parametrize(("attributes", "scale"), [({"scale": 0.25}, 0.25), ({}, SIZE**-0.5)])
def test_the_scale_is_that_of_the_attributes(attributes: dict[str, float], scale: float) -> None:
    content, feeds = write_model(_with_attributes(attributes)), _drawn(_shapes(2, 1))
    got = _ours(content, feeds)
    (want,) = litert(content, feeds)
    np.testing.assert_allclose(got, want, atol=1e-5 * float(np.abs(want).max()))
    np.testing.assert_allclose(got, _attention(*feeds, scale), atol=1e-5)


def test_attributes_that_say_more_are_refused() -> None:
    content = write_model(_with_attributes({"scale": 0.5, "logit_cap": 50.0}))
    with pytest.raises(ModelError, match="do not fill"):
        _ours(content, _drawn(_shapes(2, 1)))
