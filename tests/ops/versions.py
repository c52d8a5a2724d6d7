"""The versions of an operator that LiteRT registers, found by loading a model of each version."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ai_edge_litert.interpreter import Interpreter

from tests.one_op import Case
from tflite_ort.fallback_kernels import kernel
from tflite_ort.opmap import translator
from tflite_ort.schema import Op

_BEYOND_ALL = 14


def one_per_operator(cases: Iterable[Case]) -> list[Case]:
    """The first row of each operator."""
    first: dict[Op, Case] = {}
    for case in cases:
        first.setdefault(case.op, case)
    return list(first.values())


def check_versions(case: Case) -> None:
    """Translator and kernel declare exactly the versions that LiteRT loads."""
    known = [version for version in range(1, _BEYOND_ALL) if _loads(case, version)]
    assert translator.versions(case.op) == known
    assert kernel.versions(case.op) == known


def _loads(case: Case, version: int) -> bool:
    try:
        Interpreter(model_content=replace(case, version=version).model())
    except ValueError:
        return False
    return True
