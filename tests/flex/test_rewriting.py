"""What takes the place of TensorFlow's operators is there, and a user's own code comes first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.flex.cases import Case, cases_of, families
from tests.flex.nodes import flex_model
from tests.one_op import T
from tflite_ort import BuiltinOpResolver, Interpreter, ModelError, Registration
from tflite_ort.fallback_kernels import kernel
from tflite_ort.schema import Op, read_model
from tflite_ort.schema.file import flex_table
from tflite_ort.schema.flex.rewriting import rewriting_of, rewritten

REWRITTEN = [
    case
    for family in families()
    for case in cases_of(family)
    if rewriting_of(case.operator) is not None
]


@pytest.mark.parametrize("case", REWRITTEN, ids=str)
def test_a_place_is_taken_by_operators_that_there_are(case: Case) -> None:
    model = rewritten(read_model(case.model()))
    for operator in model.subgraphs[0].operators:
        code = model.operator_codes[operator.opcode_index]
        if code.builtin_code is not Op.CUSTOM:
            assert kernel.find(code.builtin_code, code.version) is not None, code


def test_every_rewriting_has_a_case() -> None:
    names = {name for name in flex_table.names() if rewriting_of(name) is not None}
    # Their cases are models of several operators.
    whole = ("checkpoints", "datasets", "lists", "tables", "tensor_arrays", "variables")
    others = {name for name in names if flex_table.family_of(name) in whole}
    assert names - others <= {case.operator for case in REWRITTEN} | {"DebugGradientIdentity"}


def transposed(x: Any, perm: Any) -> Any:
    return np.transpose(x, perm) + 1


def test_an_operator_that_the_user_registers_is_not_rewritten() -> None:
    resolver = BuiltinOpResolver()
    resolver.add_custom("FlexTranspose", Registration(function=transposed))
    inputs = [T((2, 3)), T.constant(np.int32([1, 0]))]
    model = flex_model("Transpose", inputs, [T((3, 2))])
    interpreter = Interpreter(model_content=model, resolver=resolver)
    interpreter.allocate_tensors()
    interpreter.invoke()
    got = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    assert (got == 1).all() and got.shape == (3, 2)


def test_a_refusal_names_the_types_and_what_to_do() -> None:
    attributes = {"block_size": 2, "data_format": "NCHW"}
    case = Case("DepthToSpace", [np.ones((1, 4, 2, 2), np.float32)], attributes)
    interpreter = Interpreter(model_content=case.model())
    with pytest.raises(ModelError, match=r"DepthToSpace is computed only.*FLOAT32.*flex\.md"):
        interpreter.allocate_tensors()
        interpreter.invoke()


@pytest.mark.parametrize(
    ("operator", "attributes", "reason"),
    [
        ("AddV2", {"T": "double"}, "input 'x' is FLOAT32, its node says double"),
        ("AddV2", {"T": "string"}, "attribute 'T' is 'string', expected one of bfloat16"),
    ],
)
def test_a_node_that_does_not_fit(operator: str, attributes: dict[str, Any], reason: str) -> None:
    x = np.ones(2, np.float32)
    with pytest.raises(ModelError, match=reason):
        Interpreter(model_content=Case(operator, [x, x], attributes).model()).allocate_tensors()
