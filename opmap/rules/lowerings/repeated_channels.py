"""Depthwise convolutions that make several channels of each one, over an image that has it as many
times: with fewer groups than output channels ONNX Runtime is slow, by a factor of up to 100 with
codes, except for a single group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflite_ort.base.records import replace
from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.rules.operators.wide_channels import with_inputs
from tflite_ort.opmap.rules.rule import Rest, View


def repeated_channels(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """DEPTHWISE_CONV_2D over an image with every channel repeated."""
    input, outputs = op["input"], op["filter"].shape[3]
    channels = input.shape[3]
    if not 1 < channels < outputs:
        return ()

    def build() -> None:
        sources = g.constant(np.arange(channels).repeat(outputs // channels))
        image = g.read(input, layout=Layout.FIRST, domain=Domain.STORED)
        image = g.op("Gather", image, sources, axis=1)
        repeated = replace(input, index=g.fresh_index(), shape=(*input.shape[:3], outputs))
        g.write(repeated, image, layout=Layout.FIRST, domain=Domain.STORED)
        rest(with_inputs(op, input=repeated))

    return [Lowering("repeated", {}, build)]
