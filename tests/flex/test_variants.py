"""What is one value in TensorFlow, and arrays of tensors of TensorFlow 1, which are lists."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from tests.flex.nodes import declared_options
from tests.flex.test_maps import run
from tflite_ort import BridgeError, ExportError, Interpreter, export_onnx
from tflite_ort.schema import ModelBuilder, TensorType
from tflite_ort.schema.builder import SubgraphBuilder

Array = npt.NDArray[Any]
T = TensorType
X = np.float32([1, 2])  # the input of all models
BOTH = pytest.mark.parametrize("providers", [None, []], ids=["ort", "numpy"])


class Nodes:
    """A model whose input is x, [2] of float32."""

    def __init__(self) -> None:
        self._model = ModelBuilder()
        self.graph: SubgraphBuilder = self._model.subgraph("main")
        self.graph.tensor("x", (2,))

    def add(
        self, name: str, inputs: Sequence[str], outputs: dict[str, tuple[Any, T]], **given: Any
    ) -> None:
        for output, (shape, type) in outputs.items():
            self.graph.tensor(output, shape, type)
        options = declared_options(name, given)
        self.graph.operator(f"Flex{name}", list(inputs), list(outputs), options)

    def content(self, *outputs: str) -> bytes:
        self.graph.inputs("x").outputs(*outputs)
        return self._model.write()


VARIANT = ((), T.VARIANT)


@BOTH
def test_optional_values(providers: Sequence[str] | None) -> None:
    nodes = Nodes()
    nodes.add("OptionalFromValue", ["x", "x"], {"some": VARIANT}, Toutput_types=["float"] * 2)
    nodes.add("OptionalNone", [], {"none": VARIANT})
    for name in ("some", "none"):
        nodes.add("OptionalHasValue", [name], {f"has {name}": ((), T.BOOL)})
    told = {"output_types": ["float"] * 2, "output_shapes": [[2], [-1]]}
    both = {"y": ((2,), T.FLOAT32), "z": ((2,), T.FLOAT32)}
    nodes.add("OptionalGetValue", ["some"], both, **told)
    content = nodes.content("has some", "has none", "y", "z")
    has, no, *values = run(content, providers)
    assert (bool(has), bool(no)) == (True, False)
    assert [each.tolist() for each in values] == [[1, 2]] * 2
    with pytest.raises(ExportError, match="FlexOptionalFromValue"):
        export_onnx(content)


def test_no_value_is_refused() -> None:
    nodes = Nodes()
    nodes.add("OptionalNone", [], {"none": VARIANT})
    told = {"output_types": ["float"], "output_shapes": [[2]]}
    nodes.add("OptionalGetValue", ["none"], {"y": ((2,), T.FLOAT32)}, **told)
    with pytest.raises(BridgeError, match="has none"):
        run(nodes.content("y"))


VALUES = np.float32([1, 2, 3, 4, 5, 6])
OUTER, INNER = np.int64([0, 2, 2, 3]), np.int64([0, 1, 4, 6])


def encoded(nodes: Nodes, *splits: Array, batched: bool) -> None:
    """`ragged`: the rows as values, or all as one."""
    names = [f"split{i}" for i in range(len(splits))]
    for name, each in zip(names, splits, strict=True):
        nodes.graph.constant(name, each)
    nodes.graph.constant("values", VALUES)
    told = {"RAGGED_RANK": len(splits), "Tvalues": "float", "Tsplits": "int64"}
    shape = ((1,) if batched else (), T.VARIANT)
    inputs = [*names, "values"]
    nodes.add("RaggedTensorToVariant", inputs, {"ragged": shape}, batched_input=batched, **told)


def decoded(nodes: Nodes, name: str, inner: int, outer: int, rank: int = 1) -> bytes:
    told = {"input_ragged_rank": inner, "output_ragged_rank": outer, "Tvalues": "float"}
    ends = {f"s{i}": ((1,), T.INT64) for i in range(outer)} | {"y": ((1,) * rank, T.FLOAT32)}
    nodes.add("RaggedTensorFromVariant", [name], ends, Tsplits="int64", **told)
    nodes.add("Add", ["y", "y"], {"twice": ((1,) * rank, T.FLOAT32)}, T="float")
    return nodes.content(*ends, "twice")


@BOTH
@pytest.mark.parametrize("splits", [(OUTER, INNER), (np.int64([0, 4, 4, 6]),)], ids=len)
@pytest.mark.parametrize("batched", [True, False])
def test_ragged_tensors_come_back(
    splits: tuple[Array, ...], batched: bool, providers: Sequence[str] | None
) -> None:
    nodes = Nodes()
    encoded(nodes, *splits, batched=batched)
    inner = len(splits) - 1 if batched else -1
    content = decoded(nodes, "ragged", inner, len(splits))
    *found, values, twice = run(content, providers)
    assert [each.tolist() for each in found] == [each.tolist() for each in splits]
    assert (values.tolist(), twice.tolist()) == (VALUES.tolist(), (VALUES * 2).tolist())


@BOTH
def test_ragged_tensors_in_a_list(providers: Sequence[str] | None) -> None:
    """As `map_fn` has them: a list of values, which is stacked."""
    nodes = Nodes()
    encoded(nodes, np.int64([0, 2, 2, 6]), batched=False)
    for name, number in (("shape", -1), ("count", 2), ("first", 0), ("last", 1)):
        nodes.graph.constant(name, np.array(number, np.int32))
    told = {"element_dtype": "variant"}
    nodes.add("TensorListReserve", ["shape", "count"], {"a": VARIANT}, shape_type="int32", **told)
    nodes.add("TensorListSetItem", ["a", "last", "ragged"], {"b": VARIANT}, **told)
    nodes.add("TensorListSetItem", ["b", "first", "ragged"], {"c": VARIANT}, **told)
    nodes.add("TensorListStack", ["c", "shape"], {"all": ((1,), T.VARIANT)}, **told)
    outer, inner, values, _ = run(decoded(nodes, "all", 1, 2), providers)
    assert outer.tolist() == [0, 3, 6] and inner.tolist() == [0, 2, 2, 6, 8, 8, 12]
    assert values.tolist() == [*VALUES, *VALUES]


@BOTH
def test_gradients_of_ragged_tensors_come_back(providers: Sequence[str] | None) -> None:
    nodes = Nodes()
    encoded(nodes, np.int64([0, 2, 2, 6]), batched=True)
    nodes.graph.constant("sizes", np.int32([6]))
    told = {"Tvalues": "float", "Tsplits": "int64"}
    inputs, ends = ["ragged", "split0", "sizes"], {"y": ((6,), T.FLOAT32)}
    nodes.add("RaggedTensorToVariantGradient", inputs, ends, **told)
    assert run(nodes.content("y"), providers)[0].tolist() == VALUES.tolist()


def arrays() -> bytes:
    """An array of four rows: written, scattered, read, gathered and joined."""
    nodes = Nodes()
    for name, number in (("count", 4), ("zero", 0), ("three", 3)):
        nodes.graph.constant(name, np.array(number, np.int32))
    nodes.graph.constant("places", np.int32([2, 1])).constant("order", np.int32([3, 1, 0]))
    nodes.graph.constant("rows", np.float32([[3, 4], [5, 6]])).constant("parts", np.int64([1, 1]))
    flow = ((), T.FLOAT32)
    ends = {"h": ((), T.RESOURCE), "f0": flow}
    nodes.add("TensorArrayV3", ["count"], ends, dtype="float", element_shape=[2])
    nodes.add("TensorArrayWriteV3", ["h", "three", "x", "f0"], {"f1": flow}, T="float")
    nodes.add("TensorArrayScatterV3", ["h", "places", "rows", "f1"], {"f2": flow}, T="float")
    nodes.add("TensorArrayWriteV3", ["h", "zero", "x", "f2"], {"f3": flow}, T="float")
    one = {"row": ((2,), T.FLOAT32)}
    nodes.add("TensorArrayReadV3", ["h", "three", "f3"], one, dtype="float")
    some = {"some": ((3, 2), T.FLOAT32)}
    nodes.add("TensorArrayGatherV3", ["h", "order", "f3"], some, dtype="float", element_shape=[2])
    nodes.add("TensorArraySizeV3", ["h", "f3"], {"n": ((), T.INT32)})
    joined = {"whole": ((8,), T.FLOAT32), "lengths": ((4,), T.INT64)}
    nodes.add("TensorArrayConcatV3", ["h", "f3"], joined, dtype="float")
    nodes.add("TensorArraySplitV3", ["h", "x", "parts", "f0"], {"f4": flow}, T="float")
    part = {"part": ((1,), T.FLOAT32)}
    nodes.graph.constant("one", np.array(1, np.int32))
    nodes.add("TensorArrayReadV3", ["h", "one", "f4"], part, dtype="float")
    nodes.add("TensorArrayCloseV3", ["h"], {})
    return nodes.content("row", "some", "n", "whole", "lengths", "part")


WANT = [[1, 2], [[1, 2], [5, 6], [1, 2]], 4, [1, 2, 5, 6, 3, 4, 1, 2], [2, 2, 2, 2], [2]]


@BOTH
def test_arrays_of_tensors(providers: Sequence[str] | None) -> None:
    assert [each.tolist() for each in run(arrays(), providers)] == WANT


def test_arrays_export(tmp_path: Path) -> None:
    export_onnx(arrays(), tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(
        tmp_path / "model.onnx", providers=["CPUExecutionProvider"]
    )
    assert [each.tolist() for each in session.run(None, {"x": X})] == WANT


def test_files(tmp_path: Path) -> None:
    """A file is written and read that the model is given; another is refused."""
    model = ModelBuilder()
    graph = model.subgraph("main").tensor("name", (), T.STRING).tensor("y", (), T.STRING)
    graph.constant("other", np.array(str(tmp_path).encode() + b"/other", object))
    graph.constant("content", np.array(b"written", object))
    graph.operator("FlexWriteFile", ["name", "content"], [], declared_options("WriteFile", {}))
    graph.operator("FlexReadFile", ["name"], ["y"], declared_options("ReadFile", {}))
    graph.inputs("name").outputs("y")
    found = interpreted(model.write(), str(tmp_path / "file").encode())
    assert found == b"written" and (tmp_path / "file").read_bytes() == b"written"
    assert not (tmp_path / "other").exists()


def test_a_file_that_is_not_given_is_refused(tmp_path: Path) -> None:
    model = ModelBuilder()
    graph = model.subgraph("main").tensor("name", (), T.STRING).tensor("y", (), T.STRING)
    (tmp_path / "other").write_bytes(b"x")
    graph.constant("other", np.array(str(tmp_path / "other").encode(), object))
    graph.operator("FlexReadFile", ["other"], ["y"], declared_options("ReadFile", {}))
    graph.inputs("name").outputs("y")
    with pytest.raises(BridgeError, match="is no path that the model is given"):
        interpreted(model.write(), b"elsewhere")


def interpreted(content: bytes, name: bytes) -> bytes:
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    (given,) = interpreter.get_input_details()
    interpreter.set_tensor(given["index"], np.array(name, object))
    interpreter.invoke()
    return bytes(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).item())
