"""tf.text's operators as custom operators of TFLite, against what tensorflow-text answers to the
same names; see `tests/flex/cases_tokenizers.py`."""

from __future__ import annotations

import pytest

from tests.flex.cases import Case, answer, cases_of
from tests.flex.test_cases import check
from tests.one_op import T
from tests.ops.custom_op import by_numpy, custom_model
from tflite_ort.schema.builder import tensor_type
from tflite_ort.schema.values.operators import FAMILIES

FORMS: dict[str, list[tuple[str, Case]]] = {}
for _family in ("normalization", "sequences", "tokenizers"):
    for _case in cases_of(_family):
        if _case.operator in FAMILIES and not _case.refused:
            FORMS.setdefault(_case.operator, []).append((_family, _case))


@pytest.mark.parametrize("operator", FORMS)
def test_custom_operators_of_tflite_are_the_same(operator: str) -> None:
    """The same names without a node of TensorFlow: their attributes stand in a map."""
    for family, case in FORMS[operator][::3]:
        check_custom_form(family, case)


def check_custom_form(family: str, case: Case) -> None:
    want = answer(family, case)
    assert want is not None
    inputs = [
        T.constant(array) if at in case.constants else T(array.shape, tensor_type(array.dtype))
        for at, array in enumerate(case.inputs)
    ]
    outputs = [T((), type) for type in case.output_types()]
    model = custom_model(case.operator, inputs, outputs, dict(case.attributes))
    got = by_numpy(model, case.feeds())
    check(got[: len(want)], want, case, str(case))
