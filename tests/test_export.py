"""What an exported file says, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import tflite_ort.export.form as export_module
from tests.models import model_path
from tests.one_op import Node, T, graph_model, one_op_model, ours
from tests.ops.operands import exported
from tflite_ort import ExportError, UnsupportedVersion, export_onnx
from tflite_ort.schema import (
    AddOptions,
    Conv2DOptions,
    FullyConnectedOptions,
    MulOptions,
    Op,
    Padding,
    ReshapeOptions,
    SqueezeOptions,
    TensorType,
    read_model,
    write_model,
)

MOBILENET_V2_INT8 = "coral__tf2_mobilenet_v2_1.0_224_ptq.tflite"


def convolution(channels: int = 4) -> bytes:
    rng = np.random.default_rng(0)
    return one_op_model(
        Op.CONV_2D,
        [
            T((1, 8, 8, 3)),
            T.constant(rng.normal(size=(channels, 3, 3, 3)).astype(np.float32)),
            T.constant(np.ones(channels, np.float32)),
        ],
        [T((1, 8, 8, channels))],
        Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1),
    )


def test_names_of_inputs_outputs_and_nodes() -> None:
    proto = export_onnx(convolution())
    assert [value.name for value in proto.graph.input] == ["in0"]
    assert [value.name for value in proto.graph.output] == ["out0"]
    assert "CONV_2D_0/Conv" in {node.name for node in proto.graph.node}
    assert {opset.domain: opset.version for opset in proto.opset_import} == {"": 21}


def test_names_that_repeat_or_are_empty_become_unique() -> None:
    model = read_model(
        graph_model(
            {name: T((2,)) for name in ("a", "b", "c")},
            [Node(Op.ADD, ["a", "b"], ["c"], AddOptions())],
            ["c"],
        )
    )
    graph = model.subgraphs[0]
    tensors = tuple(
        replace(tensor, name=name)
        for tensor, name in zip(graph.tensors, ("x", "x", ""), strict=True)
    )
    model = replace(model, subgraphs=(replace(graph, tensors=tensors),))
    proto = export_onnx(model)
    assert [value.name for value in proto.graph.input] == ["x", "x_1"]
    assert [value.name for value in proto.graph.output] == ["output_0"]
    onnx.checker.check_model(proto, full_check=True)


def test_metadata() -> None:
    model = read_model(model_path(MOBILENET_V2_INT8))
    proto = export_onnx(model)
    metadata = {entry.key: entry.value for entry in proto.metadata_props}
    assert proto.doc_string == model.description
    versions = json.loads(metadata["tflite.operator_versions"])
    later = {
        code.builtin_code.name: code.version for code in model.operator_codes if code.version > 1
    }
    assert versions == later
    assert versions["CONV_2D"] == 3
    assert metadata["tflite.min_runtime_version"].count(".") == 2


def test_an_input_that_is_an_output_too() -> None:
    model = graph_model(
        {"x": T((2,)), "y": T((2,)), "z": T((2,))},
        [Node(Op.ADD, ["x", "y"], ["z"], AddOptions())],
        ["x", "z", "z"],
    )
    proto = export_onnx(model)
    onnx.checker.check_model(proto, full_check=True)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    x, y = np.array([1, 2], np.float32), np.array([3, 5], np.float32)
    results = session.run(None, {"x": x, "y": y})
    for result, expected in zip(results, (x, x + y, x + y), strict=True):
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("weights", ["uint8", "int8"])
def test_type_of_weights(weights: str) -> None:
    proto = export_onnx(model_path("mlperf-tiny__kws_ref_model.tflite"), weights=weights)
    wanted = {"uint8": onnx.TensorProto.UINT8, "int8": onnx.TensorProto.INT8}[weights]
    kinds = {
        initializer.data_type
        for initializer in proto.graph.initializer
        if len(initializer.dims) in (2, 4) and initializer.data_type != onnx.TensorProto.FLOAT
    }
    assert kinds == {wanted}


def test_signed_weights_pass_the_check_on_every_cpu(tmp_path: Path) -> None:
    """Without VNNI, ONNX Runtime's default settings are 4 quanta off."""
    path = tmp_path / "signed.onnx"
    export_onnx(model_path(MOBILENET_V2_INT8), path, weights="int8", check=True)
    assert path.is_file()


@pytest.mark.parametrize("hybrid", ["auto", "float", "dynamic", "xnnpack"])
def test_a_file_is_checked_by_what_its_products_are(hybrid: str) -> None:
    """With "auto" the interpreter rounds such rows, and a file does not."""
    codes = np.random.default_rng(5).integers(-127, 128, (512, 512)).astype(np.int8)
    inputs = [T((3, 512)), T.constant(codes, scale=0.01)]
    model = one_op_model(
        Op.FULLY_CONNECTED, inputs, [T((3, 512))], FullyConnectedOptions(), version=9
    )
    export_onnx(model, hybrid=hybrid, check=True)


