"""The interpreter's life cycle, dictionaries and errors, held against LiteRT's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT

from tests.models import model_path
from tests.one_op import T, one_op_model
from tests.oracle import litert
from tflite_ort import (
    AllocationError,
    BuiltinOpResolver,
    DelegateError,
    Interpreter,
    KernelError,
    MalformedModel,
    ModelError,
    Registration,
    StateError,
    TensorError,
    UnknownOperator,
    UnreadableModel,
    UnsupportedVersion,
    Untranslatable,
)
from tflite_ort.schema import (
    AddOptions,
    Buffer,
    Conv2DOptions,
    Op,
    Padding,
    ReducerOptions,
    ReshapeOptions,
    ResizeError,
    TensorType,
    read_model,
    write_model,
)

ADD = one_op_model(Op.ADD, [T((2, 3)), T((2, 3))], [T((2, 3))], AddOptions())
KEYS = (
    "name",
    "index",
    "shape",
    "shape_signature",
    "dtype",
    "quantization",
    "quantization_parameters",
    "sparsity_parameters",
)


def batched_convolution() -> bytes:
    rng = np.random.default_rng(0)
    return one_op_model(
        Op.CONV_2D,
        [
            T((1, 8, 8, 3), shape_signature=(-1, 8, 8, 3)),
            T.constant(rng.normal(size=(4, 3, 3, 3)).astype(np.float32)),
            T.constant(np.ones(4, np.float32)),
        ],
        [T((1, 8, 8, 4), shape_signature=(-1, 8, 8, 4))],
        Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1),
    )


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, dict):
        return set(ours) == set(theirs) and all(same(ours[key], theirs[key]) for key in theirs)
    if isinstance(theirs, np.ndarray):
        return ours.dtype == theirs.dtype and np.array_equal(ours, theirs)
    return type(ours) is type(theirs) and bool(ours == theirs)


@pytest.mark.parametrize(
    "name",
    [
        "coral__tf2_mobilenet_v2_1.0_224_ptq.tflite",
        "tflite-support__deeplabv3.tflite",
        "litert__torchaudio_conformer.tflite",
        "mlperf-tiny__kws_ref_model.tflite",
        "tflite-support__movie_review.tflite",
    ],
)
def test_details_equal_litert(name: str) -> None:
    ours, theirs = Interpreter(model_path(name)), LiteRT(str(model_path(name)))
    for ours_details, theirs_details in (
        (ours.get_input_details(), theirs.get_input_details()),
        (ours.get_output_details(), theirs.get_output_details()),
    ):
        assert len(ours_details) == len(theirs_details)
        for mine, other in zip(ours_details, theirs_details, strict=True):
            assert tuple(mine) == KEYS
            wrong = [key for key in KEYS if not same(mine[key], other[key])]
            assert not wrong, {key: (mine[key], other[key]) for key in wrong}


def test_content_in_the_place_of_a_path() -> None:
    with pytest.raises(UnreadableModel, match=r"^model_path is the content"):
        Interpreter(batched_convolution())  # type: ignore[arg-type]


def test_model_by_path_and_by_content(tmp_path: Path) -> None:
    path = tmp_path / "add.tflite"
    path.write_bytes(ADD)
    for interpreter in (Interpreter(path), Interpreter(model_content=ADD)):
        interpreter.allocate_tensors()
        for detail in interpreter.get_input_details():
            interpreter.set_tensor(detail["index"], np.full((2, 3), 2, np.float32))
        interpreter.invoke()
        output = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        np.testing.assert_array_equal(output, np.full((2, 3), 4, np.float32))


def test_a_batch_of_minus_one_is_resized_and_back() -> None:
    model = batched_convolution()
    interpreter = Interpreter(model_content=model)
    rng = np.random.default_rng(1)
    for batch in (1, 5, 2):
        x = rng.normal(size=(batch, 8, 8, 3)).astype(np.float32)
        interpreter.resize_tensor_input(0, x.shape, strict=True)
        assert tuple(interpreter.get_input_details()[0]["shape"]) == x.shape
        interpreter.allocate_tensors()
        interpreter.set_tensor(0, x)
        interpreter.invoke()
        detail = interpreter.get_output_details()[0]
        assert tuple(detail["shape"]) == (batch, 8, 8, 4)
        assert tuple(detail["shape_signature"]) == (-1, 8, 8, 4)
        output = interpreter.get_tensor(detail["index"])
        np.testing.assert_allclose(output, litert(model, [x])[0], atol=1e-5)


def test_a_shape_that_does_not_fit_names_the_operator_and_can_be_undone() -> None:
    interpreter = Interpreter(model_content=batched_convolution())
    interpreter.resize_tensor_input(0, (1, 8, 8, 5))
    with pytest.raises(ModelError, match="CONV_2D_0"):
        interpreter.allocate_tensors()
    interpreter.resize_tensor_input(0, (1, 8, 8, 3))
    interpreter.allocate_tensors()
    interpreter.invoke()


def test_a_shape_that_an_operator_cannot_take_names_the_input() -> None:
    interpreter = Interpreter(model_content=batched_convolution())
    interpreter.resize_tensor_input(0, (1, 8, 8, 1))
    message = r"^CONV_2D_0: .*\(inputs were resized: 'in0' to \[1, 8, 8, 1\]\)$"
    with pytest.raises(AllocationError, match=message):
        interpreter.allocate_tensors()


@pytest.mark.parametrize("kind", [Interpreter, LiteRT])
def test_sizes_that_are_whole_floats(kind: Any) -> None:
    interpreter = kind(model_content=batched_convolution())
    for sizes in ([2.0, 8.0, 8.0, 3.0], np.array([3, 8, 8, 3]) / 1, np.float16([1, 8, 8, 3])):
        interpreter.resize_tensor_input(0, sizes)
        assert interpreter.get_input_details()[0]["shape"].tolist() == [*sizes]


@pytest.mark.parametrize("size", [2.5, float("nan"), float("inf"), 2.0**40, -1.0])
def test_floats_that_are_no_sizes(size: float) -> None:
    with pytest.raises(ResizeError):
        Interpreter(model_content=batched_convolution()).resize_tensor_input(0, [size, 8, 8, 3])


def test_strict_resize_refuses_known_dimensions() -> None:
    interpreter = Interpreter(model_content=batched_convolution())
    with pytest.raises(TensorError, match="strict"):
        interpreter.resize_tensor_input(0, (1, 9, 8, 3), strict=True)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros((2, 3), np.float64), "type FLOAT64 but expected type FLOAT32"),
        (np.zeros((3, 2), np.float32), "Dimension mismatch"),
        (np.zeros((2, 3), np.int8), "type INT8"),
    ],
)
def test_a_wrong_value_is_refused_and_nothing_is_lost(value: Any, message: str) -> None:
    interpreter = Interpreter(model_content=ADD)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.ones((2, 3), np.float32))
    with pytest.raises(TensorError, match=message):
        interpreter.set_tensor(0, value)
    interpreter.invoke()
    output = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_array_equal(output, np.ones((2, 3), np.float32))


def test_calls_in_the_wrong_order() -> None:
    interpreter = Interpreter(model_content=ADD)
    with pytest.raises(StateError, match="not ready"):
        interpreter.invoke()
    with pytest.raises(TensorError, match="allocate_tensors"):
        interpreter.set_tensor(0, np.ones((2, 3), np.float32))
    with pytest.raises(StateError, match="allocate_tensors"):
        interpreter.delegation()
    interpreter.allocate_tensors()
    interpreter.resize_tensor_input(0, (2, 3))  # the shape that it has
    interpreter.invoke()
    interpreter.resize_tensor_input(0, (1, 3))
    with pytest.raises(StateError, match="not ready"):
        interpreter.invoke()


@pytest.mark.parametrize("index", [-1, 3, 99])
def test_indices_that_are_no_tensors(index: int) -> None:
    interpreter = Interpreter(model_content=ADD)
    interpreter.allocate_tensors()
    with pytest.raises(TensorError):
        interpreter.set_tensor(index, np.ones((2, 3), np.float32))
    with pytest.raises(TensorError):
        interpreter.resize_tensor_input(index, (2, 3))


def test_constructor_refusals(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="model_path"):
        Interpreter()
    with pytest.raises(ValueError, match="num_threads"):
        Interpreter(model_content=ADD, num_threads=0)
    with pytest.raises(MalformedModel):
        Interpreter(model_content=b"nothing like a model")
    with pytest.raises(UnreadableModel, match=r"Could not open '.*missing\.tflite'"):
        Interpreter(tmp_path / "missing.tflite")
    with pytest.raises(DelegateError, match=r"NoSuch.*CPUExecutionProvider"):
        Interpreter(model_content=ADD, providers=["NoSuchExecutionProvider"])


def test_an_unknown_version_is_refused_with_what_is_known() -> None:
    model = one_op_model(Op.ADD, [T((1,)), T((1,))], [T((1,))], AddOptions(), version=99)
    with pytest.raises(UnsupportedVersion, match=r"'ADD' version '99'[\s\S]*versions 1 to"):
        Interpreter(model_content=model)
    model = one_op_model(Op.CONCAT_EMBEDDINGS, [T((1,))], [T((1,))])
    with pytest.raises(UnknownOperator, match="CONCAT_EMBEDDINGS"):
        Interpreter(model_content=model)


def test_an_untranslatable_operator_runs_in_numpy_and_says_why() -> None:
    def refuse(op: Any, g: Any) -> None:
        raise Untranslatable("not on this day")

    resolver = BuiltinOpResolver()
    kernel = Registration(refuse, kernel=lambda op, inputs, state: (inputs[0] + inputs[1],))
    resolver.add_builtin(Op.ADD, kernel)
    interpreter = Interpreter(model_content=ADD, resolver=resolver)
    interpreter.allocate_tensors()
    (row,) = interpreter.delegation()
    assert (row.operator, row.runs_on, row.reason) == ("ADD", "numpy", "not on this day")


def test_a_computed_shape_shows_in_the_details() -> None:
    model = one_op_model(
        Op.RESHAPE, [T((2, 3)), T((2,), TensorType.INT32)], [T((3, 2))], ReshapeOptions()
    )
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    interpreter.set_tensor(0, x)
    for shape in ((6, 1), (1, 6)):
        interpreter.set_tensor(1, np.array(shape, np.int32))
        interpreter.invoke()
        detail = interpreter.get_output_details()[0]
        assert tuple(detail["shape"]) == shape
        np.testing.assert_array_equal(interpreter.get_tensor(detail["index"]), x.reshape(shape))


@pytest.mark.parametrize("buffer", [None, np.zeros(0, np.int32)])
def test_a_tensor_without_elements_is_a_constant_whatever_its_buffer(buffer: Any) -> None:
    """The axes of a SUM over none."""
    model = one_op_model(
        Op.SUM, [T((2, 3)), T((0,), TensorType.INT32, data=buffer)], [T((2, 3))], ReducerOptions()
    )
    graph = read_model(model)
    if buffer is None:  # the builder takes a tensor without data for an input
        (main,) = graph.subgraphs
        model = write_model(replace(graph, subgraphs=(replace(main, inputs=main.inputs[:1]),)))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, x)
    interpreter.invoke()
    output = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_array_equal(output, litert(model, [x])[0])


def test_an_empty_result_with_an_empty_buffer_is_computed() -> None:
    model = read_model(one_op_model(Op.ADD, [T((0, 3)), T((0, 3))], [T((0, 3))], AddOptions()))
    (main,) = model.subgraphs
    tensors = (*main.tensors[:2], replace(main.tensors[2], buffer=1))
    main = replace(main, tensors=tensors)
    buffers = (*model.buffers, Buffer(data=np.zeros(0, np.uint8)))
    interpreter = Interpreter(
        model_content=write_model(replace(model, subgraphs=(main,), buffers=buffers))
    )
    interpreter.allocate_tensors()
    interpreter.invoke()
    assert interpreter.get_tensor(2).shape == (0, 3)


def test_a_kernel_with_another_number_of_results_is_named() -> None:
    resolver = BuiltinOpResolver()
    resolver.add_builtin(Op.ADD, Registration(kernel=lambda op, inputs, state: (*inputs,)))
    interpreter = Interpreter(model_content=ADD, resolver=resolver)
    interpreter.allocate_tensors()
    with pytest.raises(KernelError, match="ADD_0: the kernel made 2 results, expected 1"):
        interpreter.invoke()


@pytest.mark.parametrize(
    ("input", "filter"),
    [
        (T((1, 8, 8, 3)), T.constant(np.ones((4, 3, 3, 3), np.uint8), scale=0.1)),
        (T((1, 8, 8, 3), TensorType.INT8), T.constant(np.ones((4, 3, 3, 3), np.int8), scale=0.1)),
    ],
    ids=["float by uint8", "codes without a scale"],
)
def test_an_image_of_few_channels_is_convolved_by_what_tflite_takes(input: T, filter: T) -> None:
    model = one_op_model(
        Op.CONV_2D,
        [input, filter],
        [T((1, 8, 8, 4), input.type)],
        Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1),
    )
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    assert {row.runs_on for row in interpreter.delegation()} == {"numpy"}
    with pytest.raises(KernelError, match="CONV_2D_0"):
        interpreter.invoke()


def test_get_tensor_returns_copies() -> None:
    interpreter = Interpreter(model_content=ADD)
    interpreter.allocate_tensors()
    index = interpreter.get_output_details()[0]["index"]
    first = interpreter.get_tensor(index)
    first[...] = 7
    assert not np.array_equal(interpreter.get_tensor(index), first)
