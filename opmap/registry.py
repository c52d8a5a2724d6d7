"""The registries of translators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tflite_ort.opmap.graph import Graph
from tflite_ort.schema import OperatorView
from tflite_ort.versioning.registry import Registry

Translator = Callable[[OperatorView[Any], Graph], None]

translator: Registry[Translator] = Registry("translator", "tflite_ort.opmap")
# The translators of well-known custom operators, by name.
custom_translator: Registry[Translator] = Registry("translator", "tflite_ort.opmap")
