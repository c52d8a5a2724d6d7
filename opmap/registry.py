"""The registries of translators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tflite_ort.opmap.graph import Graph
from tflite_ort.schema import OperatorView
from tflite_ort.schema.values.operators import FLEX
from tflite_ort.versioning.registry import Registry

Translator = Callable[[OperatorView[Any], Graph], None]

translator: Registry[Translator] = Registry("translator", "tflite_ort.opmap")
# The translators of well-known custom operators, by name.
custom_translator: Registry[Translator] = Registry("translator", "tflite_ort.opmap")


def flex_translator(*names: str) -> Callable[[Translator], Translator]:
    """Registers a function as the translator of TensorFlow's operators of these names."""

    def register(function: Translator) -> Translator:
        for name in names:
            custom_translator(FLEX + name, versions=(1, 1))(function)
        return function

    return register
