"""The ONNX graph under construction, and the forms in which a tensor stands in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tflite_ort.base.optional import late_names

if TYPE_CHECKING:
    from tflite_ort.opmap.graph.forms import Domain as Domain
    from tflite_ort.opmap.graph.forms import Layout as Layout
    from tflite_ort.opmap.graph.forms import Target as Target
    from tflite_ort.opmap.graph.graph import Graph as Graph

_FORMS = dict.fromkeys(("Domain", "Layout", "Target"), f"{__name__}.forms")
__getattr__ = late_names(__name__, {**_FORMS, "Graph": f"{__name__}.graph"})
