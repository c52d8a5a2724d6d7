"""TensorFlow's operators: their nodes are read, and each computes what TensorFlow says it does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from flatbuffers import flexbuffers
from hypothesis import given
from hypothesis import strategies as st

from tests.flex.nodes import Attributes, flex_model, flex_options
from tests.models import model_path
from tests.one_op import T, assert_close
from tests.ops.custom_op import by_exported, by_numpy, by_ort, custom_model, interpreter_of
from tflite_ort import ModelError, UnresolvedOperator
from tflite_ort.command.demo import digits_model
from tflite_ort.schema import TensorType
from tflite_ort.schema.file.node_def import node_def

Array = npt.NDArray[Any]
INT64, STRING = TensorType.INT64, TensorType.STRING

# Nodes -------------------------------------------------------------------------------------------


def attributes_of(options: bytes) -> Attributes:
    found = node_def(options, "FlexAny_0").attributes
    return {name: value for name, (_, value) in found.items()}


values = (
    st.text(max_size=9)
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(width=32, allow_nan=False)
)
names = st.text(st.characters(codec="ascii", exclude_characters="\0"), min_size=1, max_size=9)


@given(names, st.dictionaries(names, values, max_size=4))
def test_attributes_come_back(name: str, attributes: Attributes) -> None:
    assert attributes_of(flex_options(name, attributes)) == attributes


@given(st.dictionaries(names, values, max_size=4), st.data())
def test_damaged_nodes_are_refused_or_read(attributes: Attributes, data: st.DataObject) -> None:
    damaged = bytearray(flex_options("Name", attributes))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        attributes_of(bytes(damaged[data.draw(st.integers(0, 3)) :]))
    except ModelError as error:
        assert "FlexAny_0" in str(error) or "not a flexbuffer" in str(error)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (b"", "not a flexbuffer"),
        (bytes(flexbuffers.Dumps(["AddV2"])), "not a name and a node"),
        (bytes(flexbuffers.Dumps({"a": 1})), "not a name and a node"),
        (bytes(flexbuffers.Dumps(["AddV2", 7])), "the second of the options is not a node"),
        (bytes(flexbuffers.Dumps(["AddV2", b"\x12\x09Ad"])), "a field leaves its message"),
        (bytes(flexbuffers.Dumps(["AddV2", b"\x12\x03Sub"])), "not of operator 'AddV2'"),
    ],
)
def test_other_options_are_refused(options: bytes, reason: str) -> None:
    model = custom_model("FlexAddV2", [T((3,)), T((3,))], [T((3,))], options)
    with pytest.raises(ModelError, match=reason):
        interpreter_of(model)


# Operators ---------------------------------------------------------------------------------------


def check(model: bytes, feeds: list[Array], want: Array, folder: Path) -> None:
    found = (by_numpy(model, feeds), by_ort(model, feeds), by_exported(model, feeds, folder))
    for where, (got,) in zip(("numpy", "ort", "exported"), found, strict=True):
        assert_close(got, want, 0, 1e-6, where)


UNARY: list[tuple[str, Callable[[Array], Array]]] = [
    ("Atan", np.arctan),
    ("ATAN", np.arctan),
    ("Sinh", np.sinh),
]


@pytest.mark.parametrize(("name", "function"), UNARY, ids=[name for name, _ in UNARY])
def test_unary(name: str, function: Callable[[Array], Array], tmp_path: Path) -> None:
    x = np.linspace(-9, 9, 24).astype(np.float32).reshape(2, 3, 4)
    model = custom_model(name, [T(x.shape)], [T(x.shape)], {"T": 0})
    check(model, [x], function(x).astype(np.float32), tmp_path)


def test_other_models_import_nothing_of_it() -> None:
    """What TensorFlow's operators need is not there when a model without them runs, exports or is
    inspected, nor what proves that a batch of them is one."""
    program = """
