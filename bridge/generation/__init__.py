"""Text from language models: bundles with a tokenizer, a template and signatures with caches; and
texts as vectors."""

from __future__ import annotations

from tflite_ort.generation.answer import Generated, Stream
from tflite_ort.generation.embedding_model import EmbeddingModel
from tflite_ort.generation.errors import GenerationError
from tflite_ort.generation.language_model import LanguageModel, generate
from tflite_ort.generation.sampling import Sampling

__all__ = [
    "EmbeddingModel",
    "Generated",
    "GenerationError",
    "LanguageModel",
    "Sampling",
    "Stream",
    "generate",
]
