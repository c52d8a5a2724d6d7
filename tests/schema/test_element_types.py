"""Element types that TFLite's kernels take: the table against LiteRT, and who is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tests.one_op import T, one_op_model, ours
from tests.oracle import litert
from tests.samples import SAMPLES, sample, types
from tflite_ort.schema import GatherOptions, ModelError, Op, TensorType
from tflite_ort.schema.file.element_types import ELEMENT_TYPES, NUMPY_DTYPE, named_types, type_of
from tflite_ort.schema.values.operators import data_input, data_types


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


def test_every_type_has_a_row() -> None:
    assert set(ELEMENT_TYPES) == set(TensorType)
    for type, row in ELEMENT_TYPES.items():
        assert type_of(NUMPY_DTYPE[type]) in (type, *named_types("i8 u8 i32 str"))
        assert type in named_types(row.short)
        if row.bits is not None and row.bits >= 8:
            assert 8 * NUMPY_DTYPE[type].itemsize == row.bits
        if row.codes is not None and row.bits is not None:
            assert row.codes[1] - row.codes[0] == 2**row.bits - 1
            assert np.array(row.codes, NUMPY_DTYPE[type]).tolist() == list(row.codes)


def test_the_data_of_an_operator_is_one_of_its_inputs() -> None:
    assert [data_input(op) for op in (Op.ADD, Op.SPLIT, Op.ONE_HOT)] == [0, 1, 2]
    assert data_types(Op.RANDOM_UNIFORM) is None
    assert data_types(Op.SPLIT) == named_types("f32 f8 i8 u8 i16 i32 i64")


def test_a_second_operand_of_another_type_is_refused() -> None:
    """Not only the data: indices have types of their own."""
    inputs = [T((4,)), T.constant(np.array([1.0], np.float32))]
    options = GatherOptions(axis=0, batch_dims=0)
    model = one_op_model(Op.GATHER, inputs, [T((1,))], options, 1)
    with pytest.raises(ModelError, match=r"GATHER_0: FLOAT32 is not one .*: INT16, INT32, INT64"):
        ours(model, [np.zeros(4, np.float32)])
