"""The resolver of well-known custom operators, and the page that lists them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.models import model_paths
from tests.one_op import T
from tests.ops.custom_op import custom_model, invoked
from tflite_ort import (
    BuiltinOpResolver,
    Interpreter,
    Registration,
    UnresolvedOperator,
    WellKnownOpResolver,
)
from tflite_ort.fallback_kernels import custom_kernel, kernel
from tflite_ort.opmap import custom_translator, translator
from tflite_ort.schema import Op, OperatorView, read_model
from tflite_ort.schema.shapes.registry import all_rules
from tflite_ort.schema.values.operators import Key, is_flex
from tflite_ort.versioning.registry import Registry

PAGE = Path(__file__).parent.parent / "docs" / "custom_operators.md"


def rows() -> dict[str, tuple[str, bool, str]]:
    """Of each operator of the page: its versions, whether it is marked, and where it runs."""
    table = PAGE.read_text(encoding="utf-8").split("## What ships")[1].split("## Example")[0]
    found = {}
    for line in table.splitlines():
        if line.startswith("| `"):
            names, versions, _, runs_in, _ = (cell.strip() for cell in line[1:-1].split(" | "))
            for name in re.findall(r"`([^`]+)`", names):
                found[name] = versions, names.endswith("*"), runs_in
    return found


def test_page_lists_what_ships() -> None:
    versions = {name: (", ".join(map(str, custom_kernel.versions(name)))) for name in rows()}
    assert versions == {name: row[0] for name, row in rows().items()}
    assert set(rows()) == own(custom_kernel) | own(custom_translator)


def own(registry: Registry[Any]) -> set[Key]:
    """The operators of a registry without TensorFlow's, which docs/flex.md lists."""
    return {name for name, _ in registry.pairs() if not is_flex(name)}


def test_page_says_what_is_there_unasked() -> None:
    resolver = BuiltinOpResolver()
    assert {name for name, row in rows().items() if row[1]} == {
        name for name in rows() if resolver.versions(name)
    }


def test_page_says_what_onnx_runtime_runs() -> None:
    translated = {name for name, row in rows().items() if not row[2].startswith("numpy")}
    assert translated == own(custom_translator)


def test_builtin_registries_have_no_custom_operators() -> None:
    keys = {key for registry in (translator, kernel) for key, _ in registry.pairs()}
    assert all(isinstance(key, Op) for key in keys)


def test_every_well_known_operator_has_a_shape_rule() -> None:
    assert own(custom_kernel) == {
        key for key in all_rules() if not isinstance(key, Op) and not is_flex(key)
    }


def test_a_refusal_says_who_has_the_operator() -> None:
    interpreter = Interpreter(model_content=custom_model("Atan", [T((3,))], [T((3,))]))
    line = r"resolver=tflite_ort\.WellKnownOpResolver\(\)\)"
    with pytest.raises(UnresolvedOperator, match=f"WellKnownOpResolver has it.\nChange.*{line}"):
        interpreter.allocate_tensors()


@pytest.mark.parametrize("name", ["edgetpu-custom-op", "ethos-u", "DISPATCH_OP"])
def test_machine_code_is_not_to_be_registered(name: str) -> None:
    interpreter = Interpreter(model_content=custom_model(name, [T((3,))], [T((3,))]))
    with pytest.raises(UnresolvedOperator, match="Use the file from before") as caught:
        interpreter.allocate_tensors()
    assert "machine code for " in str(caught.value)
    assert "Register it" not in str(caught.value)


# Custom operators of the models that mean something to their authors' programs only, are
# compiled for one device, or hold a vocabulary.
REFUSED = {
    *("CustomTestOp", "testing_op", "FlexDouble", "LiteRtMaxUnpooling2D"),
    *("CUSTOM_OP_STRING_TO_FLOATS", "CUSTOM_OP_STRING_TO_DOUBLES", "CUSTOM_OP_STRING_TO_BOOLS"),
    *("CUSTOM_OP_GENERATE_LABELS", "DISPATCH_OP", "edgetpu-custom-op"),
    "tftext:WhitespaceTokenizer",
}


def test_the_models_have_no_other_custom_operators() -> None:
    resolver = WellKnownOpResolver()
    codes = {
        (code.custom_code, code.version)
        for path in model_paths()
        for code in read_model(path).operator_codes
        if code.builtin_code is Op.CUSTOM
    }
    assert {name for name, version in codes if resolver.find(name, version) is None} == REFUSED


def doubled(op: OperatorView[Any], inputs: list[Any], state: None) -> tuple[Any]:
    return (np.concatenate([inputs[0], inputs[0]]),)


@pytest.mark.parametrize("name", ["Mfcc", "Atan", "SignalStacker", "FlexAddV2"])
def test_an_operator_that_the_user_registers_is_the_users(name: str) -> None:
    """Its options and shapes are not held against those of ours."""
    resolver = WellKnownOpResolver()
    resolver.add_custom(name, Registration(kernel=doubled))
    model = custom_model(name, [T((3,))], [T((6,))], {"own": 1})
    interpreter = Interpreter(model_content=model, resolver=resolver)
    interpreter.allocate_tensors()
    (got,) = invoked(interpreter, [np.ones(3, np.float32)])
    assert got.tolist() == [1.0] * 6
