"""Sessions of small tensors: memory is not used again within a run."""

from __future__ import annotations

import itertools
from typing import Any
from unittest.mock import patch

import onnxruntime
import pytest

from benchmarks.invoke_overhead import one_add
from tests.one_op import Node, T, graph_model
from tests.optimised import try_processor
from tests.rules.test_cached_attention import Layer
from tflite_ort import Interpreter
from tflite_ort.providers.settings import Settings
from tflite_ort.schema import Op


def reuses(model: bytes) -> list[bool]:
    """Whether the sessions of a model use memory again."""
    try_processor()
    made: list[Any] = []
    plain = onnxruntime.SessionOptions

    def noted() -> onnxruntime.SessionOptions:
        made.append(plain())
        return made[-1]

    with (
        patch.object(onnxruntime, "SessionOptions", noted),
        patch.object(Settings, "shared_options", Settings.options),
    ):
        Interpreter(model_content=model, cache=False).allocate_tensors()
    return [options.enable_mem_reuse for options in made]


def negated(elements: int, ops: int) -> bytes:
    """A chain of NEG."""
    names = [f"x{number}" for number in range(ops + 1)]
    nodes = [Node(Op.NEG, [a], [b]) for a, b in itertools.pairwise(names)]
    return graph_model({name: T((elements,)) for name in names}, nodes, names[-1:])


@pytest.mark.parametrize(("elements", "reused"), [(1 << 12, False), (1 << 20, True)])
def test_memory_is_used_again_where_there_is_much(elements: int, reused: bool) -> None:
    assert reuses(negated(elements, 2)) == [reused]


@pytest.mark.parametrize(("tokens", "reused"), [(2048, False), (16384, True)])
def test_what_is_cut_out_of_caches_is_counted(tokens: int, reused: bool) -> None:
    """Two caches of two heads of 32 numbers."""
    assert reuses(Layer(tokens=tokens).content()) == [reused]


def test_what_leaves_a_session_is_not_in_its_memory() -> None:
    assert reuses(one_add((1, 1 << 20))) == [False]
