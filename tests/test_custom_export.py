"""Custom operators in exported files: nodes of a domain of their own, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from tests.one_op import Node, T, graph_model
from tests.ops.custom_op import custom_model
from tests.registered import (
    ONE,
    Recorder,
    doubling_until_a_hundred,
    resolver_of,
    translated_double,
)
from tflite_ort import ExportError, Registration, UnresolvedOperator, export_onnx
from tflite_ort.schema import AddOptions, Op, TensorType


def node_of(options: Any, **tensor: Any) -> tuple[onnx.ModelProto, onnx.NodeProto]:
    t = T((3,), **tensor)
    exported = export_onnx(custom_model("Own", [t], [t], options), custom_ops="domain")
    onnx.checker.check_model(exported)
    (node,) = [node for node in exported.graph.node if node.domain]
    return exported, node


def test_a_custom_operator_is_exported_as_a_node_of_its_domain() -> None:
    options = {
        "axis": 2,
        "scale": 0.5,
        "name": "x",
        "on": True,
        "sizes": [1, 2],
        "means": [0.5, 1.5],
        "labels": ["a", "b"],
        "table": b"\x00\xff",
    }
    exported, node = node_of(options)
    assert (node.domain, node.op_type) == ("tflite.custom", "Own")
    assert {entry.domain: entry.version for entry in exported.opset_import}["tflite.custom"] == 1
    found = {field.name: onnx.helper.get_attribute_value(field) for field in node.attribute}
    assert onnx.numpy_helper.to_array(found.pop("table")).tobytes() == b"\x00\xff"
    assert found == {
        "axis": 2,
        "scale": 0.5,
        "name": b"x",
        "on": 1,
        "sizes": [1, 2],
        "means": [0.5, 1.5],
        "labels": [b"a", b"b"],
    }


@pytest.mark.parametrize(
    "options", [b"\x07\x00\x00", {"nested": {"a": 1}}, {"mixed": [1, "a"]}, {"": 1}]
)
def test_options_that_are_no_attributes_are_one_tensor_of_bytes(options: Any) -> None:
    _, node = node_of(options)
    (field,) = node.attribute
    model = custom_model("Own", [T((3,))], [T((3,))], options)
    stored = onnx.numpy_helper.to_array(field.t).tobytes()
    assert field.name == "custom_options"
    assert stored
    assert stored in model


def test_codes_reach_the_custom_node_as_the_file_has_them() -> None:
    exported, _ = node_of(b"", type=TensorType.INT8, scale=0.5, zero_point=3)
    (output,) = exported.graph.output
    assert output.type.tensor_type.elem_type == onnx.TensorProto.INT8
    assert output.type.tensor_type.shape.dim[0].dim_value == 3
    assert [node.op_type for node in exported.graph.node] == ["Own"]


def test_results_between_operators_have_types_and_shapes() -> None:
    nodes = [
        Node("Own", ["x"], ["y"]),
        Node(Op.ADD, ["y", "y"], ["z"], AddOptions()),
    ]
    model = graph_model({name: T((3,)) for name in "xyz"}, nodes, ["z"])
    exported = export_onnx(model, custom_ops="domain")
    made = {value.name: value.type.tensor_type for value in exported.graph.value_info}
    (name,) = exported.graph.node[0].output
    assert made[name].elem_type == onnx.TensorProto.FLOAT
    assert [dim.dim_value for dim in made[name].shape.dim] == [3]


def test_a_custom_operator_in_the_body_of_a_loop_is_exported() -> None:
    exported = export_onnx(doubling_until_a_hundred(), custom_ops="domain")
    (loop,) = (node for node in exported.graph.node if node.op_type == "Loop")
    (body,) = (field.g for field in loop.attribute if field.name == "body")
    assert ("tflite.custom", "Own") in {(node.domain, node.op_type) for node in body.node}
    onnx.checker.check_model(exported)


def test_an_operator_that_translates_is_no_custom_node() -> None:
    resolver = resolver_of(Registration(translated_double))
    exported = export_onnx(ONE, resolver=resolver, custom_ops="domain")
    assert [node.domain for node in exported.graph.node] == [""]


def test_without_a_domain_all_that_cannot_be_exported_is_listed() -> None:
    nodes = [
        Node("Own", ["x"], ["y"]),
        Node("Other", ["y"], ["z"]),
    ]
    model = graph_model({name: T((3,)) for name in "xyz"}, nodes, ["z"])
    with pytest.raises(UnresolvedOperator, match=r"(?s)'Own'.*'Other'"):
        export_onnx(model)
    resolver = resolver_of(Registration(function=np.sqrt))
    resolver.add_custom("Other", Registration(kernel=Recorder()))
    with pytest.raises(ExportError, match=r"(?s)2 of 2 .*Own_0.*Other_1.*custom_ops='domain'"):
        export_onnx(model, resolver=resolver)
    exported = export_onnx(model, resolver=resolver, custom_ops="domain")
    assert [node.op_type for node in exported.graph.node] == ["Own", "Other"]
    with pytest.raises(ValueError, match="custom_ops must be 'domain' or None"):
        export_onnx(model, custom_ops="all")
