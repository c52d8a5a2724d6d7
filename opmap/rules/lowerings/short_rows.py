"""RFFT2D of short rows as a product with the waves, and of long ones left to numpy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.idioms.fourier import BY_PRODUCT
from tflite_ort.opmap.idioms.movement import integers
from tflite_ort.opmap.rules.rule import Rest, View
from tflite_ort.opmap.signal import rows_by_product, transform
from tflite_ort.schema import Untranslatable
from tflite_ort.schema.values.sizes import has_zero, may_differ


def short_rows(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """RFFT2D of rows that are neither cropped nor extended.

    Raises:
        Untranslatable: numpy transforms rows of this length faster.
    """
    input = op["input"]
    if not op["fft_length"].is_constant or has_zero(*input.shape):
        return ()
    height, width = integers(op["fft_length"])
    if g.target.fallback and max(height, width) > BY_PRODUCT:
        raise Untranslatable("numpy transforms long rows faster, in float64")
    if width > BY_PRODUCT or may_differ(input.shape[-1:], (width,)):
        return ()
    return [Lowering("product", {}, partial(transform, op, g, rows_by_product))]
