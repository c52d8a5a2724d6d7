"""Recurrent networks over several invokes: real ones, and ones made as converters make them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest

from tests.lstm_models import Lstm, invokes
from tests.models import model_path
from tests.one_op import Node, T, assert_close, graph_model
from tests.oracle import litert_interpreter
from tflite_ort import Interpreter, export_onnx
from tflite_ort.schema import ConcatenationOptions, Op, ReverseV2Options, read_model, write_model
from tflite_ort.schema.values.lstm import LSTM_INPUTS

Array = npt.NDArray[Any]

MODELS = [
    "coral__keras_lstm_mnist_ptq.tflite",
    "litert__lstm.tflite",
    "litert__lstm_quantized.tflite",
    "litert__unidirectional_sequence_lstm_quantized.tflite",
    "tf__bilstm_f32.tflite",
    "tf__bilstm_i8.tflite",
    "tf__gru_f32.tflite",
    "tf__lstm_seq_dr.tflite",
    "tf__lstm_seq_f32.tflite",
    "tf__lstm_seq_i8.tflite",
    "tflm__dtln_noise_suppression.tflite",
    "tflm__keyword_scrambled.tflite",
    "tflm__trained_lstm.tflite",
    "tflm__trained_lstm_int8.tflite",
]
SEQUENCE = Op.UNIDIRECTIONAL_SEQUENCE_LSTM


def layer(lstm: Lstm, name: str, source: str, tensors: dict[str, T]) -> Node:
    """`lstm` reading the tensor `source`; its own tensors are added under names of the layer."""
    own = {f"{name}/{key}": tensor for key, tensor in lstm.tensors().items() if key != "input"}
    shape = (lstm.time, lstm.batch) if lstm.time_major else (lstm.batch, lstm.time)
    tensors.update(own)
    tensors[name] = T((*shape, lstm.units))
    places = [f"{name}/{key}".rstrip("?") for key in LSTM_INPUTS[1:]]
    inputs = [source, *(place if place in own else None for place in places)]
    return Node(SEQUENCE, inputs, [name], lstm.options())


def keras_bidirectional() -> bytes:
    """A Keras layer in both directions: the second one between two reversals of time."""
    forward = Lstm(batch=2, time=6, features=5, cells=4, cell_clip=10.0)
    backward = Lstm(batch=2, time=6, features=5, cells=4, cell_clip=10.0, seed=1)
    tensors = {"input": T((2, 6, 5)), "axis": T.constant(np.array([1], np.int32))}
    tensors["reversed"] = T((2, 6, 5))
    nodes = [
        Node(Op.REVERSE_V2, ["input", "axis"], ["reversed"], ReverseV2Options()),
        layer(backward, "late", "reversed", tensors),
        layer(forward, "early", "input", tensors),
    ]
    tensors |= {"turned": T((2, 6, 4)), "both": T((2, 6, 8))}
    nodes += [
        Node(Op.REVERSE_V2, ["late", "axis"], ["turned"], ReverseV2Options()),
        Node(Op.CONCATENATION, ["early", "turned"], ["both"], ConcatenationOptions(axis=2)),
    ]
    return graph_model(tensors, nodes, ["both"])


def lingvo_stack() -> bytes:
    """Time-major cells with projection, layer normalisation, peepholes, without input gates."""
    sizes = {"batch": 3, "time": 5, "time_major": True}
    first = Lstm(features=7, cells=8, outputs=5, projection=True, layer_norm=True, **sizes)
    second = Lstm(
        features=5,
        cells=6,
        outputs=4,
        projection=True,
        projection_bias=True,
        proj_clip=0.6,
        layer_norm=True,
        peephole=True,
        coupled=True,
        cell_clip=2.0,
        seed=1,
        **sizes,
    )
    tensors = {"input": T((5, 3, 7))}
    nodes = [
        layer(first, "first", "input", tensors),
        layer(second, "second", "first", tensors),
    ]
    return graph_model(tensors, nodes, ["second"])


def half_precision() -> bytes:
    """Weights, biases and the zeros that states start with as float16, widened by the model."""
    lstm = Lstm(batch=2, time=6, features=5, cells=4, cell_clip=10.0)
    tensors = {"input": T((2, 6, 5))}
    nodes = [layer(lstm, "lstm", "input", tensors)]
    for name, tensor in list(tensors.items()):
        first = np.zeros(tensor.shape) if tensor.is_variable else tensor.data
        if first is not None:
            tensors[f"{name}/half"] = T.constant(first.astype(np.float16))
            tensors[name] = T(tensor.shape, is_variable=tensor.is_variable)
            nodes.insert(0, Node(Op.DEQUANTIZE, [f"{name}/half"], [name], None, 3))
    return graph_model(tensors, nodes, ["lstm"])


def drawn(model: bytes, seed: int = 0, count: int = 3) -> list[list[Array]]:
    """Inputs for several invokes: floats around 0, codes over their whole range."""
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    details = Interpreter(model_content=model).get_input_details()
    feeds = []
    for _ in range(count):
        arrays = []
        for detail in details:
            dtype = np.dtype(detail["dtype"])
            if dtype.kind == "f":
                arrays.append(rng.normal(0, 1, detail["shape"]).astype(dtype))
            else:
                arrays.append(rng.integers(-128, 128, detail["shape"]).astype(dtype))
        feeds.append(arrays)
    return feeds


def check(model: bytes) -> None:
    """All on ONNX Runtime with LiteRT's numbers, as an interpreter and as an exported file."""
    feeds = drawn(model)
    interpreter = Interpreter(model_content=model, num_threads=1, hybrid="dynamic")
    found = invokes(interpreter, feeds)
    assert {row.runs_on for row in interpreter.delegation()} <= {"ort", "constant"}
    expected = invokes(litert_interpreter(model), feeds)
    exported = export_onnx(model, hybrid="dynamic", state_defaults=True)
    onnx.checker.check_model(exported, full_check=True)
    for got, want, other in zip(found, expected, carried(exported, feeds), strict=True):
        for ours, theirs, outside in zip(got, want, other, strict=True):
            assert_close(ours, theirs, 0, 1e-5, "interpreter")
            assert_close(outside, theirs, 0, 1e-5, "export")


