"""Bundles whose answers can be foretold: the next token is the sum of all tokens so far."""

from __future__ import annotations

import json
import os
import string
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tests.made_bundles import litertlm
from tflite_ort.base.optional import optional_module
from tflite_ort.schema import (
    AddOptions,
    CastOptions,
    ModelBuilder,
    MulOptions,
    Op,
    PackOptions,
    ReducerOptions,
    SubOptions,
    TensorType,
)
from tflite_ort.schema.builder import SubgraphBuilder

# One token a letter, and five more.
LETTERS = string.ascii_lowercase + ".!? \n"
SIZE = len(LETTERS)
INT32, BOOL = TensorType.INT32, TensorType.BOOL


def library(name: str) -> Any:
    """A package of the extra ``llm``. Without it the test fails in CI and is skipped elsewhere."""
    module = optional_module(name)
    if module is None:
        if os.environ.get("CI"):
            raise ModuleNotFoundError(f"{name} is needed under CI")
        pytest.skip(f"{name} is not installed")
    return module


def numbers(text: str) -> list[int]:
    """The tokens of a text."""
    return [LETTERS.index(letter) for letter in text]


def foretold(prompt: str, count: int) -> str:
    """The next letters."""
    tokens = numbers(prompt)
    for _ in range(count):
        tokens.append(sum(tokens) % SIZE)
    return "".join(LETTERS[token] for token in tokens[len(prompt) :])


def summing_model(
    capacity: int = 24, lengths: Sequence[int] = (4, 8), *, embedded: bool = False
) -> bytes:
    """Signatures ``decode`` and ``prefill_L``, with a mask and a cache of the tokens themselves.

    Args:
        embedded: the input is a row of numbers that another model makes of each token.
    """
    builder = ModelBuilder()
    for length in (1, *lengths):
        graph = builder.subgraph().tensor("kv_cache_k_0", (1, capacity))
        _rows(graph, length, embedded=embedded)
        graph.tensor("input_pos", (length,), INT32).tensor("mask", (1, 1, length, capacity), BOOL)
        graph.constant("0", np.int32(0)).constant("[0]", np.int32([0])).constant(
            "[1]", np.int32([1])
        )
        graph.tensor("first", (1,), INT32).tensor("scalar", (), INT32).tensor("start", (2,), INT32)
        graph.operator(Op.SLICE, ["input_pos", "[0]", "[1]"], ["first"])
        graph.constant("[]", np.zeros(0, np.int32))
        graph.operator(Op.RESHAPE, ["first", "[]"], ["scalar"])
        graph.operator(Op.PACK, ["0", "scalar"], ["start"], PackOptions(values_count=2, axis=0))
        graph.tensor("cache", (1, capacity))
        graph.operator(Op.DYNAMIC_UPDATE_SLICE, ["kv_cache_k_0", "rows", "start"], ["cache"])
        outputs = {"kv_cache_k_0": "cache"}
        if length == 1:
            outputs["logits"] = _logits(graph, capacity)
        names = ["embeddings" if embedded else "tokens", "input_pos", "mask", "kv_cache_k_0"]
        graph.inputs(*names).outputs(*outputs.values())
        key = "decode" if length == 1 else f"prefill_{length}"
        graph.signature(key, inputs={name: name for name in names}, outputs=outputs)
    return builder.write()


def _rows(graph: SubgraphBuilder, length: int, *, embedded: bool) -> None:
    """The numbers of the tokens, float32 [1, length]."""
    if embedded:  # twice the number, in two parts
        graph.tensor("embeddings", (1, length, 2)).constant("2", np.int32([2]))
        graph.tensor("rows", (1, length))
        graph.operator(Op.SUM, ["embeddings", "2"], ["rows"], ReducerOptions())
        return
    graph.tensor("tokens", (1, length), INT32).tensor("rows", (1, length))
    graph.operator(Op.CAST, ["tokens"], ["rows"], CastOptions(INT32, TensorType.FLOAT32))


