"""The state of an exported file: which inputs have it, and what they are fed at first."""

from __future__ import annotations

import json
import math
import os
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from google.protobuf.message import DecodeError

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import BudgetExceeded, ModelError
from tflite_ort.schema.file.budgets import DEFAULT

Array = npt.NDArray[Any]

# Of the metadata: pairs of an input and the output that is its next value, and by input shape and
# elements of its first value: a number, where all are the same, or all of them in a list.
PAIRS, FIRST = "tflite.state", "tflite.state_first"
# What reading them raises where somebody else wrote them.
_DAMAGED = (AttributeError, KeyError, TypeError, ValueError, OverflowError, RecursionError)


def first_state(model: str | os.PathLike[str] | onnx.ModelProto) -> dict[str, Array]:
    """What the state of an exported file is fed at the first run: arrays by name of the input.

    An input whose batch is open has one row here, which stands for each sample.

    Args:
        model: the file, or what `export_onnx` returned.

    Raises:
        OSError: the file cannot be read.
        ModelError: its metadata tell no arrays for its inputs.
        BudgetExceeded: an array is larger than ``tensor_bytes``.

    Examples:
        >>> from tflite_ort import export_onnx
        >>> from tflite_ort.command.demo import digits_model
        >>> first_state(export_onnx(digits_model("float32")))
        {}
    """
    if not isinstance(model, onnx.ModelProto):
        model = _loaded(model)
    text = next((each.value for each in model.metadata_props if each.key == FIRST), "{}")
    declared = {each.name: each for each in model.graph.input}
    try:
        return {name: _array(value, declared[name]) for name, value in json.loads(text).items()}
    except BudgetExceeded:
        raise
    except _DAMAGED as error:
        raise ModelError(f"{FIRST} tells no arrays for the inputs: {error!r}") from error


def _loaded(path: str | os.PathLike[str]) -> onnx.ModelProto:
    """
    Raises:
        ModelError: the file is no ONNX model.
    """
    try:
        return onnx.load(path, load_external_data=False)
    except DecodeError as error:
        raise ModelError(f"{os.fspath(path)} is no ONNX file: {error}") from error


def _array(value: Any, declared: onnx.ValueInfoProto) -> Array:
    dtype = onnx.helper.tensor_dtype_to_np_dtype(declared.type.tensor_type.elem_type)
    elements, shape = np.array(value["elements"], dtype), tuple(value["shape"])
    DEFAULT.check("tensor_bytes", math.prod(shape) * dtype.itemsize, declared.name)
    return np.full(shape, elements) if elements.ndim == 0 else elements.reshape(shape)


def take_first_values(model: ir.Model) -> None:
    """Make every state an input that has to be fed, whose first value the metadata tell.

    ONNX Runtime warns of each input that has a value in the file, and some of its providers take
    such a value for a constant, whatever the input is fed.
    """
    graph, pairs = model.graph, json.loads(model.metadata_props.get(PAIRS, "[]"))
    inputs = {value.name: value for value in graph.inputs}
    first = dict[str, Any]()
    for before, _ in pairs:
        if before in graph.initializers:
            first[before] = _told(graph.initializers.pop(before))
            inputs[before].const_value = None
    if first:
        model.metadata_props[FIRST] = json.dumps(first)


def _told(value: ir.Value) -> Any:
    assert value.const_value is not None
    array = value.const_value.array
    elements = array.reshape(-1).tolist()
    same = array.size > 0 and all(each == elements[0] for each in elements)
    return {"shape": list(array.shape), "elements": elements[0] if same else elements}
