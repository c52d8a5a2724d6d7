"""Lowering with the table of patterns."""

from __future__ import annotations

from functools import partial

from tflite_ort.opmap.graph import lowering
from tflite_ort.opmap.patterns.groups import groups

# Translates operators into one graph: as `tflite_ort.opmap.graph.lowering.lower`, and those that
# match a pattern as one group.
lower = partial(lowering.lower, grouping=groups)