def _logits(graph: SubgraphBuilder, capacity: int) -> str:
    """The largest one is that of the sum of what the mask shows."""
    graph.tensor("seen", (1, 1, 1, capacity)).tensor("shown", (1, 1, 1, capacity))
    graph.operator(Op.CAST, ["mask"], ["seen"], CastOptions(BOOL, TensorType.FLOAT32))
    graph.operator(Op.MUL, ["cache", "seen"], ["shown"], MulOptions())
    graph.constant("3", np.int32([3])).tensor("sum", (1, 1, 1)).tensor("next", (1, 1, 1))
    graph.operator(Op.SUM, ["shown", "3"], ["sum"], ReducerOptions())
    graph.constant("size", np.float32(SIZE)).operator(Op.FLOOR_MOD, ["sum", "size"], ["next"])
    graph.constant("each", np.arange(SIZE, dtype=np.float32).reshape(1, 1, SIZE))
    for name in ("off", "far", "logits"):
        graph.tensor(name, (1, 1, SIZE))
    graph.operator(Op.SUB, ["each", "next"], ["off"], SubOptions())
    graph.operator(Op.ABS, ["off"], ["far"]).operator(Op.NEG, ["far"], ["logits"])
    return "logits"


def embedding_model() -> bytes:
    """Signatures that make of each token the row [token - 1, 1]."""
    builder = ModelBuilder()
    for length in (1, 3):
        graph = builder.subgraph().tensor("token_ids", (1, length), INT32)
        graph.tensor("numbers", (1, length)).tensor("column", (1, length, 1))
        graph.operator(Op.CAST, ["token_ids"], ["numbers"], CastOptions(INT32, TensorType.FLOAT32))
        graph.constant("shape", np.int32([1, length, 1]))
        graph.operator(Op.RESHAPE, ["numbers", "shape"], ["column"])
        graph.constant("one", np.float32([-1, 1])).constant("mask", np.float32([1, 0]))
        graph.tensor("both", (1, length, 2)).tensor("embeddings", (1, length, 2))
        graph.operator(Op.MUL, ["column", "mask"], ["both"], MulOptions())
        graph.operator(Op.ADD, ["both", "one"], ["embeddings"], AddOptions())
        graph.inputs("token_ids").outputs("embeddings").signature(f"embed_{length}")
    return builder.write()


def hugging_face() -> bytes:
    """The section of a tokenizer with a token for each letter."""
    vocabulary = {letter: number for number, letter in enumerate(LETTERS)}
    content = json.dumps(
        {
            "version": "1.0",
            "added_tokens": [],
            "pre_tokenizer": {
                "type": "Split",
                "pattern": {"String": ""},
                "behavior": "Isolated",
                "invert": False,
            },
            "decoder": {"type": "Fuse"},
            "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "?"},
        }
    ).encode()
    return struct.pack("<Q", len(content)) + zlib.compress(content)


def field(number: int, value: int | float | bytes | str) -> bytes:
    """A field of a protocol buffer."""
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    parts = []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def llm_metadata(
    *, start: str = "", stops: Sequence[str] = (), template: str = "", rest: bytes = b""
) -> bytes:
    """The section that says how to generate."""
    content = field(1, field(2, start)) if start else b""
    content += b"".join(field(2, field(2, stop)) for stop in stops)
    return content + (field(7, template) if template else b"") + rest


def bundle(
    model: bytes | None = None,
    metadata: bytes = b"",
    tokenizer: tuple[int, bytes] | None = None,
    others: Mapping[str, bytes] | None = None,
) -> bytes:
    """A ``.litertlm``.

    Args:
        tokenizer: type and content of its section.
        others: by type, further models.
    """
    main = {"model_type": "tf_lite_prefill_decode"}
    sections: list[tuple[int, bytes, Mapping[str, str]]] = [(5, metadata, {})]
    sections.append((*(tokenizer or (6, hugging_face())), {}))
    sections.append((3, summing_model() if model is None else model, main))
    sections += [(3, content, {"model_type": kind}) for kind, content in (others or {}).items()]
    return litertlm(sections)
