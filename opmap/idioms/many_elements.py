"""Large arrays whose nodes would hold several wide ones at once."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_ort.opmap.graph import Graph
from tflite_ort.schema import Untranslatable
from tflite_ort.schema.values.sizes import known_product

# A node computes a whole array before the next one starts; numpy kernels go through it in parts.
_MOST = 1 << 23


def leave_many_to_numpy(g: Graph, shape: Sequence[int], what: str) -> None:
    """Refuses more elements than nodes should hold as wide numbers, where a numpy kernel is
    available."""
    if g.target.fallback and known_product(shape) > _MOST:
        raise Untranslatable(f"numpy needs less memory for many {what}")
