"""`ImageEmbedder` and `AudioEmbedder`."""

from __future__ import annotations

import numpy as np
import pytest

from tests.made_networks import network
from tests.test_audio_tasks import sound_model
from tests.test_tasks import FACES, IMAGE, base
from tflite_ort import ModelError, tasks
from tflite_ort.schema import Op
from tflite_ort.tasks import audio, vision
from tflite_ort.tasks.containers import Embedding
from tflite_ort.tasks.embedders import as_embedding, cosine_similarity

VECTOR = np.float32([[3, -4, 0, 0.5]])


def made(**options: bool) -> Embedding:
    said = vision.ImageEmbedderOptions(base(network(32, [VECTOR])), **options)
    (found,) = vision.ImageEmbedder.create_from_options(said).embed(IMAGE).embeddings
    return found


def test_a_picture_as_a_vector() -> None:
    plain, unit = made(), made(l2_normalize=True)
    assert plain.embedding.dtype == unit.embedding.dtype == np.float64
    np.testing.assert_allclose(plain.embedding, VECTOR[0], rtol=1e-6)
    np.testing.assert_allclose(unit.embedding, VECTOR[0] / np.linalg.norm(VECTOR), rtol=1e-6)
    assert (plain.head_index, plain.head_name) == (0, None)


def test_a_vector_of_bytes() -> None:
    signed = made(l2_normalize=True, quantize=True).embedding.view(np.int8)
    np.testing.assert_array_equal(signed, np.round(128 * VECTOR[0] / np.linalg.norm(VECTOR)))
    options = vision.ImageEmbedderOptions(base(FACES), quantize=True)
    # Halves away from zero, within a byte.
    numbers = np.float32([0.5, -0.5, 1.5, -1.5, 127.5, 200, -129]) / 128
    found = as_embedding(numbers, options).embedding.view(np.int8)
    assert found.tolist() == [1, -1, 2, -2, 127, 127, -128]


def test_similarity() -> None:
    one, other = made(), made(l2_normalize=True)
    assert vision.ImageEmbedder.cosine_similarity(one, other) == pytest.approx(1)
    quantized = made(l2_normalize=True, quantize=True)
    assert cosine_similarity(quantized, quantized) == pytest.approx(1)
    with pytest.raises(ValueError, match="quantized and float"):
        cosine_similarity(one, quantized)
    with pytest.raises(ValueError, match=r"different sizes \(4 vs. 3\)"):
        cosine_similarity(one, Embedding(np.ones(3)))
    with pytest.raises(ValueError, match="0 norm"):
        cosine_similarity(one, Embedding(np.zeros(4)))


def test_scores_are_a_vector_too_and_a_video_has_times() -> None:
    options = vision.ImageEmbedderOptions(
        base(network(32, [VECTOR], last=Op.SOFTMAX)), vision.RunningMode.VIDEO
    )
    result = vision.ImageEmbedder.create_from_options(options).embed_for_video(IMAGE, 7)
    assert result.timestamp_ms == 7
    assert result.embeddings[0].embedding.sum() == pytest.approx(1)
    with pytest.raises(ModelError, match="a network for embedding is needed"):
        vision.ImageEmbedder.create_from_options(vision.ImageEmbedderOptions(base(FACES)))


def test_windows_of_a_sound() -> None:
    samples = np.zeros(1500, np.float32)
    samples[[2, 1003]] = 1
    clip = tasks.AudioData.create_from_array(samples, 16_000)
    with audio.AudioEmbedder.create_from_options(
        audio.AudioEmbedderOptions(base(sound_model()), l2_normalize=True)
    ) as embedder:
        found = embedder.embed(clip)
        several = embedder.embed([clip, clip])
    assert [each.timestamp_ms for each in found] == [0, 62]
    vectors = [each.embeddings[0].embedding for each in found]
    assert [vector.argmax() for vector in vectors] == [2, 3]
    assert [np.linalg.norm(vector) for vector in vectors] == pytest.approx([1, 1])
    assert [len(each) for each in several] == [2, 2]
