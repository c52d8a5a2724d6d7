"""What rules on nodes are told in tests."""

from __future__ import annotations

from tflite_ort.base.records import replace
from tflite_ort.opmap.graph import Target
from tflite_ort.opmap.onnx_graph.constants import Constants
from tflite_ort.opmap.rules.rule import NodesAround

AROUND = NodesAround(Target(cpu_kernels=True), Constants())
# On a processor that adds products of bytes in pairs.
PAIRED = replace(AROUND, multiplies_in_pairs=lambda: True)
