"""Results that are much larger than what they are made of are refused, and also where only values
tell their size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.fuzz.regressions import FOLDER as REGRESSIONS
from tests.one_op import T, one_op_model
from tflite_ort import BudgetExceeded, Budgets, Interpreter, export_onnx
from tflite_ort.schema import (
    BroadcastToOptions,
    FillOptions,
    NonMaxSuppressionV4Options,
    OneHotOptions,
    Op,
    Padding,
    PadOptions,
    PadV2Options,
    RandomOptions,
    RangeOptions,
    ResizeBilinearOptions,
    ResizeNearestNeighborOptions,
    ScatterNdOptions,
    SpaceToBatchNDOptions,
    SparseToDenseOptions,
    TensorType,
    TileOptions,
    TransposeConvOptions,
)

Array = npt.NDArray[Any]
I32 = TensorType.INT32
TIGHT = Budgets(result_bytes=2000)


def i32(*values: int) -> Array:
    return np.array(values, np.int32)


@dataclass(frozen=True)
class Sized:
    """An operator whose last sizes come from an input, small ones and large ones.

    Args:
        inputs: tensors, or constants.
        at: the input that tells sizes.
        small, large: its values.
    """

    op: Op
    inputs: Sequence[T]
    at: int
    small: Array
    large: Array
    options: Any = None
    version: int = 1
    outputs: int = 1
    type: TensorType = TensorType.FLOAT32

    def model(self) -> bytes:
        made = [T((1,) * self.rank, self.type), *[T((1,), I32)] * (self.outputs - 1)]
        return one_op_model(self.op, self.inputs, made, self.options, self.version)

    @property
    def rank(self) -> int:
        return _RANKS.get(self.op, 1)

    def run(self, values: Array, **options: Any) -> list[Array]:
        interpreter = Interpreter(model_content=self.model(), **options)
        interpreter.allocate_tensors()
        rng = np.random.default_rng(1)
        for detail in interpreter.get_input_details():
            drawn = rng.integers(0, 2, detail["shape"]).astype(detail["dtype"])
            own = detail["name"] == f"in{self.at}"
            interpreter.set_tensor(detail["index"], values if own else drawn)
        interpreter.invoke()
        return [interpreter.get_tensor(each["index"]) for each in interpreter.get_output_details()]


_RANKS = {
    **dict.fromkeys((Op.RESIZE_BILINEAR, Op.RESIZE_NEAREST_NEIGHBOR, Op.TRANSPOSE_CONV), 4),
    **dict.fromkeys((Op.SPACE_TO_BATCH_ND,), 4),
    **dict.fromkeys((Op.PAD, Op.PADV2, Op.FILL, Op.TILE, Op.BROADCAST_TO, Op.ONE_HOT), 2),
    **dict.fromkeys((Op.SCATTER_ND, Op.SPARSE_TO_DENSE, Op.RANDOM_UNIFORM), 2),
    **dict.fromkeys((Op.RANDOM_STANDARD_NORMAL, Op.MULTINOMIAL, Op.DILATE), 2),
}
F, ONE = T((2, 2)), T.constant(np.float32(1))
IMAGE, SIZE = T((1, 2, 2, 1)), T((2,), I32)
PADS, WIDE = i32(1, 1, 1, 1).reshape(2, 2), i32(0, 999, 0, 999).reshape(2, 2)
SEGMENTS = [T((4, 2)), T((4,), I32), T((), I32)]

SIZED = [
    Sized(Op.FILL, [SIZE, ONE], 0, i32(2, 3), i32(99, 999), FillOptions()),
    Sized(Op.TILE, [F, SIZE], 1, i32(2, 3), i32(99, 99), TileOptions()),
    Sized(Op.BROADCAST_TO, [T((1, 1)), SIZE], 1, i32(2, 3), i32(99, 99), BroadcastToOptions(), 2),
    Sized(Op.PAD, [F, T((2, 2), I32)], 1, PADS, WIDE, PadOptions()),
    Sized(Op.PADV2, [F, T((2, 2), I32), ONE], 1, PADS, WIDE, PadV2Options()),
    Sized(
        Op.RANGE,
        [T.constant(i32(0).reshape(())), T((), I32), T.constant(i32(1).reshape(()))],
        1,
        np.int32(5),
        np.int32(2_000_000_000),
        RangeOptions(),
        type=I32,
    ),
    Sized(
        Op.RANGE,
        [T.constant(np.float32(1)), T(()), T.constant(np.float32(-0.5))],
        1,
        np.float32(-5),
        np.float32(-1e9),
        RangeOptions(),
    ),
    *[
        Sized(op, SEGMENTS, 2, np.int32(3), np.int32(1 << 30))
        for op in (Op.UNSORTED_SEGMENT_SUM, Op.UNSORTED_SEGMENT_PROD, Op.UNSORTED_SEGMENT_MAX)
    ],
    Sized(
        Op.ONE_HOT,
        [T((4,), I32), T((), I32), ONE, T.constant(np.float32(0))],
        1,
        np.int32(3),
        np.int32(1 << 30),
        OneHotOptions(axis=-1),
    ),
    Sized(
        Op.SCATTER_ND,
        [T((2, 1), I32), T((2, 3)), SIZE],
        2,
        i32(4, 3),
        i32(1 << 20, 3),
        ScatterNdOptions(),
    ),
    Sized(
        Op.SPARSE_TO_DENSE,
        [T.constant(i32(0, 1, 1, 0).reshape(2, 2)), SIZE, T((2,)), T.constant(np.float32(0))],
        1,
        i32(2, 3),
        i32(999, 999),
        SparseToDenseOptions(),
    ),
    Sized(Op.RESIZE_BILINEAR, [IMAGE, SIZE], 1, i32(3, 4), i32(99, 99), ResizeBilinearOptions()),
    Sized(
        Op.RESIZE_NEAREST_NEIGHBOR,
        [IMAGE, SIZE],
        1,
        i32(3, 4),
        i32(99, 99),
        ResizeNearestNeighborOptions(),
    ),
    Sized(
        Op.SPACE_TO_BATCH_ND,
        [IMAGE, T.constant(i32(1, 1)), T((2, 2), I32)],
        2,
        PADS,
        WIDE,
        SpaceToBatchNDOptions(),
    ),
    Sized(
        Op.TRANSPOSE_CONV,
        [T((4,), I32), T.constant(np.ones((1, 2, 2, 1), np.float32)), IMAGE],
        0,
        # What convolves to 2 x 2 cells.
        i32(1, 22, 22, 1),
        i32(1, 41, 41, 1),
        TransposeConvOptions(padding=Padding.VALID, stride_w=20, stride_h=20),
    ),
    *[
        Sized(op, [SIZE], 0, i32(2, 3), i32(99, 99), RandomOptions(seed=3, seed2=4))
        for op in (Op.RANDOM_UNIFORM, Op.RANDOM_STANDARD_NORMAL)
    ],
    Sized(
        Op.MULTINOMIAL,
        [F, T((), I32)],
        1,
        np.int32(3),
        np.int32(1 << 20),
        RandomOptions(seed=3, seed2=4),
        type=I32,
    ),
    Sized(
        Op.DILATE,
        [F, SIZE, T.constant(np.float32(0))],
        1,
        i32(2, 3),
        i32(999, 999),
    ),
    Sized(
        Op.NON_MAX_SUPPRESSION_V4,
        [T((3, 4)), T((3,)), T((), I32), T.constant(np.float32(0.5)), T.constant(np.float32(0))],
        2,
        np.int32(2),
        np.int32(1 << 30),
        NonMaxSuppressionV4Options(),
        outputs=2,
        type=I32,
    ),
]


def _name(case: Sized) -> str:
    return f"{case.op.name} {case.type.name}"


@pytest.mark.parametrize("providers", [None, []], ids=["ort", "numpy"])
@pytest.mark.parametrize("case", SIZED, ids=_name)
def test_a_size_that_the_model_computes_has_a_budget(case: Sized, providers: Any) -> None:
    (small, *_) = case.run(case.small, providers=providers, budgets=TIGHT)
    (again, *_) = case.run(case.small, providers=providers)
    assert np.array_equal(small, again)
    with pytest.raises(BudgetExceeded, match=case.op.name) as caught:
        case.run(case.large, providers=providers, budgets=TIGHT)
    assert caught.value.name == "result_bytes"
    assert caught.value.needed > 2000


@pytest.mark.parametrize("providers", [None, []], ids=["ort", "numpy"])
def test_the_number_that_an_error_names_is_enough(providers: Any) -> None:
    fill = SIZED[0]
    with pytest.raises(BudgetExceeded) as caught:
        fill.run(i32(99, 99), providers=providers, budgets=TIGHT)
    needed = caught.value.needed
    (filled,) = fill.run(i32(99, 99), providers=providers, budgets=Budgets(result_bytes=needed))
    assert filled.shape == (99, 99)
    with pytest.raises(BudgetExceeded):
        fill.run(i32(99, 99), providers=providers, budgets=Budgets(result_bytes=needed - 1))


def test_results_of_known_size_have_the_same_budget() -> None:
    """Before anything is allocated, and in an export."""
    dims = T.constant(i32(99, 99))
    model = one_op_model(Op.FILL, [dims, T(())], [T((99, 99))], FillOptions())
    with pytest.raises(BudgetExceeded, match="result_bytes"):
        Interpreter(model_content=model, budgets=TIGHT).allocate_tensors()
    with pytest.raises(BudgetExceeded, match="result_bytes"):
        export_onnx(model, budgets=TIGHT)


def test_large_inputs_may_have_large_results() -> None:
    """A result up to 64 times as large as what it is made of counts for nothing."""
    case = Sized(Op.TILE, [T((9, 100)), SIZE], 1, i32(3, 20), i32(99, 99), TileOptions())
    for providers in (None, []):
        (tiled,) = case.run(case.small, providers=providers, budgets=Budgets(result_bytes=0))
        assert tiled.shape == (27, 2000)


def test_an_export_makes_results_of_any_size() -> None:
    """It is for other runtimes, and their limits."""
    nodes = [node.op_type for node in export_onnx(SIZED[0].model()).graph.node]
    assert "ReduceProd" not in nodes


@pytest.mark.parametrize("providers", [None, []], ids=["ort", "numpy"])
@pytest.mark.parametrize("multiples", [(2**31 - 2, 0), (0, 2**31 - 2)])
def test_a_size_beyond_32_bits_beside_one_of_0(
    multiples: tuple[int, int], providers: list[str] | None
) -> None:
    """The result has no bytes, and no shape that details could tell."""
    inputs = [T((2, 3), TensorType.BOOL), T((2,), TensorType.INT32)]
    content = one_op_model(Op.TILE, inputs, [T((4, 9), TensorType.BOOL)])
    interpreter = Interpreter(model_content=content, providers=providers)
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.ones((2, 3), np.bool_))
    interpreter.set_tensor(1, np.array(multiples, np.int32))
    with pytest.raises(BudgetExceeded, match="result_bytes"):
        interpreter.invoke()


@pytest.mark.parametrize("providers", [None, []], ids=["ort", "numpy"])
def test_codes_count_as_what_kernels_widen_them_to(providers: list[str] | None) -> None:
    dims = T.constant(i32(20, 50))
    inputs = [dims, T((), TensorType.INT8)]
    model = one_op_model(Op.FILL, inputs, [T((20, 50), TensorType.INT8)], FillOptions())
    with pytest.raises(BudgetExceeded) as caught:
        Interpreter(model_content=model, providers=providers, budgets=TIGHT).allocate_tensors()
    assert 2000 < caught.value.needed <= 4 * 20 * 50


@pytest.mark.parametrize("providers", [None, []], ids=["ort", "numpy"])
@pytest.mark.parametrize("name", ["windows_of_a_padded_gigabyte", "pad_of_a_gigabyte_that_is_cut"])
def test_padding_that_does_not_show(name: str, providers: list[str] | None) -> None:
    """The result is small, and the padded input takes gigabytes."""
    content = (REGRESSIONS / f"{name}.tflite").read_bytes()
    interpreter = Interpreter(model_content=content, providers=providers)
    with pytest.raises(BudgetExceeded, match="result bytes"):
        interpreter.allocate_tensors()
