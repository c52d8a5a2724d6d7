"""Files that are wrong: each gives one error that names the place, never another one, and soon."""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tflite_ort.schema import (
    AddOptions,
    BlockwiseQuantization,
    Buffer,
    Metadata,
    Model,
    Op,
    Operator,
    OperatorCode,
    QuantizationParameters,
    SignatureDef,
    StablehloCaseOptions,
    SubGraph,
    Table,
    Tensor,
    TensorMap,
    TensorType,
    UnsupportedSchema,
    WhileOptions,
    read_model,
    write_model,
)
from tflite_ort.schema.file.errors import MalformedModel, ModelError, UnknownOperator
from tflite_ort.schema.file.file_bytes import File
from tflite_ort.schema.file.verify import read_table

FLOATS = np.arange(4, dtype=np.float32)
QUANTIZATION = QuantizationParameters(scale=FLOATS[:1], zero_point=np.zeros(1, np.int64))
SMALL = Model(
    version=3,
    operator_codes=(OperatorCode(Op.ADD), OperatorCode(Op.CUSTOM, "Mine")),
    subgraphs=(
        SubGraph(
            tensors=(
                Tensor((4,), name="a"),
                Tensor((4,), buffer=1, name="weights", quantization=QUANTIZATION),
                Tensor((4,), name="c", shape_signature=(-1,)),
            ),
            inputs=(0,),
            outputs=(2,),
            operators=(
                Operator(0, (0, 1), (2,), options=AddOptions()),
                Operator(1, (2,), (2,), custom_options=np.arange(5).astype(np.uint8)),
            ),
            name="main",
        ),
    ),
    buffers=(Buffer(), Buffer(FLOATS.view(np.uint8)), Buffer(np.zeros(16, np.uint8))),
    metadata=(Metadata("min_runtime_version", 2),),
    signature_defs=(SignatureDef((TensorMap("x", 0),), (TensorMap("y", 2),), "serve"),),
)

Pick = Callable[[Model], Any]


def attempt(data: bytes) -> None:
    """Reads `data`, which may fail in the ways that are promised and in no other."""
    with contextlib.suppress(ModelError, UnknownOperator):
        read_model(data)


class Bytes:
    """The bytes of a model, to be damaged at a named place."""

    def __init__(self, model: Model = SMALL) -> None:
        self.data = bytearray(write_model(model))
        self.file = File(np.frombuffer(bytes(self.data), np.uint8))
        self.model = read_table(self.file, self.file.follow(0), Model)

    def table(self, pick: Pick) -> int:
        return self.file.positions[id(pick(self.model))]

    def vtable(self, pick: Pick) -> int:
        (back,) = struct.unpack_from("<i", self.data, self.table(pick))
        return self.table(pick) - int(back)

    def field(self, pick: Pick, slot: int) -> int:
        return self.table(pick) + self.file.table(self.table(pick)).offsets[slot]

    def target(self, pick: Pick, slot: int) -> int:
        """Where the offset in a field leads to."""
        return self.file.follow(self.field(pick, slot))

    def put(self, form: str, at: int, value: int) -> None:
        struct.pack_into(form, self.data, at, value)


def model(model: Model) -> Table:
    return model


def graph(model: Model) -> Table:
    return model.subgraphs[0]


def weights(model: Model) -> Table:
    return model.subgraphs[0].tensors[1]


def operator(model: Model) -> Table:
    return model.subgraphs[0].operators[0]


def code(model: Model) -> Table:
    return model.operator_codes[1]


def parameters(model: Model) -> Any:
    return model.subgraphs[0].tensors[1].quantization


def constant(model: Model) -> Table:
    return model.buffers[1]


Damage = Callable[[Bytes], None]

