"""Inputs of types that TFLite's kernels do not take together, and of shapes that do not fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.one_op import T, one_op_model, ours
from tests.oracle import litert
from tests.rnn_models import Svdf
from tflite_ort import BridgeError, schema
from tflite_ort.schema import ActivationFunctionType, Op, TensorType

PATHS: list[Any] = [None, []]
RELU = ActivationFunctionType.RELU
# The types that each input may have, by the weights of the layer; the state is the last one.
TAKEN = {
    "float": ("FLOAT32", "FLOAT32", "FLOAT32", "FLOAT32", "FLOAT32"),
    "int8": ("FLOAT32", "INT8 UINT8", "INT8 UINT8", "FLOAT32", "FLOAT32"),
    "integer": ("INT8", "INT8", "INT16", "INT32", "INT16"),
}
INTEGERS = ("INT8", "UINT8", "INT16", "INT32", "INT64", "UINT32", "BOOL", "INT4")
TYPES = {"FLOAT32", "FLOAT16", *INTEGERS}


@pytest.mark.parametrize("weights", TAKEN)
def test_svdf_takes_the_types_of_its_kernels_alone(weights: Any) -> None:
    """LiteRT does not look, and reads the bytes as what the kernel takes."""
    options = {"activation": RELU} if weights == "integer" else {}
    model = schema.read_model(Svdf(weights=weights, **options).model())
    (graph,) = model.subgraphs
    (op,) = graph.operators
    for index, taken in zip(op.inputs[1:], TAKEN[weights][1:], strict=True):
        assert index is not None
        for name in TYPES - set(taken.split()):
            tensor = replace(graph.tensors[index], type=TensorType[name])
            tensors = (*graph.tensors[:index], tensor, *graph.tensors[index + 1 :])
            buffers = tuple(replace(each, data=_long(each.data)) for each in model.buffers)
            changed = replace(graph, tensors=tensors)
            content = schema.write_model(replace(model, subgraphs=(changed,), buffers=buffers))
            feed = np.zeros(graph.tensors[0].shape, graph.tensors[0].type.name.lower())
            for providers in PATHS:
                with pytest.raises(BridgeError):
                    ours(content, [feed], providers)


def _long(data: Any) -> Any:
    """Bytes for elements of any type."""
    return None if data is None else np.resize(np.frombuffer(data, np.uint8), 8 * data.size)


@pytest.mark.parametrize("alpha", [(3,), (1, 3), (2, 2, 3)])
def test_slopes_that_do_not_broadcast_into_the_input(alpha: tuple[int, ...]) -> None:
    shape = () if len(alpha) == 1 else (2, 1) if len(alpha) == 2 else (2, 3)
    slopes = T.constant(np.full(alpha, 0.25, np.float32))
    content = one_op_model(Op.PRELU, [T(shape), slopes], [T(shape)])
    for providers in PATHS:
        with pytest.raises(BridgeError, match="broadcast"):
            ours(content, [np.zeros(shape, np.float32)], providers)


def test_multiples_that_have_two_dimensions() -> None:
    multiples = T.constant(np.array([[2], [3]], np.int32))
    content = one_op_model(Op.TILE, [T((1, 2)), multiples], [T((2, 6))])
    feeds = [np.array([[1, 2]], np.float32)]
    for providers in PATHS:
        np.testing.assert_array_equal(
            ours(content, feeds, providers)[0][0], litert(content, feeds)[0]
        )


@pytest.mark.parametrize("type", [TensorType.UINT16, TensorType.FLOAT16], ids=lambda x: x.name)
def test_fake_quant_takes_floats(type: TensorType) -> None:
    """LiteRT writes floats, beyond the end of a narrower result."""
    options = schema.FakeQuantOptions(min=-1, max=1, num_bits=8)
    content = one_op_model(Op.FAKE_QUANT, [T((4,), type)], [T((4,), type)], options)
    for providers in PATHS:
        with pytest.raises(BridgeError, match="types accepted: FLOAT32"):
            ours(content, [np.zeros(4, type.name.lower())], providers)
