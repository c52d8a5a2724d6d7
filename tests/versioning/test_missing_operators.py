"""Refusal at load: complete, exact on the version, and saying what can be done."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.one_op import T, one_op_model
from tflite_ort import (
    Interpreter,
    UnknownOperator,
    UnresolvedOperator,
    UnsupportedVersion,
    export_onnx,
)
from tflite_ort.model.missing_operators import check_operators, check_versions, missing_operators
from tflite_ort.model.resolvers import BuiltinOpResolver
from tflite_ort.schema import (
    Model,
    Op,
    Operator,
    OperatorCode,
    SubGraph,
    VersionError,
    write_model,
)
from tflite_ort.versioning import is_known, known_versions

OPERATORS = [op for op in Op if known_versions(op)]
IMPLEMENTED = [op for op in OPERATORS if BuiltinOpResolver().versions(op)]


def model_of(codes: Iterable[tuple[Op, int]]) -> bytes:
    """A model with these operator codes and no operator: the codes alone decide."""
    return write_model(
        Model(
            version=3,
            operator_codes=tuple(OperatorCode(builtin_code=op, version=v) for op, v in codes),
            subgraphs=(SubGraph(name="main"),),
        )
    )


def loads(model: bytes) -> bool:
    try:
        Interpreter(model_content=model)
    except VersionError:
        return False
    return True


@pytest.mark.parametrize("above", [True, False])
def test_every_operator_out_of_its_range_is_named(above: bool) -> None:
    codes = [(op, known_versions(op)[-1] + 1 if above else 0) for op in OPERATORS]
    with pytest.raises(VersionError) as caught:
        Interpreter(model_content=model_of(codes))
    text = str(caught.value)
    for op, version in codes:
        assert f"builtin opcode '{op.name}' version '{version}' (0x): " in text
    assert f"{len(OPERATORS)} of the model's operators" in text


def test_exactly_the_versions_that_tflite_has_are_loaded() -> None:
    tried = [(op, v) for op in OPERATORS for v in range(known_versions(op)[-1] + 3)]
    wrong = [(op.name, v) for op, v in tried if loads(model_of([(op, v)])) != is_known(op, v)]
    assert wrong == []
    assert loads(model_of((op, v) for op, v in tried if is_known(op, v)))


def test_what_is_implemented_is_so_in_every_version() -> None:
    resolver = BuiltinOpResolver()
    missing = [
        (op.name, v)
        for op in IMPLEMENTED
        for v in known_versions(op)
        if resolver.find(op, v) is None
    ]
    assert missing == []


REFUSALS = [
    (
        Op.CONV_2D,
        9,
        UnsupportedVersion,
        "not known here; TFLite and this library have versions 1 to 8",
    ),
    (
        Op.CONV_2D,
        0,
        UnsupportedVersion,
        "below the first version; TFLite and this library have versions 1",
    ),
    (Op.BROADCAST_TO, 1, VersionError, "below the first version; TFLite "),
    (Op.STABLEHLO_CBRT, 1, UnknownOperator, "no kernel for it, though 2.17.0 lists it"),
    (Op.CONCAT_EMBEDDINGS, 1, UnknownOperator, "TFLite has no kernel for it"),
]


@pytest.mark.parametrize(("op", "version", "kind", "reason"), REFUSALS)
def test_one_refusal(op: Op, version: int, kind: type[VersionError], reason: str) -> None:
    with pytest.raises(kind) as caught:
        export_onnx(one_op_model(op, [T((1,))], [T((1,))], version=version))
    text = str(caught.value)
    assert text.startswith(
        f"Didn't find op for builtin opcode '{op.name}' version '{version}' (1x)"
    )
    assert reason in text
    assert all(way in text for way in ("newer tflite-ort", "resolver", "older runtime"))


def test_a_version_tflite_has_and_the_library_has_not_says_so() -> None:
    empty = BuiltinOpResolver().narrowed(Model(version=3))
    model = Model(version=3, operator_codes=(OperatorCode(builtin_code=Op.ADD, version=4),))
    with pytest.raises(
        UnknownOperator, match=r"since 2\.6\.0 \(int64\), this library has no trans"
    ):
        check_operators(model, empty)


def test_a_custom_operator_is_refused_by_name() -> None:
    code = OperatorCode(builtin_code=Op.CUSTOM, custom_code="Turbo", version=2)
    used = SubGraph(operators=(Operator(opcode_index=0),))
    model = Model(version=3, operator_codes=(code,), subgraphs=(used,))
    with pytest.raises(UnresolvedOperator) as caught:
        check_operators(model, BuiltinOpResolver())
    assert str(caught.value).startswith("Encountered unresolved custom op: Turbo.")
    assert "custom op 'Turbo' version '2' (1x): not registered" in str(caught.value)
    check_versions(model, BuiltinOpResolver())  # TFLite loads it, and refuses to allocate
    # One that no operator uses harms nobody, in TFLite too.
    check_operators(Model(version=3, operator_codes=(code,)), BuiltinOpResolver())


def test_unresolved_counts_the_uses() -> None:
    codes = (
        OperatorCode(builtin_code=Op.ADD, version=1),
        OperatorCode(builtin_code=Op.ADD, version=9),
    )
    (row,) = missing_operators(Model(version=3, operator_codes=codes), BuiltinOpResolver())
    assert (row.op, row.version, row.count) == (Op.ADD, 9, 0)
