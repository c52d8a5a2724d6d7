"""A language model's bundle as a folder of ONNX files, with what generating needs beside them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tflite_ort.base.files import write_bytes, write_text
from tflite_ort.base.json_text import written
from tflite_ort.bundles import Bundle
from tflite_ort.export.bundle import export_bundle
from tflite_ort.generation.metadata import LanguageMetadata, Token, language_metadata
from tflite_ort.generation.vocabulary import HUGGING_FACE, SENTENCEPIECE, tokenizer_json
from tflite_ort.schema.file.budgets import DEFAULT

GENERATION = "generation.json"
TOKENIZER_JSON, TOKENIZER_MODEL = "tokenizer.json", "tokenizer.model"


def is_language_model(bundle: Bundle) -> bool:
    """Whether a bundle has a tokenizer and models."""
    return bool(bundle.models) and any(
        entry.kind in (HUGGING_FACE, SENTENCEPIECE) for entry in bundle.entries
    )


def export_language_model(bundle: Bundle, folder: str | os.PathLike[str], **options: Any) -> Path:
    """Write what is in a bundle, as `export_bundle`, and beside it ``tokenizer.json`` or
    ``tokenizer.model``, and ``generation.json``: template, start and stop tokens, sampler, caches.

    Args:
        folder: where to; made where it is not there.
        options: of `export_onnx`, for every model.

    Returns:
        The path of ``bundle.json``.

    Raises:
        ExportError: as `export_bundle`.
        MalformedBundle: an entry is damaged.
        OSError: a file cannot be written.
    """
    index, target = export_bundle(bundle, folder, **options), Path(folder)
    said = generation_row(language_metadata(bundle))
    for entry in bundle.entries:
        if entry.kind == HUGGING_FACE:
            budgets = options.get("budgets") or DEFAULT
            content = tokenizer_json(bytes(bundle.content(entry.name)), budgets)
            write_bytes(target / TOKENIZER_JSON, content)
        elif entry.kind == SENTENCEPIECE:
            write_bytes(target / TOKENIZER_MODEL, bundle.content(entry.name))
    write_text(target / GENERATION, written(said, indent=2) + "\n")
    return index


def generation_row(metadata: LanguageMetadata) -> dict[str, Any]:
    """What a bundle says of generating, as JSON; tokens are texts or lists of numbers."""
    sampling = metadata.sampling
    return {
        "model_type": metadata.model_type,
        "template": metadata.template,
        "affixes": {role: list(pair) for role, pair in metadata.affixes.items()},
        "start": None if metadata.start is None else _token(metadata.start),
        "stops": [_token(stop) for stop in metadata.stops],
        "suppressed": list(metadata.suppressed),
        "most_tokens": metadata.most_tokens,
        "sampling": sampling
        and {
            "temperature": sampling.temperature,
            "top_k": sampling.top_k,
            "top_p": sampling.top_p,
            "seed": sampling.seed,
        },
        "caches": [
            {"input": state.names[0], "output": state.names[1], "axis": state.axis}
            for state in metadata.states
        ],
    }


def _token(token: Token) -> str | list[int]:
    return list(token.ids) or token.text
