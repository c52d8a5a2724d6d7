"""The table of known versions against the reference, against LiteRT, and on its page."""

from __future__ import annotations

import pytest
from ai_edge_litert.interpreter import Interpreter

from tests.one_op import one_op_model
from tests.versioning.reference import known_to_tflite, reference
from tflite_ort.command.operators_page import UNTRANSLATED
from tflite_ort.opmap import translator
from tflite_ort.schema import Op
from tflite_ort.schema.file.flow import INLINED
from tflite_ort.versioning import (
    DISAGREEMENTS,
    KNOWN,
    Disagreement,
    is_known,
    known_versions,
    runtime_version,
)
from tflite_ort.versioning.registry import Registry


def pairs(op: Op) -> range:
    """The versions to try of an operator: from below all known ones to above them."""
    return range(max(known_versions(op), default=0) + 3)


def litert_finds(op: Op, version: int) -> bool:
    """Whether LiteRT gets past the lookup; the operator has no tensors and cannot run."""
    try:
        Interpreter(model_content=one_op_model(op, [], [], version=version))
    except ValueError as error:
        return "Didn't find op" not in str(error)
    return True


def test_known_versions_are_the_registered_ones() -> None:
    ours = {op.name: known_versions(op) for op in Op if known_versions(op)}
    assert ours == known_to_tflite()


def test_litert_finds_what_is_known_and_nothing_else() -> None:
    operators = [op for op in Op if op is not Op.CUSTOM]  # found by name, not by number
    tried = [(op, version) for op in operators for version in pairs(op)]
    wrong = [(op.name, v) for op, v in tried if litert_finds(op, v) != is_known(op, v)]
    assert wrong == []
    assert len(tried) > 1000


def test_runtime_versions_are_those_of_the_reference() -> None:
    rows = reference("runtime_versions.json")
    for name, versions in rows.items():
        for version, runtime in versions.items():
            assert runtime_version(Op[name], int(version)) == runtime, (name, version)
    count = sum(len(versions) for versions in rows.values())
    assert count == len(KNOWN) + len(
        [row for row in DISAGREEMENTS if row.runtime and not row.registered]
    )
    assert runtime_version(Op.ADD, 99) is None


def test_every_later_version_says_what_it_brought() -> None:
    silent = {(op, v) for (op, v), row in KNOWN.items() if v > known_versions(op)[0] > 0}
    silent = {pair for pair in silent if not KNOWN[pair].brings}
    assert silent == {(row.op, row.version) for row in DISAGREEMENTS if not row.required}


@pytest.mark.parametrize("row", DISAGREEMENTS, ids=lambda row: f"{row.op.name}-{row.version}")
def test_disagreement_is_as_the_reference_has_it(row: Disagreement) -> None:
    rules = reference("op_versions.json")["ops"].get(row.op.name, {"produced": [1]})
    runtimes = reference("runtime_versions.json").get(row.op.name, {})
    assert row.registered == (row.version in known_to_tflite().get(row.op.name, ()))
    assert row.required == (row.version in rules["produced"])
    assert row.runtime == runtimes.get(str(row.version))


def test_all_disagreements_are_named() -> None:
    registered = {(name, v) for name, known in known_to_tflite().items() for v in known}
    runtimes = {
        (name, int(v)) for name, known in reference("runtime_versions.json").items() for v in known
    }
    rules = reference("op_versions.json")["ops"]
    names = {name for name, _ in registered | runtimes}
    required = {(name, v) for name in names for v in rules.get(name, {"produced": [1]})["produced"]}
    every = registered | runtimes | required
    odd = {pair for pair in every if pair not in registered & runtimes & required}
    assert odd == {(row.op.name, row.version) for row in DISAGREEMENTS}


def test_what_has_no_translator_has_a_reason() -> None:
    operators = {op for op in Op if known_versions(op)} - INLINED
    assert {op for op in operators if not translator.versions(op)} == set(UNTRANSLATED)


@pytest.mark.parametrize(
    ("op", "versions", "message"),
    [
        (Op.ADD, (1, 7), "TFLite has ADD in versions 1 to 6, not 7"),
        (Op.BROADCAST_TO, (1, 3), "TFLite has BROADCAST_TO in versions 2 to 4, not 1"),
        (Op.STABLEHLO_CBRT, (1, 1), "TFLite has no kernel for STABLEHLO_CBRT"),
        (Op.ADD, (2, 1), "not a range"),
        (Op.ADD, (0, 1), "not a range"),
    ],
)
def test_a_version_that_is_not_known_cannot_be_registered(
    op: Op, versions: tuple[int, int], message: str
) -> None:
    registry: Registry[type] = Registry("kernel")
    with pytest.raises(ValueError, match=message):
        registry(op, versions=versions)(int)
    assert list(registry) == []


def test_a_second_registration_is_refused() -> None:
    registry: Registry[type] = Registry("kernel")
    registry(Op.ADD, versions=(1, 2))(int)
    with pytest.raises(ValueError, match="ADD version 2 has a kernel already"):
        registry(Op.ADD, versions=(2, 3))(float)
    assert registry.versions(Op.ADD) == [1, 2]
