"""Models that hypothesis draws from the declarations of the tables."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tflite_ort.schema import (
    BuiltinOperator,
    BuiltinOptions,
    BuiltinOptions2,
    ExternalBuffer,
    ExternalBufferGroup,
    Metadata,
    Model,
    Operator,
    OperatorCode,
    QuantizationParameters,
    SignatureDef,
    SubGraph,
    Table,
    Tensor,
    TensorMap,
    TensorType,
)
from tflite_ort.schema.file.fields import (
    Child,
    Children,
    Field,
    Local,
    Number,
    OneOf,
    OperatorCodeNumber,
    Scalar,
    String,
    Vector,
    View,
)
from tflite_ort.schema.file.model import Buffer
from tflite_ort.schema.file.tables import fields_of
from tflite_ort.schema.file.unions import OPTIONS as OWN

TENSORS = 3
OUTSIDE = st.sampled_from((0, EXTERNAL := 7))
# Of these the subgraphs that are called have to fit.
CALLERS = {op for op, table in OWN.items() if any("subgraph" in name for name in fields_of(table))}
SUBGRAPHS = 2
BUFFER_SIZES = (0, 1024)  # what the largest constant drawn here needs
OPTIONS = BuiltinOptions.members + BuiltinOptions2.members

TEXT = st.text(max_size=6)
DIMENSIONS = st.lists(st.integers(0, 3), max_size=3).map(tuple)
TENSOR = st.integers(0, TENSORS - 1)


def few(items: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(items, max_size=2).map(tuple)


def numbers(number: Number) -> st.SearchStrategy[Any]:
    if number.name == "bool":
        return st.booleans()
    if number.name == "float":
        return st.floats(width=32)
    low, high = np.iinfo(number.dtype).min, np.iinfo(number.dtype).max
    return st.sampled_from([0, 1, low, high]) | st.integers(int(low), int(high))


def arrays(field: View) -> st.SearchStrategy[Any]:
    lists = st.lists(numbers(field.number), min_size=1 if field.blank else 0, max_size=4)
    return st.none() | lists.map(lambda items: np.array(items, field.number.dtype))


def values(field: Field, name: str) -> st.SearchStrategy[Any]:
    """Values of one field. It may be absent."""
    match field:
        case Scalar() | Vector() if "subgraph" in name:
            index = st.integers(0, SUBGRAPHS - 1)
            return st.lists(index).map(tuple) if isinstance(field, Vector) else index
        case Scalar():
            return st.sampled_from(list(field.enum)) if field.enum else numbers(field.number)
        case OperatorCodeNumber():
            return st.sampled_from(list(field.enum))
        case String():
            return TEXT | st.just(field.default)
        case Vector():
            item = st.sampled_from(list(field.enum)) if field.enum else numbers(field.number)
            return st.lists(item, max_size=4).map(tuple) | st.just(field.default)
        case View():
            return arrays(field)
        case Child():
            return st.none() | tables(field.table)
        case Children():
            return few(tables(field.table))
        case OneOf():
            members = [member for _, union in field.choices for member in union.members]
            return st.none() | st.sampled_from(members).flatmap(tables)
    assert isinstance(field, Local)
    return st.just(field.default)


def tables(cls: type[Table]) -> st.SearchStrategy[Any]:
    """Tables whose fields hold anything that the schema allows."""
    if cls is QuantizationParameters:
        return quantizations()
    fields = fields_of(cls).items()
    return st.fixed_dictionaries({name: values(field, name) for name, field in fields}).map(
        lambda drawn: cls(**drawn)
    )


@st.composite
def quantizations(draw: st.DrawFn) -> QuantizationParameters:
    count = draw(st.integers(0, 3))
    fields = fields_of(QuantizationParameters)
    per_channel = {
        name: np.array(draw(st.lists(item, min_size=count, max_size=count)), dtype)
        for name, item, dtype in (
            ("scale", st.floats(width=32), np.float32),
            ("zero_point", st.integers(-(2**63), 2**63 - 1), np.int64),
        )
        if count
    }
    return QuantizationParameters(
        min=draw(values(fields["min"], "min")),
        quantized_dimension=draw(numbers(fields["quantized_dimension"].number)),  # type: ignore[attr-defined]
        details=None if draw(st.booleans()) else draw(details()),
        **per_channel,
    )


@st.composite
def details(draw: st.DrawFn) -> Any:
    field = fields_of(QuantizationParameters)["details"]
    assert isinstance(field, OneOf)
    drawn = draw(tables(draw(st.sampled_from(field.choices[0][1].members))))
    if hasattr(drawn, "scales"):
        return replace(drawn, scales=draw(TENSOR), zero_points=draw(TENSOR | st.just(-1)))
    return drawn


@st.composite
def operators(draw: st.DrawFn) -> Operator:
    indices = st.lists(TENSOR, max_size=3).map(tuple)
    drawn: Operator = draw(tables(Operator))
    return replace(
        drawn,
        opcode_index=0,
        inputs=draw(st.lists(TENSOR | st.none(), max_size=4).map(tuple)),
        outputs=draw(indices),
        intermediates=draw(indices),
    )


@st.composite
def subgraphs(draw: st.DrawFn) -> SubGraph:
    def tensor() -> Tensor:
        buffer = draw(st.integers(0, len(BUFFER_SIZES) - 1))
        drawn: Tensor = draw(tables(Tensor))
        drawn = replace(drawn, shape=draw(DIMENSIONS), buffer=buffer, external_buffer=draw(OUTSIDE))
        if len(drawn.shape) > 1:
            drawn = replace(drawn, quantization=None)  # whose dimension would have to be one
        if buffer == 0:
            return drawn
        return replace(
            drawn,
            type=TensorType.INT8 if drawn.type is TensorType.STRING else drawn.type,
            is_variable=False,
            sparsity=None,
        )

    return SubGraph(
        tensors=tuple(tensor() for _ in range(TENSORS)),
        inputs=draw(st.lists(TENSOR).map(tuple)),
        outputs=draw(st.lists(TENSOR).map(tuple)),
        operators=draw(few(operators())),
        name=draw(TEXT),
    )


@st.composite
def models(draw: st.DrawFn) -> Model:
    """Models that read_model accepts."""
    entry = st.builds(TensorMap, TEXT, TENSOR)
    entries = few(entry)
    signature = st.builds(SignatureDef, entries, entries, TEXT, TEXT, st.integers(0, SUBGRAPHS - 1))
    code = tables(OperatorCode).filter(
        lambda code: (
            code.builtin_code not in CALLERS
            and (code.builtin_code != BuiltinOperator.CUSTOM or code.custom_code is not None)
        )
    )
    return Model(
        version=3,
        operator_codes=tuple(draw(st.lists(code, min_size=1, max_size=3))),
        subgraphs=tuple(draw(subgraphs()) for _ in range(SUBGRAPHS)),
        description=draw(TEXT),
        buffers=tuple(Buffer(np.arange(size).astype(np.uint8)) for size in BUFFER_SIZES),
        metadata=draw(few(st.builds(Metadata, TEXT, st.integers(0, 1)))),
        signature_defs=draw(few(signature)),
        external_buffer_groups=(ExternalBufferGroup(draw(TEXT)),),
        external_buffers=tuple(
            replace(each, group=0)
            for each in (ExternalBuffer(EXTERNAL), *draw(few(tables(ExternalBuffer))))
        ),
    )
