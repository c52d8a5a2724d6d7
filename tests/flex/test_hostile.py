"""Nodes of hostile files: each is read, or refused by an error that names the operator."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.flex.cases import cases_of, families
from tests.flex.nodes import declared_options, field, typed_attribute, varint, wrapped
from tflite_ort import BridgeError, Interpreter, ModelError
from tflite_ort.fallback_kernels.idioms.crossing import crossed
from tflite_ort.schema import KernelError, ModelBuilder, TensorType
from tflite_ort.schema.file.flex_table import flex_operator, names
from tflite_ort.schema.file.node_def import node_def
from tflite_ort.schema.values.flex import node_from
from tflite_ort.schema.values.view import Array

SEED = 43
TIMES = 20_000


def octets(options: bytes) -> Array:
    return np.frombuffer(options, np.uint8)


def examples() -> list[tuple[str, bytes]]:
    """An operator and its options of each family's cases, and one with attributes of all kinds."""
    found = []
    for family in families():
        for case in cases_of(family)[:40]:
            _, nodes, _ = case.parts()
            node = nodes[2 * case.variables]
            found.append((str(node.op), bytes(node.options)))
    kinds = {
        "value": typed_attribute("tensor", [[1.5, 2.0], [3.0, 4.0]]),
        "dtype": typed_attribute("type", "double"),
    }
    found.append(("FlexConst", wrapped("Const", kinds)))
    shapes = {"output_types": ["float"], "output_shapes": [[1, -1], None], "f": "body"}
    dataset = {"Targuments": [], **shapes, "metadata": "x"}
    found.append(("FlexMapDataset", declared_options("MapDataset", dataset)))
    return found


def test_damaged_nodes_are_read_or_refused() -> None:
    rng, given = random.Random(SEED), examples()
    print("seed", SEED)
    for _ in range(TIMES):
        name, options = rng.choice(given)
        damaged = bytearray(options)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        if rng.random() < 0.2:
            del damaged[rng.randrange(len(damaged)) :]
        try:
            node_from(f"{name}_0", name, octets(bytes(damaged)))
        except ModelError as error:
            assert f"{name}_0" in str(error) or "flexbuffer" in str(error), error


def test_attributes_of_every_kind_come_back() -> None:
    _, options = examples()[-1]
    node = node_def(options, "X_0")
    assert node.attributes["output_shapes"] == ("list(shape)", ((1, -1), None))
    assert node.attributes["f"][1].name == "body"
    assert node.attributes["Targuments"] == ("list()", ())
    value = node_def(examples()[-2][1], "X_0").attributes["value"]
    assert value[0] == "tensor" and value[1].tolist() == [[1.5, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("attribute", "reason"),
    [
        (varint(6 << 3) + varint(99), "TensorFlow's element type 99 is not known"),
        (field(8, varint(1 << 3) + varint(1)), None),
        (
            field(8, varint(1 << 3) + varint(1) + field(2, field(2, varint(8) + varint(1 << 40)))),
            "has 0 values in a node",
        ),
        (field(8, varint(1 << 3) + varint(21)), "a constant of type variant in a node"),
    ],
)
def test_hostile_attributes(attribute: bytes, reason: str | None) -> None:
    options = wrapped("Const", {"value": attribute})
    if reason is None:
        assert node_def(options, "X_0").attributes["value"][1].shape == ()
        return
    with pytest.raises(ModelError, match=reason):
        node_def(options, "X_0")


def test_functions_nested_deep_are_refused() -> None:
    inner = b""
    for _ in range(2000):
        entry = field(1, b"f") + field(2, inner)
        inner = field(10, field(1, b"g") + field(2, entry))
    with pytest.raises(ModelError, match="nested more than 8 deep"):
        node_def(wrapped("Const", {"value": inner}), "X_0")


def test_the_table_is_read_whole() -> None:
    operators = [flex_operator(name) for name in names()]
    assert sum(each is not None and not each.is_selected for each in operators) == 770
    for name in names():
        operator = flex_operator(name)
        assert operator is not None
        told = {each.type for each in (*operator.inputs, *operator.outputs) if each.is_attribute}
        told |= {each.count for each in (*operator.inputs, *operator.outputs) if each.count}
        assert told <= operator.attributes.keys(), name


def test_an_unknown_attribute_is_refused_by_name() -> None:
    options = wrapped("AddV2", {"T": varint(6 << 3) + varint(1), "new": varint(5 << 3) + varint(1)})
    with pytest.raises(ModelError, match="has no attribute 'new'; convert"):
        node_from("FlexAddV2_0", "FlexAddV2", octets(options))
    kept = wrapped("AddV2", {"T": varint(6 << 3) + varint(1), "_note": varint(5 << 3) + varint(1)})
    assert node_from("FlexAddV2_0", "FlexAddV2", octets(kept))["T"] == "float"


@pytest.mark.parametrize("columns", [2, 70])
def test_crosses_are_bounded(columns: int) -> None:
    """The number of crosses is the product of the numbers of features, of any size."""
    with pytest.raises(KernelError, match="crosses"):
        crossed([[[1] * 5000]] * columns, 1, lambda features: features[0])


def test_lists_are_bounded() -> None:
    """An index that is computed decides how long a list is."""
    model = ModelBuilder()
    graph = model.subgraph("main")
    graph.constant("rows", np.zeros((1, 2), np.float32)).tensor("place", (1,), TensorType.INT32)
    graph.constant("element", np.int32([2])).constant("count", np.array(-1, np.int32))
    graph.tensor("list", (), TensorType.VARIANT).tensor("y", (1, 2))
    given = {"element_dtype": "float", "shape_type": "int32"}
    scatter = declared_options("TensorListScatterV2", given)
    stack = declared_options("TensorListStack", {"element_dtype": "float", "num_elements": -1})
    inputs = ["rows", "place", "element", "count"]
    graph.operator("FlexTensorListScatterV2", inputs, ["list"], scatter)
    graph.operator("FlexTensorListStack", ["list", "element"], ["y"], stack)
    graph.inputs("place").outputs("y")
    interpreter = Interpreter(model_content=model.write(), providers=[])
    interpreter.allocate_tensors()
    (place,) = interpreter.get_input_details()
    interpreter.set_tensor(place["index"], np.int32([2**30]))
    with pytest.raises(BridgeError, match="result bytes, more than the limit"):
        interpreter.invoke()
