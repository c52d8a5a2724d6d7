"""TFLite operators as ONNX nodes: one translator per operator, grouped in families."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tflite_ort.base.optional import late_names

if TYPE_CHECKING:
    from tflite_ort.opmap.graph import Domain as Domain
    from tflite_ort.opmap.graph import Graph as Graph
    from tflite_ort.opmap.graph import Layout as Layout
    from tflite_ort.opmap.graph import Target as Target
    from tflite_ort.opmap.registry import Translator as Translator
    from tflite_ort.opmap.registry import custom_translator as custom_translator
    from tflite_ort.opmap.registry import translator as translator
    from tflite_ort.opmap.rules.lowering import OPSET as OPSET
    from tflite_ort.opmap.rules.lowering import PORTABLE as PORTABLE
    from tflite_ort.opmap.rules.lowering import Lowered as Lowered
    from tflite_ort.opmap.rules.lowering import lower as lower

# By module, the names that come from it when they are first used: the same as above.
_NAMES = {
    "graph": "Domain Graph Layout Target",
    "rules.lowering": "OPSET PORTABLE Lowered lower",
    "registry": "Translator custom_translator translator",
}
_MODULES = {
    name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names.split()
}

__getattr__ = late_names(__name__, _MODULES)
__all__ = sorted(_MODULES)
