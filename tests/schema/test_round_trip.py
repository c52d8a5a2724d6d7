"""What read_model reads, write_model writes, field for field."""

from __future__ import annotations

import struct
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models import MODELS_DIR, model_path, model_paths
from tests.oracle import litert
from tests.schema.generated import OPTIONS, models, tables
from tflite_ort.schema import (
    AddOptions,
    Buffer,
    Conv2DOptions,
    LeakyReluOptions,
    Metadata,
    Model,
    Op,
    Operator,
    OperatorCode,
    Padding,
    QuantizationParameters,
    SubGraph,
    Table,
    Tensor,
    read_model,
    write_model,
)

EVERYTHING_OUTSIDE = 0
REAL = sorted(MODELS_DIR.glob("*.tflite"))


def with_options(options: Table | None, code: Op = Op.ADD) -> Model:
    operator = Operator(options=options)
    return Model(
        version=3,
        operator_codes=(OperatorCode(code),),
        subgraphs=(SubGraph(operators=(operator,)), SubGraph()),
    )


def test_models_are_there() -> None:
    assert model_paths()


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.stem)
def test_real_model(path: Path) -> None:
    model = read_model(path)
    written = write_model(model)
    assert read_model(written) == model
    assert write_model(read_model(written)) == written
    assert read_model(write_model(model, inline_limit=EVERYTHING_OUTSIDE)) == model


@given(model=models())
def test_generated_model(model: Model) -> None:
    assert read_model(write_model(model)) == model
    assert read_model(write_model(model, inline_limit=EVERYTHING_OUTSIDE)) == model


@pytest.mark.parametrize("cls", OPTIONS, ids=lambda cls: cls.__name__)
def test_default_options(cls: type[Table]) -> None:
    (operator,) = read_model(write_model(with_options(cls()))).subgraphs[0].operators
    assert operator.options == cls()


@given(options=st.sampled_from(OPTIONS).flatmap(tables))
def test_generated_options(options: Table) -> None:
    (operator,) = read_model(write_model(with_options(options))).subgraphs[0].operators
    assert operator.options == options
    assert hash(operator.options) == hash(options)


@pytest.mark.parametrize("code", [Op.ADD, Op.BATCH_MATMUL, Op.STABLEHLO_CASE])
def test_operator_code_is_the_larger_of_both_fields(code: Op) -> None:
    """Codes beyond 126 do not fit the narrow field, which then holds 127."""
    data = write_model(with_options(None, code))
    assert read_model(data).operator_codes[0].builtin_code is code
    assert (b"\x7f" in data) == (code >= 127)


def test_absent_and_empty() -> None:
    model = replace(
        with_options(None),
        subgraphs=(
            SubGraph(
                tensors=(Tensor(), Tensor(shape_signature=(), name="b")),
                operators=(Operator(), Operator(custom_options=np.empty(0, np.uint8))),
            ),
        ),
        buffers=(Buffer(), Buffer(np.empty(0, np.uint8))),
    )
    read = read_model(write_model(model))
    absent, empty = read.subgraphs[0].tensors
    assert absent.shape_signature is None
    assert empty.shape_signature == ()
    assert absent.name == ""
    assert read.operator_codes[0].custom_code is None
    assert [op.custom_options is None for op in read.subgraphs[0].operators] == [True, False]
    assert [buffer.data is None for buffer in read.buffers] == [True, False]
    assert read == model


def test_empty_quantization_vectors_are_absent() -> None:
    none = np.empty(0, np.float32)
    quantization = QuantizationParameters(scale=none, zero_point=none.astype(np.int64))
    model = replace(
        with_options(None), subgraphs=(SubGraph(tensors=(Tensor(quantization=quantization),)),)
    )
    (tensor,) = read_model(write_model(model)).subgraphs[0].tensors
    assert tensor.quantization == QuantizationParameters()


def test_left_out_inputs_are_none() -> None:
    graph = SubGraph(tensors=(Tensor(),), operators=(Operator(inputs=(0, None), outputs=(0,)),))
    data = write_model(replace(with_options(None), subgraphs=(graph,)))
    assert struct.pack("<3i", 2, 0, -1) in data
    assert read_model(data).subgraphs[0].operators[0].inputs == (0, None)


@pytest.mark.parametrize("outside", [False, True])
def test_constants_are_aligned(outside: bool) -> None:
    arrays = [np.full(size, size, np.uint8) for size in (0, 1, 5, 16, 33)]
    model = replace(with_options(None), buffers=tuple(Buffer(array) for array in arrays))
    data = np.frombuffer(write_model(model, inline_limit=0 if outside else 100), np.uint8)
    for buffer, array in zip(read_model(data.tobytes()).buffers, arrays, strict=True):
        assert buffer.data is not None
        assert buffer.data.tobytes() == array.tobytes()
    for buffer in read_model(data.data).buffers[1:]:
        assert buffer.data is not None
        assert (buffer.data.ctypes.data - data.ctypes.data) % 16 == 0


def test_shared_data_outside_is_written_once() -> None:
    data = np.arange(5000).astype(np.uint8)
    model = replace(with_options(None), buffers=(Buffer(), Buffer(data), Buffer(data)))
    written = write_model(model, inline_limit=EVERYTHING_OUTSIDE)
    assert len(written) < 2 * data.size
    _, first, second = read_model(written).buffers
    assert first.data is not None
    assert second.data is not None
    assert np.shares_memory(first.data, second.data)


