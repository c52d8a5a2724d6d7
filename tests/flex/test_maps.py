"""Maps from tensors to tensors: an operator gives a map of its own, and the one before stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.flex.cases import texts
from tests.flex.nodes import declared_options
from tflite_ort import BridgeError, ExportError, Interpreter, export_onnx
from tflite_ort.schema import ModelBuilder, TensorType

Array = npt.NDArray[Any]
T = TensorType


class Maps:
    """A model whose first input is x, [2] of float32, and that keeps it under keys.

    Args:
        key: the type of keys.
    """

    def __init__(self, key: str = "int32") -> None:
        self._model = ModelBuilder()
        self._graph = self._model.subgraph("main")
        self._types = {"key_dtype": key, "value_dtype": "float"}
        self._graph.tensor("x", (2,)).tensor("empty", (), T.VARIANT)
        self._graph.operator(
            "FlexEmptyTensorMap", [], ["empty"], declared_options("EmptyTensorMap", {})
        )

    def key(self, name: str, value: Array) -> None:
        self._graph.constant(name, value)

    def add(
        self,
        name: str,
        inputs: Sequence[str],
        output: str,
        type: T = T.VARIANT,
        rank: int = 0,
    ) -> None:
        given = {k: v for k, v in self._types.items() if name not in _TYPES or k in _TYPES[name]}
        self._graph.tensor(output, (1,) * rank, type)
        self._graph.operator(f"Flex{name}", list(inputs), [output], declared_options(name, given))

    def content(self, *outputs: str) -> bytes:
        self._graph.inputs("x").outputs(*outputs)
        return self._model.write()


_TYPES: dict[str, Sequence[str]] = {
    "TensorMapHasKey": ("key_dtype",),
    "TensorMapStackKeys": ("key_dtype",),
    "TensorMapSize": (),
}


def run(content: bytes, providers: Sequence[str] | None = None) -> list[Array]:
    interpreter = Interpreter(model_content=content, providers=providers)
    interpreter.allocate_tensors()
    (x,) = interpreter.get_input_details()
    interpreter.set_tensor(x["index"], np.float32([1, 2]))
    interpreter.invoke()
    return [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]


@pytest.mark.parametrize("providers", [None, []], ids=["ort", "numpy"])
@pytest.mark.parametrize("text", [False, True])
def test_maps(text: bool, providers: Sequence[str] | None) -> None:
    maps = Maps("string" if text else "int32")
    one, two = (texts(b"a", b"b") if text else np.int32([5, -7]))[:, None]
    for name, value in (("one", one), ("two", two), ("other", one)):
        maps.key(name, value)
    maps.add("TensorMapInsert", ["empty", "one", "x"], "first")
    maps.add("TensorMapInsert", ["first", "two", "x"], "both")
    maps.add("TensorMapInsert", ["both", "other", "x"], "same")
    maps.add("TensorMapErase", ["same", "one"], "rest")
    maps.add("TensorMapSize", ["first"], "size of first", T.INT32)
    maps.add("TensorMapSize", ["same"], "size of same", T.INT32)
    maps.add("TensorMapHasKey", ["rest", "one"], "has one", T.BOOL)
    maps.add("TensorMapHasKey", ["rest", "two"], "has two", T.BOOL)
    maps.add("TensorMapLookup", ["same", "two"], "value", T.FLOAT32, 1)
    maps.add("TensorMapStackKeys", ["same"], "keys", T.STRING if text else T.INT32, 2)
    names = ("size of first", "size of same", "has one", "has two", "value", "keys")
    content = maps.content(*names)
    *counts, value, keys = run(content, providers)
    assert [each.item() for each in counts] == [1, 2, False, True]
    np.testing.assert_array_equal(value, [1, 2])
    assert keys.tolist() == [one.tolist(), two.tolist()]
    with pytest.raises(ExportError, match="FlexTensorMapInsert"):
        export_onnx(content)


@pytest.mark.parametrize("name", ["TensorMapLookup", "TensorMapErase"])
def test_a_key_that_is_not_there(name: str) -> None:
    maps = Maps()
    maps.key("one", np.int32([1]))
    maps.add(name, ["empty", "one"], "y", T.FLOAT32 if name == "TensorMapLookup" else T.VARIANT)
    if name == "TensorMapErase":
        maps.add("TensorMapSize", ["y"], "size", T.INT32)
    with pytest.raises(BridgeError, match="does not have this key"):
        run(maps.content("size" if name == "TensorMapErase" else "y"))