# what is damaged, how, the reason and the path that the error gives
DAMAGES: list[tuple[str, Damage, str, str]] = [
    ("root offset past the end", lambda b: b.put("<I", 0, 1 << 20), "leads out of the file", ""),
    ("root offset of zero", lambda b: b.put("<I", 0, 0), "offset 0 leads out", ""),
    ("root not aligned", lambda b: b.put("<I", 0, b.table(model) + 1), "not aligned", ""),
    (
        "vtable after the file",
        lambda b: b.put("<i", b.table(graph), -(1 << 20)),
        "vtable at .* outside the file",
        "subgraphs[0]",
    ),
    (
        "vtable before the file",
        lambda b: b.put("<i", b.table(weights), 1 << 20),
        "vtable at .* outside the file",
        "subgraphs[0].tensors[1]",
    ),
    ("vtable of odd size", lambda b: b.put("<H", b.vtable(code), 7), "vtable of 7 bytes", ""),
    (
        "vtable longer than the file",
        lambda b: b.put("<H", b.vtable(model), 0xFFFE),
        "vtable of 65534 bytes",
        "",
    ),
    (
        "vtable shorter than its header",
        lambda b: b.put("<H", b.vtable(model), 2),
        "vtable of 2 bytes",
        "",
    ),
    (
        "field past the end",
        lambda b: b.put("<H", b.vtable(graph) + 4, 0xFFFC),
        "4 bytes reach past the end",
        "subgraphs[0].tensors",
    ),
    (
        "field not aligned",
        lambda b: b.put("<H", b.vtable(weights) + 4 + 2 * 2, 5),
        "not aligned to 4 bytes",
        "subgraphs[0].tensors[1].buffer",
    ),
    (
        "vector past the end",
        lambda b: b.put("<I", b.field(operator, 1), 1 << 20),
        "leads out of the file",
        "subgraphs[0].operators[0].inputs",
    ),
    (
        "vector too long",
        lambda b: b.put("<I", b.target(operator, 1), 0x7FFFFFFF),
        "vector of 2147483647 items",
        "subgraphs[0].operators[0].inputs",
    ),
    (
        "vector of tables too long",
        lambda b: b.put("<I", b.target(graph, 0), 0xFFFFFFFF),
        "vector of 4294967295 items",
        "subgraphs[0].tensors",
    ),
    (
        "vector of tables with a bad offset",
        lambda b: b.put("<I", b.target(graph, 0) + 8, 0x7FFFFFFF),
        "leads out of the file",
        "subgraphs[0].tensors[1]",
    ),
    (
        "array too long",
        lambda b: b.put("<I", b.target(constant, 0), 0x7FFFFFFF),
        "vector of 2147483647 items",
        "buffers[1].data",
    ),
    (
        "scales too long",
        lambda b: b.put("<I", b.target(parameters, 2), 0x40000000),
        "vector of 1073741824 items",
        "subgraphs[0].tensors[1].quantization.scale",
    ),
    (
        "text without NUL",
        lambda b: b.put("<B", b.target(weights, 3) + 4 + len("weights"), 1),
        "without a NUL",
        "subgraphs[0].tensors[1].name",
    ),
    (
        "text too long",
        lambda b: b.put("<I", b.target(weights, 3), 1 << 24),
        "vector of 16777216 items",
        "subgraphs[0].tensors[1].name",
    ),
    (
        "text that is not UTF-8",
        lambda b: b.put("<B", b.target(code, 1) + 4, 0xFF),
        "not UTF-8",
        "operator_codes[1].custom_code",
    ),
    (
        "union without a value",
        lambda b: b.put("<H", b.vtable(operator) + 4 + 2 * 4, 0),
        "BuiltinOptions names AddOptions and has no value",
        "subgraphs[0].operators[0].options",
    ),
    (
        "unknown member of a union",
        lambda b: b.put("<B", b.field(operator, 3), 200),
        "BuiltinOptions has no member 200",
        "subgraphs[0].operators[0].options",
    ),
]


@pytest.mark.parametrize(
    ("damage", "reason", "path"), [row[1:] for row in DAMAGES], ids=[row[0] for row in DAMAGES]
)
def test_damaged_file(damage: Damage, reason: str, path: str) -> None:
    damaged = Bytes()
    damage(damaged)
    with pytest.raises(MalformedModel, match=reason) as caught:
        read_model(bytes(damaged.data))
    assert caught.value.path == path or not path
    assert caught.value.offset is not None
    assert 0 <= caught.value.offset <= len(damaged.data) + 0xFFFF
    assert f"(byte {caught.value.offset})" in str(caught.value)


