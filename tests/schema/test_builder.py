"""Models that are built by name: what the file says, what runs, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.oracle import litert_interpreter
from tflite_ort import Interpreter
from tflite_ort.schema import (
    AddOptions,
    IfOptions,
    ModelBuilder,
    ModelError,
    MulOptions,
    Op,
    QuantizationParameters,
    SubgraphBuilder,
    TensorType,
    read_model,
)
from tflite_ort.schema.file.element_types import PACKED_BITS
from tflite_ort.schema.file.strings import decoded
from tflite_ort.schema.values.semantics import quantized_range, unpack
from tflite_ort.versioning import update_versions


def one(*calls: Callable[[SubgraphBuilder], Any]) -> ModelBuilder:
    """A model of one subgraph on which `calls` were made."""
    builder = ModelBuilder()
    graph = builder.subgraph("main")
    for call in calls:
        call(graph)
    return builder


def add_and_multiply() -> ModelBuilder:
    """IF flag, then x + k, else x * k; both also by name."""
    builder = ModelBuilder("two ways")
    main, then, otherwise = (builder.subgraph(name) for name in ("main", "then", "else"))
    main.tensor("flag", (), TensorType.BOOL).tensor("x", (2,)).tensor("y", (2,))
    main.operator(Op.IF, ["flag", "x"], ["y"], IfOptions(then.index, otherwise.index))
    main.inputs("flag", "x").outputs("y").signature("choose")
    for graph, op, options in ((then, Op.ADD, AddOptions()), (otherwise, Op.MUL, MulOptions())):
        graph.tensor("x", (2,)).constant("k", np.float32([2, 3])).tensor("y", (2,))
        graph.operator(op, ["x", "k"], ["y"], options).inputs("x").outputs("y")
        graph.signature(graph.name, {"value": "x"}, {"result": "y"})
    return builder


def test_subgraphs_and_signatures_run_as_in_litert() -> None:
    content = add_and_multiply().write()
    x = np.float32([4, 5])
    for interpreter in (litert_interpreter(content), Interpreter(model_content=content)):
        choose = interpreter.get_signature_runner("choose")
        for flag, want in ((True, [6, 8]), (False, [8, 15])):
            assert choose(flag=np.array(flag), x=x)["y"].tolist() == want
        assert interpreter.get_signature_runner("then")(value=x)["result"].tolist() == [6, 8]


def test_the_file_says_what_was_built() -> None:
    read = read_model(add_and_multiply().metadata("about", b"a test").write())
    assert (read.version, read.description) == (3, "two ways")
    assert [graph.name for graph in read.subgraphs] == ["main", "then", "else"]
    assert [code.builtin_code for code in read.operator_codes] == [Op.IF, Op.ADD, Op.MUL]
    assert [entry.name for entry in read.metadata] == ["about"]
    about = read.buffers[read.metadata[0].buffer].data
    assert about is not None and about.tobytes() == b"a test"
    assert read.buffers[0].data is None


def test_tensors_keep_what_they_are_declared_with() -> None:
    scales = QuantizationParameters.affine([0.5, 0.25], [3, -3], axis=1)
    (graph,) = read_model(
        one(
            lambda g: g.tensor("open", (-1, 4)),
            lambda g: g.tensor("told", (0,), shape_signature=(-1,)),
            lambda g: g.tensor("any rank", None),
            lambda g: g.tensor("state", (2,), is_variable=True),
            lambda g: g.constant("weights", np.zeros((3, 2), np.int8), quantization=scales),
        ).write()
    ).subgraphs
    opened, told, unranked, state, weights = graph.tensors
    assert (opened.shape, opened.shape_signature) == ((1, 4), (-1, 4))
    assert (told.shape, told.shape_signature) == ((0,), (-1,))
    assert (unranked.shape, unranked.has_rank, state.has_rank) == ((), False, True)
    assert [t.is_variable for t in graph.tensors] == [False, False, False, True, False]
    read = weights.quantization
    assert read is not None and read.scale is not None and read.zero_point is not None
    assert read.scale.tolist() == [0.5, 0.25]
    assert (read.zero_point.tolist(), read.quantized_dimension) == ([3, -3], 1)


def test_one_zero_point_goes_for_all_scales() -> None:
    parameters = QuantizationParameters.affine([0.5, 0.25], 7)
    assert parameters.zero_point is not None and parameters.zero_point.tolist() == [7, 7]


@pytest.mark.parametrize(
    ("data", "type"),
    [
        (1.5, TensorType.FLOAT32),
        ([1, 2], TensorType.INT32),
        ([True, False], TensorType.BOOL),
        (np.float64(1.5), TensorType.FLOAT64),
        (np.zeros(2, np.int64), TensorType.INT64),
        (np.zeros(2, np.uint8), TensorType.UINT8),
        (np.zeros(2, np.float16), TensorType.FLOAT16),
        (np.zeros(2, ml_dtypes.bfloat16), TensorType.BFLOAT16),
        (np.zeros(2, np.complex64), TensorType.COMPLEX64),
        (["one", "two"], TensorType.STRING),
    ],
)
def test_the_type_of_a_constant_follows_from_its_data(data: Any, type: TensorType) -> None:
    graph = read_model(one(lambda g: g.constant("k", data)).write()).subgraphs[0]
    assert graph.tensors[0].type is type
    assert graph.tensors[0].shape == np.shape(data)


def test_numbers_get_the_type_that_is_asked_for() -> None:
    model = read_model(one(lambda g: g.constant("k", [1, 2], TensorType.INT64)).write())
    data = model.buffers[1].data
    assert data is not None and data.view(np.int64).tolist() == [1, 2]


@pytest.mark.parametrize("type", PACKED_BITS, ids=lambda type: type.name)
@given(data=st.data())
def test_small_codes_are_packed(type: TensorType, data: st.DataObject) -> None:
    low, high = quantized_range(type)
    dtype = np.uint8 if type is TensorType.UINT4 else np.int8
    size = data.draw(st.integers(0, 9))
    codes = data.draw(arrays(dtype, (size,), elements=st.integers(low, high)))
    stored = read_model(one(lambda g: g.constant("k", codes, type)).write()).buffers[1].data
    bits = PACKED_BITS[type]
    octets = np.zeros(0, np.uint8) if stored is None else stored
    assert octets.size == -(-size * bits // 8)
    assert unpack(octets, size, bits, signed=low < 0).tolist() == codes.tolist()


@given(st.lists(st.text() | st.binary(), max_size=5))
def test_texts_are_stored_as_bytes(texts: list[str | bytes]) -> None:
    content = one(lambda g: g.constant("k", np.array(texts, np.object_), TensorType.STRING))
    data = read_model(content.write()).buffers[1].data
    assert data is not None
    want = [text.encode() if isinstance(text, str) else text for text in texts]
    assert decoded(data, (len(texts),)).tolist() == want


def test_a_view_of_an_array_is_stored_in_its_own_order() -> None:
    columns: npt.NDArray[np.float32] = np.arange(6, dtype=np.float32).reshape(2, 3).T
    data = read_model(one(lambda g: g.constant("k", columns)).write()).buffers[1].data
    assert data is not None and data.view(np.float32).tolist() == [0, 3, 1, 4, 2, 5]


def test_a_custom_operator_is_called_by_its_name() -> None:
    (model, raw) = (
        read_model(
            one(
                lambda g: g.tensor("x", (2,)).tensor("y", (2,)),
                lambda g, options=options: g.operator("Own", ["x", None], ["y"], options),
            ).write()
        )
        for options in ({"scale": 2}, b"\x01\x02")
    )
    code = model.operator_codes[0]
    assert (code.builtin_code, code.custom_code) == (Op.CUSTOM, "Own")
    assert model.subgraphs[0].operators[0].inputs == (0, None)
    stored = raw.subgraphs[0].operators[0].custom_options
    assert stored is not None and stored.tobytes() == b"\x01\x02"


def test_one_code_serves_all_operators_of_a_version() -> None:
    builder = one(lambda g: g.tensor("x", (2,)).tensor("y", (2,)))
    graph = builder.subgraph("more").tensor("x", (2,)).tensor("y", (2,))
    for version in (1, 2, 1):
        graph.operator(Op.ADD, ["x", "x"], ["y"], AddOptions(), version=version)
    model = builder.model()
    assert [code.version for code in model.operator_codes] == [1, 2]
    assert [operator.opcode_index for operator in model.subgraphs[1].operators] == [0, 1, 0]


def test_versions_can_be_brought_up_to_what_is_needed() -> None:
    codes = QuantizationParameters.affine(0.5)
    builder = one(
        lambda g: g.tensor("x", (2,), TensorType.INT8, codes),
        lambda g: g.tensor("y", (2,), TensorType.INT8, codes),
        lambda g: g.operator(Op.ADD, ["x", "x"], ["y"], AddOptions()),
    )
    assert builder.model().operator_codes[0].version == 1
    assert update_versions(builder.model()).operator_codes[0].version == 2


WRONG: list[tuple[Callable[[SubgraphBuilder], Any], str]] = [
    (lambda g: g.tensor("x", (2,)), "there is a tensor 'x' already"),
    (lambda g: g.constant("x", 1.0), "there is a tensor 'x' already"),
    (lambda g: g.tensor("y", (2, -2)), r"tensor 'y' has a negative size: \(2, -2\)"),
    (lambda g: g.inputs("z"), "there is no tensor 'z'; there is 'x'"),
    (lambda g: g.operator(Op.NEG, ["x"], ["z"]), "there is no tensor 'z'"),
    (lambda g: g.operator(Op.ADD, ["x", "x"], ["x"], MulOptions()), "ADD does not take MulOptions"),
    (lambda g: g.operator("Own", ["x"], ["x"], AddOptions()), "'Own' does not take AddOptions"),
    (lambda g: g.operator(Op.NEG, ["x"], ["x"], b"\0"), "NEG takes no custom options"),
    (
        lambda g: g.constant("k", np.zeros(2), TensorType.FLOAT32),
        "constant 'k': FLOAT32 does not hold float64",
    ),
    (lambda g: g.constant("k", np.zeros(2, "M8[s]")), "TFLite has no type of datetime64"),
    (lambda g: g.constant("k", [1, 2], shape=(3,)), r"2 values for the shape \(3,\)"),
    (lambda g: g.constant("k", b"ab"), "of bytes needs a type and a shape"),
    (
        lambda g: g.constant("k", np.array([8], np.int8), TensorType.INT4),
        "INT4 holds -8 to 7 only",
    ),
    (lambda g: g.signature("f", {"a": "z"}), "there is no tensor 'z'"),
    (lambda g: g.signature("f").signature("f"), "there is a signature 'f' already"),
]


@pytest.mark.parametrize(("call", "reason"), WRONG)
def test_mistakes_are_named(call: Callable[[SubgraphBuilder], Any], reason: str) -> None:
    graph = ModelBuilder().subgraph("main").tensor("x", (2,))
    with pytest.raises(ModelError, match=reason):
        call(graph)


def test_a_model_needs_a_subgraph_and_metadata_a_name_of_its_own() -> None:
    with pytest.raises(ModelError, match="needs a subgraph"):
        ModelBuilder().write()
    with pytest.raises(ModelError, match="there is metadata 'a' already"):
        ModelBuilder().metadata("a", b"").metadata("a", b"")
