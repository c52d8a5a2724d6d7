"""Our ONNX bytes are those that the onnx package writes for the same model."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from tflite_ort.opmap import OPSET
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.serialization import Place, serialized

_D = ir.DataType


def model_of(graph: ir.Graph) -> ir.Model:
    return ir.Model(graph, opset_imports={"": OPSET}, producer_name="test")


def read(content: bytes) -> onnx.ModelProto:
    """The model that onnx reads; it writes the same bytes again."""
    proto = onnx.load_model_from_string(content)
    assert proto.SerializeToString() == content
    return proto


def attributes_read(**attributes: Any) -> list[onnx.AttributeProto]:
    x, y = ir.Value("x", dtype=_D.FLOAT, shape=()), ir.Value("y", dtype=_D.FLOAT)
    graph = ir.Graph([x], [y], [ir.Node("Op", [x], [y], attributes=attributes)])
    return list(read(serialized(model_of(graph))).graph.node[0].attribute)


VALUES = {
    "zero": 0,
    "int": 300,
    "negative": -1,
    "lowest": -(2**63),
    "highest": 2**63 - 1,
    "true": True,
    "type": _D.INT8,
    "float": 0.1,
    "infinity": float("-inf"),
    "text": "naïve",
    "no text": "",
    "ints": [0, -3, 2**40],
    "floats": [0.5, -0.0],
    "texts": ["a", "", "ß"],
    "none": [],
}


@pytest.mark.parametrize("name", VALUES)
def test_an_attribute_is_what_onnx_makes_of_the_value(name: str) -> None:
    value = VALUES[name]
    (got,) = attributes_read(key=value)
    kind = onnx.AttributeProto.INTS if value == [] else None
    assert got == onnx.helper.make_attribute("key", value, attr_type=kind)


def test_a_tensor_is_an_attribute_without_a_name() -> None:
    array = np.arange(3, dtype=np.uint8)
    (got,) = attributes_read(key=ir.Tensor(array))
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(got.t), array)


@pytest.mark.parametrize("value", [[1, 2.0], ["a", 1]])
def test_a_list_of_several_types_is_no_attribute(value: list[Any]) -> None:
    with pytest.raises(TypeError, match="several types"):
        attributes_read(key=value)


@pytest.mark.parametrize("dtype", [t for t in _D if t not in (_D.STRING, _D.INT4, _D.UINT4)])
@pytest.mark.parametrize("shape", [(), (0, 2), (3, 50)])
def test_a_constant_comes_back(dtype: ir.DataType, shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype.numpy())
    tensor = ir.Tensor(array)
    assert tensor.dtype is dtype
    (got,) = read(serialized(model_of(constants(tensor)))).graph.initializer
    assert got.name == "c0"
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(got), array)


def test_codes_of_4_bits_and_strings_come_back() -> None:
    words = np.array([b"\xff\0", b"", b"abc"], np.object_)
    codes = ir.Tensor(np.array([0x21, 0x0F], np.uint8), _D.INT4, (1, 3))
    content = serialized(model_of(constants(codes, ir.Tensor(words))))
    packed, text = read(content).graph.initializer
    got = onnx.numpy_helper.to_array(packed)
    np.testing.assert_array_equal(got.astype(np.int8), [[1, 2, -1]])
    assert list(text.string_data) == list(words)


def constants(*tensors: ir.Tensor) -> ir.Graph:
    values = [
        ir.Value(f"c{i}", dtype=tensor.dtype, shape=tensor.shape, const_value=tensor)
        for i, tensor in enumerate(tensors)
    ]
    return ir.Graph([], [], [], initializers=values, name="constants")


def test_initializers_are_left_elsewhere_or_fed() -> None:
    graph = constants(*(ir.Tensor(np.full(200, i, np.float32)) for i in range(3)))
    content = serialized(model_of(graph), external={"c1": Place("file", 4096)}, fed=["c2"])
    proto = read(content)
    inline, external = proto.graph.initializer
    assert inline.raw_data and not external.raw_data
    place = {entry.key: entry.value for entry in external.external_data}
    assert place == {"location": "file", "offset": "4096", "length": "800"}
    assert external.data_location == onnx.TensorProto.EXTERNAL
    (fed,) = proto.graph.input
    assert fed == onnx.helper.make_tensor_value_info("c2", onnx.TensorProto.FLOAT, [200])


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_small_integers_take_few_bytes(dtype: type) -> None:
    limits = np.iinfo(dtype)
    arrays = [
        np.array(each, dtype).reshape(shape)
        for each, shape in (
            ([0], ()),
            ([1, 2, 127, 128], (4,)),
            ([limits.max, 0, 0, 0], (2, 2)),
            ([limits.min, -1], (2,)),
            ([], (0,)),
            ([3] * 80, (1, 80)),
        )
    ]
    graph = constants(*map(ir.Tensor, arrays))
    content, usual = (read(serialized(model_of(graph), small=small)) for small in (True, False))
    assert content.ByteSize() < usual.ByteSize()
    for before, held, array in zip(
        usual.graph.initializer, content.graph.initializer, arrays, strict=True
    ):
        assert held.ByteSize() <= before.ByteSize()
        np.testing.assert_array_equal(onnx.numpy_helper.to_array(held), array, strict=True)


def test_bodies_absent_inputs_domains_and_unknown_sizes() -> None:
    x = ir.Value("x", dtype=_D.FLOAT, shape=(1, "batch", None))
    inside, y, z = (ir.Value(name, dtype=_D.FLOAT) for name in ("inside", "y", "z"))
    body = ir.Graph([], [inside], [ir.Node("Neg", [x], [inside])], name="body")
    first = ir.Node("Clip", [x, None, x], [y], domain="own", attributes={"body": body}, name="n")
    model = model_of(ir.Graph([x], [z], [first, ir.Node("Neg", [y], [z])], name="g"))
    model.opset_imports["own"], model.metadata_props["b"] = 3, "2"
    model.metadata_props["a"] = "1"
    proto = read(serialized(model))
    node = proto.graph.node[0]
    assert (node.domain, node.name, list(node.input)) == ("own", "n", ["x", "", "x"])
    assert node.attribute[0].g.node[0].op_type == "Neg"
    sizes = proto.graph.input[0].type.tensor_type.shape.dim
    assert [size.WhichOneof("value") for size in sizes] == ["dim_value", "dim_param", None]
    assert [value.name for value in proto.graph.value_info] == ["y"]
    assert not proto.graph.output[0].type.tensor_type.HasField("shape")
    assert {each.domain: each.version for each in proto.opset_import} == {"": OPSET, "own": 3}
    assert [entry.key for entry in proto.metadata_props] == ["a", "b"]


def test_every_read_is_found_in_bodies_too() -> None:
    x, inside, y = (ir.Value(name) for name in ("x", "inside", "y"))
    body = ir.Graph([], [inside], [ir.Node("Add", [x, x], [inside])])
    graph = ir.Graph([x], [y], [ir.Node("If", [None], [y], attributes={"body": body})])
    found = [(v.name, node.op_type, place) for v, node, place in graph.reads()]
    assert found == [("x", "Add", 0), ("x", "Add", 1)]
    assert inside.producer() is body.nodes[0]


def test_a_type_that_onnx_lacks_is_named() -> None:
    with pytest.raises(TypeError, match="datetime64"):
        _D.from_numpy("datetime64[s]")
