"""Sizes that the file leaves open stay open in a batch, or the user is told."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from tests.batching.single_runs import singles
from tests.one_op import Node, T, graph_model, one_op_model, ours
from tests.test_dynamic_export import checked, dimensions, run
from tflite_ort import ExportWarning, Interpreter, export_onnx
from tflite_ort.export.check import ExportMismatch, check_export
from tflite_ort.schema import (
    CallOnceOptions,
    Conv2DOptions,
    ModelBuilder,
    Op,
    Padding,
    ResizeError,
    ShapeOptions,
    SqueezeOptions,
    TensorType,
    read_model,
)
from tflite_ort.schema.file.errors import AllocationError

pytestmark = pytest.mark.usefixtures("unmeasured")

INT32 = TensorType.INT32
STEPS = T((1, 2, 3), shape_signature=(1, -1, 3))


def reshaped_by_its_shape() -> bytes:
    """x, whose second size is open, in the shape of x as SHAPE tells it."""
    tensors = {"x": STEPS, "y": T((1, 2, 3)), "sizes": T((3,), INT32), "z": T((1, 2, 3))}
    nodes = [
        Node(Op.RELU, ["x"], ["y"]),
        Node(Op.SHAPE, ["x"], ["sizes"], ShapeOptions(out_type=INT32)),
        Node(Op.RESHAPE, ["y", "sizes"], ["z"]),
    ]
    return graph_model(tensors, nodes, ["z", "sizes"])


def dropped() -> bytes:
    """Which sizes SQUEEZE drops is not known while one is open."""
    return one_op_model(Op.SQUEEZE, [STEPS], [T((2, 3))], SqueezeOptions())


@pytest.mark.parametrize("batch", ["N", 3])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_a_batch_keeps_open_sizes(batch: int | str, steps: int) -> None:
    """A SHAPE of them is the same for all samples."""
    model = reshaped_by_its_shape()
    proto = checked(model, batch=batch)
    assert dimensions(proto.graph.input[0]) == [batch, "x_dim_1", 3]
    rows = np.random.default_rng(steps).normal(size=(3, steps, 3)).astype(np.float32)
    z, sizes = run(proto, [rows])
    assert np.array_equal(z, np.maximum(rows, 0))
    assert sizes.tolist() == [[1, steps, 3]] * 3


@pytest.mark.parametrize("batch", ["N", 3])
def test_sizes_that_a_batch_fixes_are_named(batch: int | str) -> None:
    with pytest.warns(ExportWarning, match="sizes of 'in0' that the file leaves open are fixed"):
        proto = checked(dropped(), batch=batch)
    assert dimensions(proto.graph.input[0]) == [batch, 2, 3]


def test_an_interpreter_of_a_batch_is_resized_along_open_sizes() -> None:
    model = reshaped_by_its_shape()
    with Interpreter(model_content=model, batch=2) as interpreter:
        (given,) = interpreter.get_input_details()
        assert (given["shape"].tolist(), given["shape_signature"].tolist()) == (
            [2, 2, 3],
            [2, -1, 3],
        )
        rows = np.random.default_rng(0).normal(size=(2, 7, 3)).astype(np.float32)
        assert np.array_equal(resized(interpreter, rows)[0], np.maximum(rows, 0))
    single = [[rows[:1, :2]], [rows[1:, :2]]]
    want = singles(model, single)
    got, _ = ours(model, [rows[:, :2]], batch=2)
    assert all(np.array_equal(a, b) for a, b in zip(got, want, strict=True))


@pytest.mark.parametrize("shape", [(2, 5, 3), (3, 2, 3)])
def test_an_interpreter_of_a_batch_is_not_resized_along_others(shape: tuple[int, ...]) -> None:
    """What was made for two samples of one size may give other sizes a part of their result."""
    interpreter = Interpreter(model_content=dropped(), batch=2)
    with pytest.raises(ResizeError, match="with batch=2 only unknown dimensions"):
        interpreter.resize_tensor_input(0, shape)


def resized(interpreter: Interpreter, array: Any) -> list[Any]:
    index = interpreter.get_input_details()[0]["index"]
    interpreter.resize_tensor_input(index, array.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(index, array)
    interpreter.invoke()
    return [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]


def cut_after_two() -> onnx.ModelProto:
    """RELU of the first two steps: right for a file of two steps."""
    proto = export_onnx(one_op_model(Op.RELU, [T((1, 2, 3))], [T((1, 2, 3))]))
    bounds = [onnx.numpy_helper.from_array(np.array([n]), f"at{n}") for n in (0, 1, 2)]
    proto.graph.initializer.extend(bounds)
    names = ["in0", "at0", "at2", "at1"]
    del proto.graph.node[:]
    proto.graph.node.append(onnx.helper.make_node("Slice", names, ["cut"]))
    proto.graph.node.append(onnx.helper.make_node("Relu", ["cut"], ["out0"]))
    for value in (proto.graph.input[0], proto.graph.output[0]):
        value.type.tensor_type.shape.dim[1].dim_param = f"{value.name}_steps"
    return proto


def test_a_check_tries_a_second_size() -> None:
    model = read_model(one_op_model(Op.RELU, [T((1, 2, 3))], [T((1, 2, 3))]))
    with pytest.raises(ExportMismatch, match=r"out0.*with the sizes \{'in0_steps': 4\}"):
        check_export(cut_after_two(), None, model)
    good = export_onnx(model, input_shapes={"in0": (1, "steps", 3)})
    assert set(check_export(good, None, model)) == {"out0"}


@pytest.mark.parametrize("batch", [None, "N"])
def test_a_check_takes_a_size_that_the_model_takes(batch: str | None) -> None:
    """Twice as many elements do not fill the shape."""
    sizes = T.constant(np.array([-1, 2], np.int32))
    model = one_op_model(Op.RESHAPE, [T((1, 2, 3)), sizes], [T((3, 2))])
    export_onnx(model, input_shapes={"in0": (1, "steps", 3)}, batch=batch, check=True)


def test_what_runs_once_takes_and_gives_nothing() -> None:
    """As in LiteRT, which refuses it when it prepares the operator."""
    for inputs, outputs in ((["x"], []), ([], ["y"]), (["x"], ["y"])):
        model = ModelBuilder()
        graph, once = model.subgraph("main"), model.subgraph("once")
        for each in (graph, once):
            each.tensor("x", (2,), TensorType.FLOAT32)
            each.tensor("y", (2,), TensorType.FLOAT32)
            each.operator(Op.RELU, ["x"], ["y"])
            each.inputs("x").outputs("y")
        once.inputs(*inputs).outputs(*outputs)
        graph.tensor("z", (2,), TensorType.FLOAT32)
        given = ["x"] if inputs else []
        made = ["z"] if outputs else []
        graph.operator(Op.CALL_ONCE, given, made, CallOnceOptions(init_subgraph_index=1))
        with pytest.raises(AllocationError, match="CALL_ONCE_1"):
            Interpreter(model_content=model.write()).allocate_tensors()


def windows_of_three(signature: tuple[int, ...] | None) -> bytes:
    filter = T.constant(np.ones((1, 3, 3, 1), np.float32))
    image = T((1, 1, 1, 1), shape_signature=signature)
    options = Conv2DOptions(Padding.VALID, 1, 1)
    return one_op_model(Op.CONV_2D, [image, filter, None], [T((1, 1, 1, 1))], options)


def test_open_sizes_that_nobody_has_given_yet() -> None:
    """Programs allocate, and resize then; LiteRT lets them where it finds sizes at invoke."""
    interpreter = Interpreter(model_content=windows_of_three((1, -1, -1, 1)))
    interpreter.allocate_tensors()
    one, no_window = np.ones((1, 1, 1, 1), np.float32), r"CONV_2D_0: no window of \(3, 3\)"
    for call in (
        interpreter.invoke,
        lambda: interpreter.set_tensor(0, one),
        lambda: interpreter.get_tensor(2),
    ):
        with pytest.raises(AllocationError, match=no_window):
            call()
    assert resized(interpreter, np.ones((1, 4, 3, 1), np.float32))[0].ravel().tolist() == [9, 9]
    interpreter.resize_tensor_input(0, (1, 1, 1, 1))
    with pytest.raises(AllocationError, match=no_window):
        interpreter.allocate_tensors()
    with pytest.raises(AllocationError, match=no_window):
        Interpreter(model_content=windows_of_three(None)).allocate_tensors()
