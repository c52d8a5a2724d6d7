"""Names of files of which they would be a large part; constants that are there once."""

from __future__ import annotations

import time

import numpy as np
import onnx
import onnxruntime

from tests.models import model_path
from tests.one_op import Node, T, graph_model
from tflite_ort import Interpreter, export_onnx
from tflite_ort.comparison.drawn import random_inputs
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.narrowing import join_equal_constants
from tflite_ort.opmap.onnx_graph.writing.short_names import shorten_names, tensor_labels
from tflite_ort.schema import FullyConnectedOptions, Op, read_model
from tflite_ort.schema.values.resolve import tensor_views
from tflite_ort.verification.onnx_forms import TensorNames

LSTM = "tf__bilstm_i8.tflite"


def nodes_of(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """The nodes of a graph and of its bodies."""
    found = []
    for node in graph.node:
        found.append(node)
        for attribute in node.attribute:
            found += nodes_of(attribute.g)
    return found


def test_a_network_of_many_nodes_has_short_names() -> None:
    proto = export_onnx(model_path(LSTM), stateful=True)
    nodes = nodes_of(proto.graph)
    assert sum(not node.name for node in nodes) > len(nodes) // 2
    inner = [n for node in nodes for n in node.output if not node.name]
    assert max(map(len, inner)) <= 3
    made = [name for node in nodes for name in node.output if name]
    assert len(set(made)) == len(made)
    onnx.checker.check_model(proto, full_check=True)


def test_tensors_of_the_model_have_labels() -> None:
    """The nodes that make them keep their names, and so do all nodes of an operator that becomes
    a few."""
    model = model_path(LSTM)
    proto = export_onnx(model, stateful=True)
    interpreter = Interpreter(model)
    interpreter.allocate_tensors()
    details = interpreter.get_tensor_details()
    known = set(tensor_labels(each["name"] for each in details).values())
    named = {name: node.name for node in proto.graph.node for name in node.output if name in known}
    assert len(named) > 10
    operators = {name.rpartition("/")[0] for name in named.values()}
    assert {"CONCATENATION_11", "UNIDIRECTIONAL_SEQUENCE_LSTM_2", "STRIDED_SLICE_8"} <= operators
    kept = {node.name for node in proto.graph.node}
    assert {"STRIDED_SLICE_8/Slice", "STRIDED_SLICE_8/Reshape"} <= kept


def test_a_label_is_the_shortest_end_of_the_first_path_that_is_unique() -> None:
    names = {
        "net/one/Relu;net/one/Add;net/one/Conv": "one/Relu",
        "net/a/two/Relu": "a/two/Relu",
        "net/b/two/Relu": "b/two/Relu",
        "net/Pad;net/Pad": "net/Pad#3",
        "net/Pad;net/Pad1": "net/Pad#4",
        "torch.Linear/Linear_1;7": "torch.Linear/Linear_1;7",
        "x/y/z;1": "y/z;1",
        "y/q": "y/q",  # another tensor's name is no label
        "x/y/q": "x/y/q",
        "input": "input",
        "": "",
    }
    assert tensor_labels(names) == names


def test_labels_of_hostile_names_take_little_time() -> None:
    names = ["/" * 200_000, "/nchw" * 40_000 + "x", ";" * 100_000, "a/" * 50_000 + "/1"]
    labels = tensor_labels(names)
    assert set(labels) == set(names)
    value = ir.Value(names[1], dtype=ir.DataType.FLOAT, shape=(1,))
    given, last = (ir.Value(name, dtype=ir.DataType.FLOAT, shape=(1,)) for name in ("x", "y"))
    nodes = [ir.Node("Neg", [given], [value]), ir.Node("Neg", [value], [last])]
    graph = ir.Graph([given], [last], nodes)
    started = time.process_time()
    shorten_names(graph, names)
    assert time.process_time() - started < 5
    assert value.name != names[1]


def test_labels_are_read_back() -> None:
    """`verify` finds the values of an export by them."""
    model = read_model(model_path("pypi-basic-pitch__nmp.tflite"))
    names = TensorNames(views := tensor_views(model, 0))
    made = {name for node in export_onnx(model).graph.node for name in node.output}
    assert not any(name.count(";") > 1 for name in made)
    found = {name: names.of(name) for name in made if "/" in name and len(name) > 8}
    assert len(found) > 100
    assert all(len(indices) == 1 for indices in found.values())
    labels = tensor_labels(view.name for view in views)
    assert all(name.startswith(labels[views[i].name]) for name, (i,) in found.items())
    assert {"reflection_pad1d/MirrorPad_8/nchw", "normalized_log_1/sub/nchw"} <= made


def test_what_an_output_is_made_of_has_a_label() -> None:
    """The output keeps its long name; what it is made of has a label and an index."""
    model = read_model(model_path("tflm__conv4.tflite"))
    proto = export_onnx(model)
    (made,) = proto.graph.node[-1].input
    assert made == "conv2d_194/BiasAdd#3/nchw"
    assert proto.graph.output[0].name.count("/") > 10
    names = TensorNames(tensor_views(model, 0))
    assert names.of(made) == [3] == names.of(proto.graph.output[0].name)


def test_names_of_tensors_are_not_taken_again() -> None:
    """A model whose tensors have the shortest names."""
    tensors = {"a": T((1, 4)), "b": T((1, 4)), "c": T((1, 4)), "d": T((1, 4))}
    steps = [Node(Op.ATAN2, ["a", "b"], ["c"]), Node(Op.ATAN2, ["c", "b"], ["d"])]
    content = graph_model(tensors, steps, ["d"])
    proto = export_onnx(content, stateful=True)
    made = [name for node in proto.graph.node for name in node.output]
    assert "c" in made and sum(not node.name for node in proto.graph.node) > 20
    assert len({*made, "a", "b"}) == len(made) + 2
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    given = random_inputs(interpreter.get_input_details(), 2)
    for index, array in given.items():
        interpreter.set_tensor(index, array)
    interpreter.invoke()
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    (found,) = session.run(None, dict(zip("ab", given.values(), strict=True)))
    np.testing.assert_array_equal(found, interpreter.get_tensor(3))


def test_names_stay_where_weights_are_most_of_a_file() -> None:
    weights = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    tensors = {"x": T((1, 64)), "y": T((1, 64)), "z": T((1, 64)), "w": T.constant(weights)}
    dense = Node(Op.FULLY_CONNECTED, ["x", "w"], ["y"], FullyConnectedOptions())
    content = graph_model(tensors, [dense, Node(Op.ATAN2, ["y", "x"], ["z"])], ["z"])
    assert all(node.name for node in export_onnx(content).graph.node)


def test_equal_narrow_constants_are_there_once() -> None:
    """Those that only a Cast reads: ONNX Runtime fails at others, such as a bias of two layers."""
    zeros = [np.zeros(64, dtype) for dtype in (np.int8, np.int16, np.int8, np.int8, np.int8)]
    graph = ir.Graph([], [], [])
    values = [graph.add_initializer(f"c{i}", array) for i, array in enumerate(zeros)]
    made = [ir.Value(f"y{i}", dtype=ir.DataType.INT32) for i in range(4)]
    for value, result in zip(values, made, strict=False):
        graph.nodes.append(ir.Node("Cast", [value], [result], attributes={"to": 6}))
    graph.nodes.append(ir.Node("Neg", [values[4]], [ir.Value("z")]))
    graph.outputs += [*made, values[3]]
    join_equal_constants(graph)
    read = [value.name for node in graph.nodes for value in node.inputs if value is not None]
    assert read == ["c0", "c1", "c0", "c3", "c4"]
    assert set(graph.initializers) == {"c0", "c1", "c3", "c4"}


def test_first_values_of_states_are_not_joined() -> None:
    """Each is an input of the file, which may be fed another value."""
    graph = ir.Graph([], [], [])
    values = [graph.add_initializer(name, np.zeros(64, np.int8)) for name in "ab"]
    for value in values:
        result = ir.Value(f"{value.name}_next", dtype=ir.DataType.INT32)
        graph.nodes.append(ir.Node("Cast", [value], [result], attributes={"to": 6}))
    graph.inputs += values
    join_equal_constants(graph)
    assert set(graph.initializers) == {"a", "b"}


def test_a_bidirectional_layer_has_its_constants_once() -> None:
    proto = export_onnx(model_path("tf__bilstm_f32.tflite"), stateful=True)
    stored = [each.raw_data for each in proto.graph.initializer]
    large = [each for each in stored if len(each) >= 1024]
    assert len(large) == len(set(large)) > 0
