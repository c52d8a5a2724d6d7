"""Bundles whose inputs are of another type or size than those of their role."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.generation.models import bundle, embedding_model, field, summing_model
from tflite_ort.base.records import replace
from tflite_ort.generation import LanguageModel, generate
from tflite_ort.generation.errors import GenerationError
from tflite_ort.generation.network import _own_sizes
from tflite_ort.generation.signature_roles import mask_of
from tflite_ort.schema import TensorType, read_model, write_model


def changed(content: bytes, name: str, **fields: Any) -> bytes:
    """A model whose tensors of this name are others."""
    model = read_model(content)
    graphs = [
        replace(
            graph,
            tensors=tuple(
                replace(each, **fields) if each.name == name else each for each in graph.tensors
            ),
        )
        for graph in model.subgraphs
    ]
    return write_model(replace(model, subgraphs=tuple(graphs)))


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("mask", {"type": TensorType.INT8}),
        ("mask", {"type": TensorType.STRING}),
        ("mask", {"shape": (24,)}),
        ("tokens", {"shape": (1, 0)}),
        ("tokens", {"type": TensorType.BOOL}),
        ("tokens", {"type": TensorType.STRING}),
        ("input_pos", {"shape": (0,)}),
        ("input_pos", {"shape": (5,)}),
    ],
)
def test_inputs_that_do_not_fit_their_role(name: str, fields: Mapping[str, Any]) -> None:
    with pytest.raises(GenerationError, match=f"'{name}' of|'tokens' of"):
        LanguageModel(bundle(changed(summing_model(), name, **fields)))


@pytest.mark.parametrize(
    "fields", [{"shape": (1, 0)}, {"type": TensorType.BOOL}, {"type": TensorType.STRING}]
)
def test_embedders_that_take_no_tokens(fields: Mapping[str, Any]) -> None:
    embedder = changed(embedding_model(), "token_ids", **fields)
    others = {"tf_lite_embedder": embedder}
    with pytest.raises(GenerationError, match="embedder's signature"):
        LanguageModel(bundle(summing_model(embedded=True), others=others))


@pytest.mark.parametrize("embedded", [False, True])
@pytest.mark.parametrize("number", [2**40, 2**64 - 3])
def test_a_start_token_that_is_no_number_of_the_input(number: int, embedded: bool) -> None:
    start = field(1, field(1, field(1, number)))
    others = {"tf_lite_embedder": embedding_model()} if embedded else None
    content = bundle(summing_model(embedded=embedded), start, others=others)
    with pytest.raises(GenerationError, match=f"token {number} is none"):
        generate(content, "b", template=False, max_tokens=1)


def test_masks_of_bfloat16_hide_as_those_of_other_floats() -> None:
    found = mask_of({"shape": (1, 1, 2, 4), "dtype": ml_dtypes.bfloat16}, 1, 2, 0)
    assert found.dtype == ml_dtypes.bfloat16
    assert (found[0, 0] == 0).tolist() == [[True, True, False, False], [True, True, True, False]]
    assert np.isfinite(found.astype(np.float32)).all() and found[0, 0, 0, 3] < -1e38


def test_the_length_of_caches_is_that_in_which_they_differ() -> None:
    """Not the size of a head, which may be the same number."""
    shapes = {"decode_1": {"k": (1, 4, 256, 1280)}, "decode_2": {"k": (1, 4, 256, 4096)}}
    assert [_own_sizes(key, shapes) for key in shapes] == [{1280}, {4096}]
    shapes["decode_3"] = {"k": (1, 4, 256, 256)}
    assert _own_sizes("decode_3", shapes) == {256}
    assert _own_sizes("decode", {"decode": {"k": (1, 2, 3)}}) == {1, 2, 3}
