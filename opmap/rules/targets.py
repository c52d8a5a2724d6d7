"""What translators are told of a target: forms of a graph that ONNX Runtime runs faster."""

from __future__ import annotations

from tflite_ort.base.records import replace
from tflite_ort.opmap.graph import Target


def long_runs(target: Target) -> Target:
    """Constants that broadcast over the last axes are repeated: ONNX Runtime goes through both
    operands in runs, and a run takes 10 to 60 ns however short it is."""
    return replace(target, long_runs=True)


def channels_last(target: Target) -> Target:
    """Images of codes change their layout by Transposes, of which those of layers cancel."""
    return replace(target, channels_last=True)


def code_tables(target: Target) -> Target:
    """Codes become other codes by one lookup in a table."""
    return replace(target, code_tables=True)
