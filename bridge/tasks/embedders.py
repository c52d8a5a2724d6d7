"""`ImageEmbedder` and `AudioEmbedder`: what is seen or heard, as a vector."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tflite_ort.tasks.containers import Embedding, EmbeddingResult
from tflite_ort.tasks.heads import heads_of
from tflite_ort.tasks.network import networks
from tflite_ort.tasks.options import AudioRunningMode, BaseOptions
from tflite_ort.tasks.vision_task import Frame, ResultCallback, VisionTask, VisionTaskOptions
from tflite_ort.tasks.windows import SoundTask

Array = npt.NDArray[Any]

# A quantized number is so many times the number, within a byte.
_QUANTA = 128


def as_embedding(vector: Array, options: Any, name: str | None = None) -> Embedding:
    """A vector as a result.

    Args:
        options: whether it gets the length 1, and whether its numbers become bytes.
    """
    values = np.asarray(vector, np.float32).reshape(-1)
    if options.l2_normalize:
        length = np.sqrt(np.square(values).sum(dtype=np.float32))
        values = values / length if length > 0 else values
    if not options.quantize:
        return Embedding(values.astype(np.float64), 0, name)
    # Halves are rounded away from zero.
    scaled = np.trunc(values * _QUANTA + np.copysign(np.float32(0.5), values))
    return Embedding(np.clip(scaled, -128, 127).astype(np.int8).view(np.uint8), 0, name)


def cosine_similarity(u: Embedding, v: Embedding) -> float:
    """The cosine of the angle between two embeddings.

    Raises:
        ValueError: they have other sizes, one of them is quantized and the other is not, or one has
            no direction.
    """
    if len(u.embedding) != len(v.embedding):
        raise ValueError(
            "Cannot compute cosine similarity between embeddings of different sizes "
            f"({len(u.embedding)} vs. {len(v.embedding)})."
        )
    if u.embedding.dtype != v.embedding.dtype:
        raise ValueError("Cannot compute cosine similarity between quantized and float embeddings.")
    one, two = map(_numbers, (u.embedding, v.embedding))
    lengths = float(np.linalg.norm(one) * np.linalg.norm(two))
    if lengths <= 0:
        raise ValueError("Cannot compute cosine similarity on embedding with 0 norm.")
    return float(one.dot(two)) / lengths


def _numbers(values: Array) -> Array:
    signed = values.view(np.int8) if values.dtype == np.uint8 else values
    return signed.astype(np.float64)


@dataclass
class ImageEmbedderOptions(VisionTaskOptions):
    """Options of `ImageEmbedder`.

    Args:
        l2_normalize: make the vector 1 long.
        quantize: give bytes, of numbers from -1 to 1.
    """

    l2_normalize: bool | None = None
    quantize: bool | None = None
    result_callback: ResultCallback | None = None


class ImageEmbedder(VisionTask[EmbeddingResult]):
    """A picture as a vector: any network that gives one vector for a picture."""

    _options_class = ImageEmbedderOptions
    _takes_region = True

    def __init__(self, options: ImageEmbedderOptions) -> None:
        super().__init__(options)
        (self._network,) = networks(options.base_options, {"embedder": "embedding"})
        (self._head,) = heads_of(self._network.metadata, 1)

    embed = VisionTask._on_image
    embed_for_video = VisionTask._on_video
    embed_async = VisionTask._on_stream

    cosine_similarity = staticmethod(cosine_similarity)

    def _result(self, frame: Frame) -> EmbeddingResult:
        vector = self._network(frame.pixels, roi=frame.rect)["embedding"]
        time = None if frame.seconds is None else round(frame.seconds * 1000)
        return EmbeddingResult([as_embedding(vector, self._options, self._head.name)], time)


@dataclass
class AudioEmbedderOptions:
    """Options of `AudioEmbedder`.

    Args:
        l2_normalize: make the vectors 1 long.
        quantize: give bytes, of numbers from -1 to 1.
        result_callback: in the stream mode, called with each result and its timestamp.
    """

    base_options: BaseOptions
    running_mode: AudioRunningMode = AudioRunningMode.AUDIO_CLIPS
    l2_normalize: bool | None = None
    quantize: bool | None = None
    result_callback: Callable[[EmbeddingResult, int], None] | None = None


class AudioEmbedder(SoundTask[EmbeddingResult]):
    """Each window of a sound as a vector. Windows are as long as the model's input and follow each
    other without overlap; the last one is filled with silence."""

    _options_class = AudioEmbedderOptions
    _model: ClassVar[Mapping[str, str]] = {"embedder": "audio embedding"}

    def __init__(self, options: AudioEmbedderOptions) -> None:
        super().__init__(options)
        (self._head,) = heads_of(self._network.metadata, 1)

    embed = SoundTask._on_clip
    embed_async = SoundTask._on_block

    cosine_similarity = staticmethod(cosine_similarity)

    def _result(self, window: Array, time_ms: int) -> EmbeddingResult:
        vector = self._network(window)["embedding"]
        return EmbeddingResult([as_embedding(vector, self._options, self._head.name)], time_ms)