def carried(model: onnx.ModelProto, feeds: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """The outputs of an exported model, whose states are handed from run to run."""
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    outputs = [value.name for value in session.get_outputs()]
    inputs = [value.name for value in model.graph.input]
    states: dict[str, Array] = {}
    results = []
    for arrays in feeds:
        given = dict(zip(inputs, arrays, strict=False))
        made = dict(zip(outputs, session.run(None, {**given, **states}), strict=True))
        states = {name: made[f"{name}_next"] for name in inputs if f"{name}_next" in made}
        results.append([made[name] for name in outputs if not name.endswith("_next")])
    return results


@pytest.mark.parametrize("name", MODELS)
def test_real_network(name: str) -> None:
    check(model_path(name).read_bytes())


@pytest.mark.parametrize("build", [keras_bidirectional, lingvo_stack, half_precision])
def test_network_as_converters_make_them(build: Any) -> None:
    check(build())


def test_keras_layer_is_two_lstms_in_onnx() -> None:
    graph = export_onnx(keras_bidirectional(), stateful=True).graph
    assert [node.op_type for node in graph.node].count("LSTM") == 2


def test_stateless_export_starts_from_zero() -> None:
    model = keras_bidirectional()
    (first, *_) = feeds = drawn(model)
    exported = export_onnx(model, stateful=False)
    assert [value.name for value in exported.graph.input] == ["input"]
    once, again = carried(exported, [first, first])
    expected = invokes(litert_interpreter(model), feeds)[0]
    for array, repeated, want in zip(once, again, expected, strict=True):
        np.testing.assert_array_equal(array, repeated)
        assert_close(array, want, 0, 1e-5, "stateless")


def test_states_are_an_interpreters_own_and_can_be_reset() -> None:
    model = lingvo_stack()
    feed = drawn(model, count=1)[0]
    one, other = (Interpreter(model_content=model) for _ in range(2))
    first, second = (invokes(one, [feed])[0][0] for _ in range(2))
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(invokes(other, [feed])[0][0], first)
    one.reset_all_variables()
    np.testing.assert_array_equal(invokes(one, [feed])[0][0], first)


def test_models_are_read_and_written() -> None:
    for build in (keras_bidirectional, lingvo_stack):
        assert write_model(read_model(build())) == build()


def test_length_of_an_exported_sequence_may_stay_open() -> None:
    model = lingvo_stack()
    exported = export_onnx(model, input_shapes={"input": ("steps", 3, 7)}, state_defaults=True)
    for steps in (1, 9):
        interpreter = Interpreter(model_content=model)
        interpreter.resize_tensor_input(0, (steps, 3, 7))
        feed = np.random.default_rng(steps).normal(0, 1, (steps, 3, 7)).astype(np.float32)
        (want,) = invokes(interpreter, [[feed]])
        (got,) = carried(exported, [[feed]])
        assert_close(got[0], want[0], 0, 1e-5, f"{steps} steps")