def test_layers_that_share_signed_weights_load_where_sums_are_to_be_exact() -> None:
    """As the heads of a detector do. Without VNNI, ONNX Runtime makes weights of its own, and
    fails where two layers read one initializer."""
    codes = np.random.default_rng(3).integers(-127, 128, (8, 3, 3, 8)).astype(np.int8)
    image, made = (T((1, 6, 6, 8), TensorType.INT8, scale, 3) for scale in (0.05, 1.7))
    tensors = {
        "x": image,
        "w": T.constant(codes, scale=0.01),
        "y": made,
        "z": made,
        "b": T.constant(np.arange(8, dtype=np.int32), scale=0.05 * 0.01),
        "c": T.constant(np.arange(8, dtype=np.int32), scale=1.7 * 0.01),
    }
    options = Conv2DOptions(stride_w=1, stride_h=1)
    nodes = [
        Node(Op.CONV_2D, ["x", "w", "b"], ["y"], options, 3),
        Node(Op.CONV_2D, ["y", "w", "c"], ["z"], options, 3),
    ]
    model = graph_model(tensors, nodes, ["z", "y"])
    proto = export_onnx(model, weights="int8", check=True)
    shapes = [tuple(each.dims) for each in proto.graph.initializer]
    assert shapes.count((8, 8, 3, 3)) == 2
    x = image.random(np.random.default_rng(4))
    for signed, unsigned in zip(
        exported(model, [x], weights="int8"), exported(model, [x]), strict=True
    ):
        np.testing.assert_array_equal(signed, unsigned)


def test_signed_and_unsigned_weights_agree() -> None:
    path = model_path(MOBILENET_V2_INT8)
    x = np.random.default_rng(0).integers(0, 256, (1, 224, 224, 3)).astype(np.uint8)
    results = []
    for weights in ("uint8", "int8"):
        options = onnxruntime.SessionOptions()
        # Signed weights saturate on CPUs without VNNI unless ONNX Runtime is told to be precise.
        options.add_session_config_entry("session.x64quantprecision", "1")
        proto = export_onnx(path, weights=weights)
        session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
        results.append(session.run(None, {session.get_inputs()[0].name: x})[0])
    np.testing.assert_array_equal(*results)


def test_a_refusal_says_what_to_do_instead() -> None:
    codes, roots = T((4,), TensorType.INT8, 0.5), T((4,), TensorType.INT8, 0.1)
    model = one_op_model(Op.SQRT, [codes], [roots])
    with pytest.raises(ExportError, match=r"negative\nInterpreter has numpy kernels for these"):
        export_onnx(model)
    assert ours(model, [np.ones(4, np.int8)])[1] == {"numpy"}


def test_other_input_shapes() -> None:
    proto = export_onnx(convolution(), input_shapes={"in0": (2, 16, 16, 3)})
    dims = proto.graph.output[0].type.tensor_type.shape.dim
    assert [dim.dim_value for dim in dims] == [2, 16, 16, 4]
    with pytest.raises(ExportError, match="no input 'nothing'; there are 'in0'"):
        export_onnx(convolution(), input_shapes={"nothing": (1,)})


def test_weights_beyond_the_limit_go_into_a_file_beside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = convolution(channels=64)
    monkeypatch.setattr(export_module, "_INLINE_LIMIT", 1000)
    with pytest.raises(ExportError, match="output path"):
        export_onnx(model)
    path = tmp_path / "model.onnx"
    export_onnx(model, path)
    assert (tmp_path / "model.onnx.data").stat().st_size >= 64 * 27 * 4
    x = np.random.default_rng(0).normal(size=(1, 8, 8, 3)).astype(np.float32)
    session = onnxruntime.InferenceSession(str(path))
    (expected,), _ = ours(model, [x])
    np.testing.assert_allclose(session.run(None, {"in0": x})[0], expected, atol=1e-5)


def test_all_refusals_come_at_once() -> None:
    tensors = {
        "x": T((2, 3)),
        "shape": T((2,), TensorType.INT32),
        "once": T((3, 2)),
        "squeezed": T((3, 2)),
        "scaled": T((2, 3)),
    }
    nodes = [
        Node(Op.RESHAPE, ["x", "shape"], ["once"], ReshapeOptions()),
        Node(Op.SQUEEZE, ["once"], ["squeezed"], SqueezeOptions()),
        Node(Op.MUL, ["squeezed", "x"], ["scaled"], MulOptions()),
    ]
    model = graph_model(tensors, nodes, ["scaled"])
    with pytest.raises(ExportError) as error:
        export_onnx(model)
    assert str(error.value).startswith("2 of 3 operators cannot be exported:")
    assert "SQUEEZE_1 version 1: a rank depends on data" in str(error.value)
    assert "MUL_2" in str(error.value)


def test_unknown_versions_and_bad_arguments() -> None:
    model = read_model(convolution())
    code = replace(model.operator_codes[0], version=99)
    with pytest.raises(UnsupportedVersion, match="CONV_2D"):
        export_onnx(write_model(replace(model, operator_codes=(code,))))
    with pytest.raises(ValueError, match="'int4'"):
        export_onnx(model, weights="int4")