import contextlib
import io
import sys
from tflite_ort import Interpreter, export_onnx
from tflite_ort.command.cli import main
interpreter = Interpreter(sys.argv[1])
interpreter.allocate_tensors()
interpreter.invoke()
export_onnx(sys.argv[1])
with contextlib.redirect_stdout(io.StringIO()) as told, contextlib.suppress(SystemExit):
    sys.argv[1:] = ["inspect", sys.argv[1]]
    main()
assert "CONV_2D" in told.getvalue()
print(*sys.modules)
"""
    given = [sys.executable, "-c", program, str(digits_model("float32"))]
    loaded = subprocess.run(given, capture_output=True, text=True, check=True).stdout.split()
    assert "tflite_ort.interpreter.interpreter" in loaded
    found = [name for name in loaded if "flex" in name or name.endswith((".proofs", ".node_def"))]
    assert not found


def test_names_are_case_sensitive() -> None:
    model = custom_model("atan", [T((2,))], [T((2,))])
    with pytest.raises(UnresolvedOperator, match="Encountered unresolved custom op: atan"):
        interpreter_of(model)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumsum(exclusive: bool, reverse: bool, tmp_path: Path) -> None:
    x = np.arange(12, dtype=np.int64).reshape(3, 4)
    inputs, outputs = [T((3, 4), INT64), T.constant(np.int32(1))], [T((3, 4), INT64)]
    model = flex_model("Cumsum", inputs, outputs, exclusive=exclusive, reverse=reverse)
    ordered = x[:, ::-1] if reverse else x
    sums = np.cumsum(ordered, axis=1) - (ordered if exclusive else 0)
    check(model, [x], sums[:, ::-1] if reverse else sums, tmp_path)


@pytest.mark.parametrize(
    ("bounds", "masks", "want"),
    [
        (([1, 0], [3, 4], [1, 2]), {}, np.s_[1:3, 0:4:2]),
        (([1, -1], [3, 0], [1, -1]), {"begin_mask": 1}, np.s_[:3, -1:0:-1]),
        (([1, 1], [0, 3], [1, 1]), {"end_mask": 1}, np.s_[1:, 1:3]),
        (([1, 1], [2, 3], [1, 1]), {"shrink_axis_mask": 1}, np.s_[1, 1:3]),
        (([0, 1], [0, 3], [1, 1]), {"ellipsis_mask": 1}, np.s_[..., 1:3]),
        (([0, 1], [0, 3], [1, 1]), {"new_axis_mask": 1}, np.s_[None, 1:3]),
    ],
)
def test_strided_slice(
    bounds: tuple[list[int], ...], masks: dict[str, int], want: Any, tmp_path: Path
) -> None:
    x = np.arange(20, dtype=np.float32).reshape(4, 5)
    constants = [T.constant(np.array(bound, np.int64)) for bound in bounds]
    model = flex_model("StridedSlice", [T((4, 5)), *constants], [T((1, 1))], **masks)
    check(model, [x], x[want], tmp_path)


# Models ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("litert__softplus_flex.tflite", lambda x: np.log1p(np.exp(x))),
        ("litert__custom_sinh.tflite", np.sinh),
        ("tf__atan_custom.tflite", lambda x: np.arctan(x + np.float32(1))),
    ],
)
def test_model(name: str, function: Callable[[Array], Array], tmp_path: Path) -> None:
    content = model_path(name).read_bytes()
    (detail,) = interpreter_of(content).get_input_details()
    x = np.random.default_rng(0).uniform(-2, 2, detail["shape"]).astype(np.float32)
    found = (by_numpy(content, [x]), by_ort(content, [x]), by_exported(content, [x], tmp_path))
    for (got,) in found:
        assert_close(got, function(x), 0, 1e-5, name)


def test_additions(tmp_path: Path) -> None:
    content = model_path("litert__multi_add_flex.tflite").read_bytes()
    count = len(interpreter_of(content).get_input_details())
    feeds = [np.array([1.5 + i], np.float32) for i in range(count)]
    want = by_numpy(content, feeds)
    assert len(want) == 2
    for outputs in (by_ort(content, feeds), by_exported(content, feeds, tmp_path)):
        np.testing.assert_array_equal(outputs, want)
