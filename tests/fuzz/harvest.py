"""The models that the tests of operators write, as seeds: the tests are collected, not judged.

``python -m tests.fuzz.harvest FILE`` runs them with everything that would run a model replaced, so
that each ends as soon as its models are written.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

import tests.one_op
import tests.oracle
import tests.subgraph_models
import tflite_ort
from tests.fuzz.corpus import MOST_BYTES, write_corpus
from tflite_ort.schema import builder

TESTS = Path(__file__).parents[1]
SOURCES = (
    "ops",
    "test_programs.py",
    "test_state.py",
    "test_random_networks.py",
    "test_networks.py",
)
# Where a test that runs a model would begin to.
_RUNNERS = (
    (tests.oracle, ("litert", "litert_interpreter")),
    (tests.one_op, ("litert", "ours")),
    (tests.subgraph_models, ("litert_interpreter", "invoked", "check_invokes")),
    (tflite_ort, ("Interpreter", "export_onnx")),
)


def _stop(*_: Any, **__: Any) -> NoReturn:
    pytest.skip("its models are written")


def _check(case: tests.one_op.Case, seed: int = 0) -> None:
    case.model()


def recording(write: Callable[..., bytes], found: set[bytes]) -> Callable[..., bytes]:
    """`write`, which also adds small models to `found`."""

    def recorded(*arguments: Any, **options: Any) -> bytes:
        content = write(*arguments, **options)
        if len(content) <= MOST_BYTES:
            found.add(content)
        return content

    return recorded


def harvest() -> set[bytes]:
    """The models of at most `MOST_BYTES` that the tests write."""
    found: set[bytes] = set()
    builder.write_model = recording(builder.write_model, found)  # type: ignore[attr-defined]
    for module, names in _RUNNERS:
        for name in names:
            setattr(module, name, _stop)
    tests.one_op.check = _check
    where = [str(TESTS / name) for name in SOURCES]
    pytest.main(["-q", "--tb=no", "--no-header", "-p", "no:cacheprovider", "-W", "ignore", *where])
    return found


if __name__ == "__main__":
    write_corpus(Path(sys.argv[1]), harvest())