def test_unknown_enum_value() -> None:
    int8 = Tensor((2,), TensorType.INT8)
    damaged = Bytes(replace(SMALL, subgraphs=(SubGraph(tensors=(int8,)),)))
    damaged.put("<b", damaged.field(lambda m: m.subgraphs[0].tensors[0], 1), 99)
    with pytest.raises(MalformedModel, match=r"99 is no TensorType at subgraphs\[0\]"):
        read_model(bytes(damaged.data))


@pytest.mark.parametrize(
    ("start", "size"), [(1 << 40, 4), (2, 1 << 40), (2**64 - 1, 2), (16, 2**64 - 1)]
)
def test_outside_data_past_the_end(start: int, size: int) -> None:
    data = write_model(SMALL, inline_limit=0)
    damaged = Bytes()
    damaged.data = bytearray(data)
    damaged.file = File(np.frombuffer(data, np.uint8))
    damaged.model = read_table(damaged.file, damaged.file.follow(0), Model)
    damaged.put("<Q", damaged.field(constant, 1), start)
    damaged.put("<Q", damaged.field(constant, 2), size)
    with pytest.raises(MalformedModel, match=r"past the end of the file .* at buffers\[1\].data"):
        read_model(bytes(damaged.data))


def tensor(**changes: Any) -> Model:
    (main,) = SMALL.subgraphs
    changed = replace(main.tensors[1], **changes)
    return replace(
        SMALL, subgraphs=(replace(main, tensors=(main.tensors[0], changed, main.tensors[2])),)
    )


def first_operator(**changes: Any) -> Model:
    (main,) = SMALL.subgraphs
    changed = replace(main.operators[0], **changes)
    return replace(SMALL, subgraphs=(replace(main, operators=(changed, main.operators[1])),))


def subgraph(**changes: Any) -> Model:
    return replace(SMALL, subgraphs=(replace(SMALL.subgraphs[0], **changes),))


# a model whose parts do not fit each other, the reason, the path
MISFITS: list[tuple[Model, str, str]] = [
    (first_operator(opcode_index=2), "operator code 2, and", "operators[0].opcode_index"),
    (first_operator(inputs=(0, 3)), "tensor 3, and there are 3", "operators[0].inputs[1]"),
    (first_operator(inputs=(-2,)), "tensor -2", "operators[0].inputs[0]"),
    (first_operator(outputs=(-1,)), "tensor -1", "operators[0].outputs[0]"),
    (first_operator(intermediates=(7,)), "tensor 7", "operators[0].intermediates[0]"),
    (
        first_operator(options=WhileOptions(0, 1)),
        "subgraph 1, and there are 1",
        "operators[0].options.body_subgraph_index",
    ),
    (
        first_operator(options=StablehloCaseOptions((0, 5))),
        "subgraph 5",
        "operators[0].options.branch_subgraph_indices",
    ),
    (subgraph(inputs=(3,)), "tensor 3", "inputs[0]"),
    (subgraph(outputs=(0, -1)), "tensor -1", "outputs[1]"),
    (tensor(buffer=3), "buffer 3, and there are 3", "tensors[1].buffer"),
    (tensor(shape=(5,)), "16 bytes of data, and FLOAT32 [5] takes 20", "tensors[1].buffer"),
    (tensor(shape=(33,), type=TensorType.INT4), "INT4 [33] takes 17", "tensors[1].buffer"),
    (tensor(shape=(1 << 30,) * 8), "takes", "tensors[1].buffer"),
    (tensor(shape=(2, -1)), "shape [2, -1]", "tensors[1].shape"),
    (tensor(shape=(1,) * 65), "65 dimensions", "tensors[1].shape"),
    (
        tensor(quantization=QuantizationParameters(scale=FLOATS)),
        "4 scales and 0 zero points",
        "tensors[1].quantization.zero_point",
    ),
    (
        tensor(quantization=QuantizationParameters(details=BlockwiseQuantization(3, -1))),
        "tensor 3",
        "tensors[1].quantization.details.scales[0]",
    ),
    (
        tensor(quantization=QuantizationParameters(details=BlockwiseQuantization(0, -2))),
        "tensor -2",
        "tensors[1].quantization.details.zero_points[0]",
    ),
]


