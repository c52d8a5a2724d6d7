"""Required versions: TFLite's expectations, and a bound on what the rules can give."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.versioning.reference import reference
from tests.versioning.signatures import cases
from tflite_ort.schema import Op, TensorType
from tflite_ort.versioning import (
    DISAGREEMENTS,
    KNOWN,
    Signature,
    TensorSignature,
    is_known,
    required_version,
)
from tflite_ort.versioning.rules import RULES

# (operator, version) that TFLite registers and no rule of its own gives, and the other way round.
NEVER_REQUIRED = {(row.op, row.version) for row in DISAGREEMENTS if not row.required}
UNREGISTERED = {(row.op, row.version) for row in DISAGREEMENTS if not row.registered}

FLAGS = ("half_pixel_centers", "keep_num_dims", "offset", "narrow_range", "batch_dims")
COUNTS = ("kernel_type", "weights_format", "dilation_w_factor", "quantized_bias_type")
TENSORS = st.builds(
    TensorSignature,
    type=st.none() | st.sampled_from(TensorType),
    shape=st.lists(st.integers(0, 4), max_size=7).map(tuple),
    quantized=st.booleans(),
    scales=st.integers(0, 4),
    scale=st.floats(0, 4, width=32),
    axis=st.integers(-1, 7),
    sparse=st.booleans(),
)
SIGNATURES = st.builds(
    Signature,
    op=st.sampled_from(sorted(RULES)),
    inputs=st.lists(TENSORS, max_size=5).map(tuple),
    outputs=st.lists(TENSORS, max_size=2).map(tuple),
    options=st.none() | st.dictionaries(st.sampled_from(FLAGS + COUNTS), st.integers(0, 2)),
)


def test_every_case_of_tflite_gives_its_version() -> None:
    every = list(cases())
    wrong = [
        f"{label}: {required_version(signature)}, expected {version}"
        for label, signature, version in every
        if required_version(signature) != version
    ]
    assert wrong == []
    assert len(every) == 3726


def test_every_version_is_reached_or_a_named_exception() -> None:
    reached = defaultdict(set)
    for _, signature, version in cases():
        reached[signature.op].add(version)
    for op, rule in RULES.items():
        assert reached[op] == rule.versions, op.name
        known = {version for known, version in KNOWN if known == op}
        excepted = {version for row, version in NEVER_REQUIRED if row == op}
        beyond = {version for row, version in UNREGISTERED if row == op}
        assert rule.versions - beyond == known - excepted, op.name


def test_operators_without_a_rule_have_version_1_alone() -> None:
    assert {op for op, _ in KNOWN} - set(RULES) == {
        op for op in {op for op, _ in KNOWN} if not is_known(op, 2)
    }


@given(SIGNATURES)
def test_any_signature_requires_a_version_that_is_known_or_named(signature: Signature) -> None:
    version = required_version(signature)
    assert is_known(signature.op, version) or (signature.op, version) in UNREGISTERED


@pytest.mark.parametrize("op", [Op.CUSTOM, Op.RESHAPE, Op.STABLEHLO_SLICE])
def test_without_a_rule_version_1_is_required(op: Op) -> None:
    assert required_version(Signature(op)) == 1


def test_rules_are_those_of_the_reference() -> None:
    rows = reference("op_versions.json")["ops"]
    assert {op.name for op in RULES} == set(rows)
    for name, row in rows.items():
        assert RULES[Op[name]].versions == set(row["produced"]), name
