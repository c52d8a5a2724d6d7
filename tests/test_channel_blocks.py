"""DepthToSpace for PyTorch, whose blocks are behind channels."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests.one_op import T, one_op_model
from tests.test_presets import session
from tflite_ort import export_onnx
from tflite_ort.export.inferred import inferred
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.serialization import serialized
from tflite_ort.opmap.onnx_graph.writing.channel_blocks import blocks_behind_channels
from tflite_ort.schema import DepthToSpaceOptions, Op


@pytest.mark.parametrize("mode", ["DCR", "CRD", None])
@pytest.mark.parametrize(("size", "channels"), [(2, 12), (3, 9), (2, 4)])
def test_results_are_the_same(mode: str | None, size: int, channels: int) -> None:
    numbers = np.arange(2 * channels * 6, dtype=np.float32).reshape(2, channels, 2, 3)
    results = []
    for is_changed in (False, True):
        x = ir.Value("x", dtype=ir.DataType.FLOAT, shape=numbers.shape)
        y = ir.Value("y", dtype=ir.DataType.FLOAT)
        attributes = {"blocksize": size} | ({"mode": mode} if mode else {})
        graph = ir.Graph([x], [y], [ir.Node("DepthToSpace", [x], [y], attributes=attributes)])
        model = ir.Model(graph, opset_imports={"": 17}, ir_version=8)
        if is_changed:
            blocks_behind_channels(graph, inferred(model))
            assert graph.nodes[-1].attributes["mode"] == "CRD"
        proto = onnx.load_model_from_string(serialized(model))
        results.append(session(proto).run(None, {"x": numbers})[0])
    np.testing.assert_array_equal(*results)


def test_pytorch_and_core_ml_get_them() -> None:
    options = DepthToSpaceOptions(block_size=2)
    content = one_op_model(Op.DEPTH_TO_SPACE, [T((1, 3, 4, 12))], [T((1, 6, 8, 3))], options)
    for name in ("torch", "coreml"):
        model = export_onnx(content, for_=name, check=True)
        for node in model.graph.node:
            modes = [each.s for each in node.attribute if each.name == "mode"]
            assert node.op_type != "DepthToSpace" or modes == [b"CRD"]