@pytest.mark.parametrize(("model", "reason", "path"), MISFITS, ids=[row[2] for row in MISFITS])
def test_parts_that_do_not_fit(model: Model, reason: str, path: str) -> None:
    with pytest.raises(MalformedModel) as caught:
        read_model(write_model(model))
    assert reason in caught.value.reason
    assert caught.value.path == f"subgraphs[0].{path}"
    assert caught.value.offset is not None


def test_metadata_and_signatures_that_do_not_fit() -> None:
    for changed, path in (
        (replace(SMALL, metadata=(Metadata("m", 3),)), "metadata[0].buffer"),
        (
            replace(SMALL, signature_defs=(SignatureDef(subgraph_index=1),)),
            "signature_defs[0].subgraph_index",
        ),
        (
            replace(SMALL, signature_defs=(SignatureDef(outputs=(TensorMap("y", 3),)),)),
            "signature_defs[0].outputs[0].tensor_index",
        ),
        (
            replace(SMALL, operator_codes=(OperatorCode(Op.CUSTOM),)),
            "operator_codes[0].custom_code",
        ),
    ):
        with pytest.raises(MalformedModel) as caught:
            read_model(write_model(changed))
        assert caught.value.path == path


def test_unknown_operators_are_all_named() -> None:
    codes: Any = (OperatorCode(210), OperatorCode(Op.ADD), OperatorCode(999))  # type: ignore[arg-type]
    with pytest.raises(UnknownOperator, match="210, 999"):
        read_model(write_model(replace(SMALL, operator_codes=codes)))


def test_negative_operator_code() -> None:
    damaged = Bytes()
    at = damaged.field(code, 0)
    damaged.put("<b", at, -3)
    damaged.put("<i", damaged.field(code, 3), -3)
    with pytest.raises(MalformedModel, match="operator code -3"):
        read_model(bytes(damaged.data))


@pytest.mark.parametrize("version", [0, 1, 2, 4])
def test_other_schema_versions(version: int) -> None:
    with pytest.raises(UnsupportedSchema, match=f"schema version {version} not equal .* 3"):
        read_model(write_model(replace(SMALL, version=version)))


@pytest.mark.parametrize("data", [b"", b"TFL3", bytes(7), b"\0\0\0\0TFL3", bytes(100)])
def test_too_little_or_something_else(data: bytes) -> None:
    with pytest.raises(MalformedModel):
        read_model(data)


def test_another_identifier() -> None:
    data = write_model(SMALL)
    with pytest.raises(MalformedModel, match=r"identifier b'TFL2', not b'TFL3'") as caught:
        read_model(data[:4] + b"TFL2" + data[8:])
    assert caught.value.offset == 4


class TestPaths:
    def test_missing(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError):
            read_model(tmp_path / "none.tflite")

    @pytest.mark.skipif(os.name == "nt", reason="Windows says PermissionError")
    def test_folder(self, tmp_path: Path) -> None:
        with pytest.raises(IsADirectoryError):
            read_model(tmp_path)

    def test_empty_file(self, tmp_path: Path) -> None:
        (tmp_path / "empty.tflite").touch()
        with pytest.raises(MalformedModel, match="0 bytes"):
            read_model(tmp_path / "empty.tflite")

    def test_text_and_path_objects(self, tmp_path: Path) -> None:
        path = tmp_path / "small.tflite"
        path.write_bytes(write_model(SMALL))
        assert read_model(path) == read_model(str(path)) == SMALL
        assert read_model(path).folder == str(tmp_path)
        assert read_model(write_model(SMALL)).folder is None
