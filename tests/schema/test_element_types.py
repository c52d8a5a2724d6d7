"""Element types that TFLite's kernels take: the table against LiteRT, and who is refused."""

from __future__ import annotations

import pytest

from tests.one_op import ours
from tests.oracle import litert
from tests.samples import SAMPLES, sample, types
from tflite_ort.schema import ModelError, Op, TensorType
from tflite_ort.schema.values.element_types import ELEMENT_TYPES


def runs(op: Op, type: TensorType) -> bool:
    """Whether LiteRT runs `op` on data of `type`; its reference kernels lack some operators."""
    model, feeds = sample(op, type)
    for kernels in ("reference", "optimized"):
        try:
            litert(model, feeds, kernels)
        except ValueError as error:
            if kernels == "optimized" or "Didn't find op" not in str(error):
                return False
        except RuntimeError:
            return False
        else:
            return True
    return False


@pytest.mark.parametrize("op", ELEMENT_TYPES, ids=lambda op: op.name)
def test_types_taken_are_those_of_litert(op: Op) -> None:
    assert {type for type in types(op) if runs(op, type)} == ELEMENT_TYPES[op]


@pytest.mark.parametrize("op", ELEMENT_TYPES, ids=lambda op: op.name)
def test_other_types_are_refused(op: Op) -> None:
    for type in set(types(op)) - ELEMENT_TYPES[op]:
        model, feeds = sample(op, type)
        with pytest.raises(ModelError, match=f"{op.name}_0: .*{type.name}"):
            ours(model, feeds)


@pytest.mark.parametrize("op", ELEMENT_TYPES, ids=lambda op: op.name)
def test_types_taken_run(op: Op) -> None:
    for type in sorted(ELEMENT_TYPES[op]):
        model, feeds = sample(op, type)
        ours(model, feeds)
        ours(model, feeds, providers=[])


def test_every_sample_is_of_the_table() -> None:
    assert set(SAMPLES) == set(ELEMENT_TYPES)
