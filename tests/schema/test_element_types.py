"""Element types that TFLite's kernels take: the table against LiteRT, and who is refused."""

from __future__ import annotations

import pytest

from tests.one_op import ours
from tests.oracle import litert
from tests.samples import SAMPLES, sample, types
from tflite_ort.schema import ModelError, Op, TensorType
from tflite_ort.schema.values.operators import data_types


def taken(op: Op) -> frozenset[TensorType]:
    """The types that the table declares."""
    types = data_types(op)
    assert types is not None
    return types


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


@pytest.mark.parametrize("op", SAMPLES, ids=lambda op: op.name)
def test_types_taken_are_those_of_litert(op: Op) -> None:
    assert {type for type in types(op) if runs(op, type)} == taken(op) & set(types(op))


@pytest.mark.parametrize("op", SAMPLES, ids=lambda op: op.name)
def test_other_types_are_refused(op: Op) -> None:
    for type in set(types(op)) - taken(op):
        model, feeds = sample(op, type)
        with pytest.raises(ModelError, match=f"{op.name}_0: .*{type.name}"):
            ours(model, feeds)


@pytest.mark.parametrize("op", SAMPLES, ids=lambda op: op.name)
def test_types_taken_run(op: Op) -> None:
    for type in sorted(taken(op)):
        model, feeds = sample(op, type)
        ours(model, feeds)
        ours(model, feeds, providers=[])
