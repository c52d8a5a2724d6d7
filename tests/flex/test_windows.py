"""Windows in the layout that TensorFlow refuses on a CPU, of open sizes, and of hostile sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.flex.cases import Case
from tests.flex.cases_convolution import CASES as CONVOLUTIONS
from tests.flex.cases_pooling import CASES as POOLS
from tests.flex.nodes import declared_options
from tests.flex.test_cases import exported, invoked
from tflite_ort import BridgeError, ExportError, Interpreter, export_onnx
from tflite_ort.schema import ModelBuilder

Array = npt.NDArray[Any]

PLACES = ("ksize", "strides", "dilations")
FLOATS = [
    case
    for case in (*POOLS, *CONVOLUTIONS)
    if case.inputs[0].dtype == np.float32
    and case.operator.startswith(("Avg", "Max", "Conv", "Dep"))
    if case.operator not in ("MaxPoolV2", "MaxPoolWithArgmax")
]


def channels_first(case: Case) -> Case:
    """The same with the channels before rows and columns."""
    x = np.moveaxis(case.inputs[0], -1, 1).copy()
    attributes = dict(case.attributes)
    for name in PLACES:
        if name in attributes:
            first, *inside, last = attributes[name]
            attributes[name] = (first, last, *inside)
    if attributes.get("explicit_paddings"):
        pads = attributes["explicit_paddings"]
        attributes["explicit_paddings"] = (*pads[:2], 0, 0, *pads[2:-2])
    attributes["data_format"] = "NCDHW" if x.ndim == 5 else "NCHW"
    return Case(case.operator, [x, *case.inputs[1:]], attributes, case.constants)


@pytest.mark.parametrize("case", FLOATS, ids=str)
def test_channels_first(case: Case, tmp_path: Path) -> None:
    """The results are those of the other layout, moved."""
    (want,), other = invoked([case], []), channels_first(case)
    for (got,) in (invoked([other], []), invoked([other], None), exported([other], tmp_path)):
        np.testing.assert_allclose(np.moveaxis(got, 1, -1), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", FLOATS, ids=str)
@pytest.mark.parametrize("providers", [[], None], ids=["numpy", "ort"])
def test_resized(case: Case, providers: list[str] | None) -> None:
    """An image of other sizes than the file's."""
    x = np.concatenate([case.inputs[0]] * 2, axis=2)
    larger = Case(case.operator, [x, *case.inputs[1:]], case.attributes, case.constants)
    (want,) = invoked([larger], [])
    interpreter = Interpreter(model_content=case.model(), providers=providers)
    for detail, array in zip(interpreter.get_input_details(), larger.feeds(), strict=True):
        interpreter.resize_tensor_input(detail["index"], array.shape)
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), larger.feeds(), strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    got = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


HUGE = 1 << 40
IMAGE = np.ones((1, 4, 4, 1), np.float32)
HOSTILE: list[tuple[str, dict[str, Any]]] = [
    ("MaxPool", {"ksize": (1, HUGE, HUGE, 1), "strides": (1, 1, 1, 1), "padding": "VALID"}),
    ("MaxPool", {"ksize": (1, 0, 1, 1), "strides": (1, 1, 1, 1), "padding": "SAME"}),
    ("MaxPool", {"ksize": (1, -2, 1, 1), "strides": (1, 1, 1, 1), "padding": "SAME"}),
    ("MaxPool", {"ksize": (1, 2, 2, 1), "strides": (1, 0, 1, 1), "padding": "SAME"}),
    ("MaxPool", {"ksize": (1, 2, 2, 2), "strides": (1, 1, 1, 1), "padding": "SAME"}),
    ("AvgPool", {"ksize": (1, 2, 2, 1, 1), "strides": (1, 1, 1, 1), "padding": "SAME"}),
    ("AvgPool", {"ksize": (1, 2, 2, 1), "strides": (1, 1, 1, 1, 1), "padding": "SAME"}),
    (
        "MaxPool",
        {"ksize": (1, HUGE, 2, 1), "strides": (1, 1, 1, 1), "padding": "EXPLICIT"}
        | {"explicit_paddings": (0, 0, HUGE - 1, HUGE - 1, 0, 0, 0, 0)},
    ),
    (
        "ExtractImagePatches",
        {"ksizes": (1, HUGE, 9, 1), "strides": (1, 1, 1, 1), "rates": (1, 1, 1, 1)}
        | {"padding": "SAME"},
    ),
]


@pytest.mark.parametrize(("name", "attributes"), HOSTILE)
@pytest.mark.parametrize("providers", [[], None], ids=["numpy", "ort"])
def test_hostile(name: str, attributes: dict[str, Any], providers: list[str] | None) -> None:
    """Windows that cannot be are refused."""
    with pytest.raises(BridgeError):
        invoked([Case(name, [IMAGE], attributes)], providers)


@pytest.mark.parametrize("providers", [[], None], ids=["numpy", "ort"])
def test_window_beyond_the_image(providers: list[str] | None) -> None:
    """A window of any size holds the whole image, with padding that keeps the size."""
    attributes = {"ksize": (1, HUGE, HUGE, 1), "strides": (1, 1, 1, 1), "padding": "SAME"}
    (got,) = invoked([Case("MaxPool", [IMAGE * 3], attributes)], providers)
    np.testing.assert_array_equal(got, IMAGE * 3)


def test_greatest_number() -> None:
    """What is no number is passed over in numpy, as TensorFlow does; ONNX Runtime may take it."""
    x = np.arange(32, dtype=np.float32).reshape(1, 2, 16, 1)
    x.reshape(-1)[[0, 3, 20, 23]] = np.nan
    attributes = {"ksize": (1, 2, 2, 1), "strides": (1, 2, 2, 1), "padding": "VALID"}
    (got,) = invoked([Case("MaxPool", [x], attributes)], [])
    np.testing.assert_array_equal(got.reshape(-1), [17, 19, 21, 22, 25, 27, 29, 31])


def test_an_export_tells_why_open_sizes_stay_closed() -> None:
    """The sizes of 1 that stand for the open ones do not fit; the reason for which they are not
    left open is told too."""
    model = ModelBuilder()
    graph = model.subgraph("main").tensor("x", (1, 1, 1, 2), shape_signature=(1, -1, -1, 2))
    graph.tensor("y", (1, 1, 1, 32), shape_signature=(1, -1, -1, 32))
    given = {"ksizes": [1, 4, 4, 1], "strides": [1, 4, 4, 1], "rates": [1] * 4, "T": "float"}
    options = declared_options("ExtractImagePatches", {**given, "padding": "VALID"})
    graph.operator("FlexExtractImagePatches", ["x"], ["y"], options)
    graph.inputs("x").outputs("y")
    content = model.write()
    with pytest.raises(ExportError, match="with them open 1 of 1 operators cannot be exported"):
        export_onnx(content)
    made = export_onnx(content, input_shapes={"x": (1, 8, 8, 2)})
    assert made.graph.node