class TestNothingIsCopied:
    NAME = "mlperf-tiny__kws_ref_model.tflite"

    def test_constants_share_the_bytes(self) -> None:
        content = model_path(self.NAME).read_bytes()
        whole = np.frombuffer(content, np.uint8)
        model = read_model(content)
        arrays = [buffer.data for buffer in model.buffers if buffer.data is not None]
        arrays += [
            tensor.quantization.scale
            for tensor in model.subgraphs[0].tensors
            if tensor.quantization is not None and tensor.quantization.scale is not None
        ]
        assert len(arrays) > 20
        assert all(np.shares_memory(whole, array) for array in arrays if array.size)

    def test_outside_data_shares_the_bytes(self) -> None:
        content = write_model(read_model(model_path(self.NAME)), inline_limit=EVERYTHING_OUTSIDE)
        whole = np.frombuffer(content, np.uint8)
        arrays = [buffer.data for buffer in read_model(content).buffers]
        assert all(np.shares_memory(whole, a) for a in arrays if a is not None and a.size)

    def test_constants_of_a_path_are_one_map(self) -> None:
        """All arrays lie within one span of the size of the file."""
        path = model_path(self.NAME)
        arrays = [buffer.data for buffer in read_model(path).buffers if buffer.data is not None]
        starts = [array.ctypes.data for array in arrays if array.size]
        assert max(starts) - min(starts) < path.stat().st_size

    @pytest.mark.parametrize("make", [bytes, bytearray, memoryview])
    def test_constants_are_read_only(self, make: Any) -> None:
        for source in (model_path(self.NAME), make(model_path(self.NAME).read_bytes())):
            for buffer in read_model(source).buffers:
                assert buffer.data is None or not buffer.data.flags.writeable


class TestTables:
    def test_are_frozen(self) -> None:
        with pytest.raises(FrozenInstanceError):
            Conv2DOptions().stride_h = 2  # type: ignore[misc]

    @pytest.mark.parametrize("cls", [Conv2DOptions, Model, OPTIONS[21]])
    def test_have_slots(self, cls: type[Table]) -> None:
        assert not hasattr(cls(), "__dict__")

    def test_take_values_by_position_and_have_the_defaults_of_the_schema(self) -> None:
        options = Conv2DOptions(Padding.VALID, 2, 3)
        assert (options.padding, options.stride_w, options.stride_h) == (Padding.VALID, 2, 3)
        assert options.dilation_h_factor == 1
        assert AddOptions().pot_scale_int16 is True

    def test_show_what_is_not_default(self) -> None:
        assert repr(Conv2DOptions(Padding.VALID, 2)) == (
            "Conv2DOptions(padding=Padding.VALID, stride_w=2)"
        )
        assert repr(Buffer(np.zeros(9, np.uint8))) == "Buffer(data=<uint8 x 9>)"

    @pytest.mark.parametrize(
        ("other", "equal"),
        [
            (np.array([1, 2], np.uint8), True),
            (np.array([1, 3], np.uint8), False),
            (np.array([1, 2], np.int8), False),
            (np.array([1], np.uint8), False),
            (np.array([[1, 2]], np.uint8), False),
            (None, False),
        ],
    )
    def test_compare_arrays(self, other: npt.NDArray[Any] | None, equal: bool) -> None:
        one = Buffer(np.array([1, 2], np.uint8))
        assert (one == Buffer(other)) is equal
        assert not equal or hash(one) == hash(Buffer(other))

    def test_differ_by_class(self) -> None:
        assert OPTIONS[21]() != OPTIONS[22]()
        assert Buffer() != 3

    def test_nan_equals_nan(self) -> None:
        assert LeakyReluOptions(float("nan")) == LeakyReluOptions(float("nan"))


class TestRefusals:
    def test_options_that_no_union_holds(self) -> None:
        with pytest.raises(ValueError, match="Metadata is no member of BuiltinOptions or"):
            write_model(with_options(Metadata()))

    @pytest.mark.parametrize("data", [np.zeros(2, np.int8), np.zeros((2, 2), np.uint8)])
    def test_buffers_of_other_arrays(self, data: npt.NDArray[Any]) -> None:
        with pytest.raises(ValueError, match=r"expected uint8 \[n\], got"):
            write_model(replace(with_options(None), buffers=(Buffer(data),)))


@pytest.mark.parametrize(
    "name",
    [
        "litert__pc_conv.tflite",
        "mlperf-tiny__kws_ref_model.tflite",
        "tf__lstm_seq_f32.tflite",
    ],
)
@pytest.mark.parametrize("inline_limit", [2**31, EVERYTHING_OUTSIDE])
def test_litert_runs_what_is_written(name: str, inline_limit: int) -> None:
    original = model_path(name).read_bytes()
    model = read_model(original)
    random = np.random.default_rng(7)
    graph = model.subgraphs[0]
    inputs = [
        random.integers(-9, 9, graph.tensors[index].shape).astype(
            {"FLOAT32": np.float32, "INT8": np.int8}[graph.tensors[index].type.name]
        )
        for index in graph.inputs
    ]
    written = write_model(model, inline_limit=inline_limit)
    for ours, theirs in zip(litert(written, inputs), litert(original, inputs), strict=True):
        np.testing.assert_array_equal(ours, theirs)
