"""Lowering with the table of patterns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tflite_ort.opmap.graph import lowering
from tflite_ort.opmap.graph.forms import Target
from tflite_ort.opmap.graph.lowering import PORTABLE, Lowered
from tflite_ort.opmap.patterns.groups import groups
from tflite_ort.opmap.registry import Translator
from tflite_ort.optional import late
from tflite_ort.schema import Op, OperatorView, TensorView
from tflite_ort.versioning.registry import Registry

if TYPE_CHECKING:
    from tflite_ort.opmap.patterns import reordered_weights, unread_rows
else:
    reordered_weights = late("tflite_ort.opmap.patterns.reordered_weights")
    unread_rows = late("tflite_ort.opmap.patterns.unread_rows")

_SLICES = {Op.SLICE, Op.STRIDED_SLICE}


def lower(
    operators: Sequence[OperatorView[Any]],
    inputs: Sequence[TensorView],
    outputs: Sequence[TensorView],
    registry: Registry[Translator],
    *,
    target: Target = PORTABLE,
    name: str = "main",
) -> Lowered:
    """Translate operators into one graph as `tflite_ort.opmap.graph.lowering.lower`, those that
    match a pattern as one group. On the CPU, rows that nothing reads are not computed, and weights
    are reordered for rows that would be moved."""
    further: dict[str, Any] = {"target": target, "name": name, "grouping": groups}
    if target.block and {Op.TRANSPOSE, Op.FULLY_CONNECTED} <= {op.op for op in operators}:
        operators = reordered_weights.with_reordered_weights(operators, registry)
    if target.cpu_kernels and any(op.op in _SLICES for op in operators):
        found = unread_rows.without_unread_rows(operators, outputs, registry)
        operators, further["cuts"] = found.operators, found.cuts
    return lowering.lower(operators, inputs, outputs, registry, **further)
