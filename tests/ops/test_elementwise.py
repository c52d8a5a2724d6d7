"""Elementwise arithmetic against LiteRT: exact integers in numpy, one quantum through ORT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

from tests.one_op import Array, Case, Node, T, assert_close, check, graph_model, one_op_model, ours
from tests.ops.versions import check_versions, one_per_operator
from tests.oracle import litert
from tflite_ort import export_onnx
from tflite_ort.schema import (
    ActivationFunctionType,
    AddOptions,
    DivOptions,
    KernelError,
    MulOptions,
    Op,
    Padding,
    Pool2DOptions,
    SubOptions,
    TensorType,
)
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.schema.values.semantics import quantized_range

FLOAT32, FLOAT16, INT32, INT64 = (
    TensorType.FLOAT32,
    TensorType.FLOAT16,
    TensorType.INT32,
    TensorType.INT64,
)
UINT8, INT8, INT16, UINT32 = (
    TensorType.UINT8,
    TensorType.INT8,
    TensorType.INT16,
    TensorType.UINT32,
)
NONE, RELU, RELU6, RELU_N1_TO_1 = (
    ActivationFunctionType.NONE,
    ActivationFunctionType.RELU,
    ActivationFunctionType.RELU6,
    ActivationFunctionType.RELU_N1_TO_1,
)
Shape = tuple[int, ...]

FUSED: dict[Op, Any] = {
    Op.ADD: AddOptions,
    Op.SUB: SubOptions,
    Op.MUL: MulOptions,
    Op.DIV: DivOptions,
}
SHAPES: tuple[tuple[Shape, Shape], ...] = (
    ((2, 5, 4, 3), (2, 5, 4, 3)),
    ((2, 5, 4, 3), (3,)),
    ((3,), (2, 5, 4, 3)),
    ((2, 1, 4, 1), (5, 1, 3)),
    ((6,), ()),
    ((), ()),
    ((2, 0, 3), (1, 3)),
)
BINARY = (Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.MAXIMUM, Op.MINIMUM, Op.SQUARED_DIFFERENCE)


def options(op: Op, activation: ActivationFunctionType = NONE, **more: Any) -> Any:
    return FUSED[op](fused_activation_function=activation, **more) if op in FUSED else None


def broadcast(shapes: tuple[Shape, Shape]) -> Shape:
    return np.broadcast_shapes(*shapes)


def nonzero(t: T, rng: np.random.Generator) -> Array:
    """Random codes, none of which is the zero point."""
    drawn = t.random(rng)
    drawn[drawn == t.zero_point] ^= 1
    return drawn


def codes(type: TensorType) -> Array:
    low, high = quantized_range(type)
    return np.arange(low, high + 1).astype(NUMPY_DTYPE[type])


def plain_rows() -> list[Case]:
    """Floats and integers that are numbers."""
    rows = []
    for op in (*BINARY, Op.FLOOR_DIV, Op.POW):
        low = 0.5 if op in (Op.DIV, Op.POW, Op.FLOOR_DIV) else -4.0
        for shapes in SHAPES:
            for activation in (NONE, RELU, RELU6, RELU_N1_TO_1) if op in FUSED else (NONE,):
                tensors = [T(shape) for shape in shapes]
                rows.append(
                    Case(
                        f"{op.name}-{shapes}-{activation.name}",
                        op,
                        tensors,
                        [T(broadcast(shapes))],
                        options(op, activation),
                        low=low,
                    )
                )
    return rows


def integer_rows() -> list[Case]:
    huge = {"low": -(2**31), "high": 2**31 - 1}
    rows = []
    for op, types in (
        (Op.ADD, (INT32, INT64, INT16, FLOAT16)),
        (Op.SUB, (INT32, INT64)),
        (Op.MUL, (INT32, INT64, INT16, UINT32, FLOAT16)),
        (Op.MAXIMUM, (INT32, INT64, INT16, UINT8, INT8, FLOAT16)),
        (Op.MINIMUM, (INT32, INT64, INT16, UINT8, INT8, FLOAT16)),
        (Op.SQUARED_DIFFERENCE, (INT32,)),
    ):
        for type in types:
            span: dict[str, Any] = huge if type in (INT32, INT64) else {"low": 0, "high": 200}
            pair = [T((4, 1, 3), type), T((5, 3), type)]
            reference = "default" if type is FLOAT16 else "reference"
            rows.append(
                Case(
                    f"{op.name}-{type.name}",
                    op,
                    pair,
                    [T((4, 5, 3), type)],
                    options(op),
                    **span,
                    rtol=1e-3 if type is FLOAT16 else 1e-5,
                    reference=reference,
                )
            )
    divisor = np.array([[1, 7, -3], [2, 1000, -4]], np.int32)
    pair = [T((4, 1, 3), INT32), T.constant(divisor)]
    rows += [
        Case(f"{op.name}-INT32-constant", op, pair, [T((4, 2, 3), INT32)], options(op), **huge)
        for op in (Op.DIV, Op.FLOOR_DIV)
    ]
    exponent = T.constant(np.array([[0, 1, 2], [3, 4, 5]], np.int32))
    rows.append(
        Case("POW-INT32-constant", Op.POW, [T((4, 1, 3), INT32), exponent], [T((4, 2, 3), INT32)])
    )
    return rows


# Scales of both inputs and the output, then their zero points (int16 has none).
SCALES = (
    ((0.05, 0.03, 0.07), (3, -5, 1)),
    ((0.004, 0.06, 0.02), (-128, 127, -20)),
    ((0.02, 0.02, 0.02), (0, 0, 0)),
)


def quantized(type: TensorType, scale: float, zero_point: int, shape: Shape) -> T:
    zero = {UINT8: zero_point + 128, INT8: zero_point, INT16: 0}[type]
    return T(shape, type, scale=scale / 256 if type is INT16 else scale, zero_point=zero)


def quantized_rows() -> list[Case]:
    rows = []
    for op in BINARY:
        types = (INT8,) if op is Op.SQUARED_DIFFERENCE else (UINT8, INT8, INT16)
        for type in types:
            for number, (scales, zeros) in enumerate(SCALES):
                rows.append(quantized_row(op, type, scales, zeros, f"{number}"))
    return rows


def quantized_row(
    op: Op, type: TensorType, scales: Sequence[float], zeros: Sequence[int], name: str
) -> Case:
    first, second, result = scales
    if op is Op.MUL:
        result = first * second * (60 if type is not INT16 else 60 / 256)
    if op is Op.DIV:
        # Below about 2**8, TFLite's own result is undefined (a shift by more than 31 bits).
        result = first / second / (300 if type is not INT16 else 300 / 256)
    if op is Op.SQUARED_DIFFERENCE:
        result = (200 * max(first, second)) ** 2 / 200
    shape = (7, 64, 5)
    a, b, c = (
        quantized(type, scale, zero, shape)
        for scale, zero in zip((first, second, result), zeros, strict=True)
    )
    feeds = None
    if op is Op.DIV:
        rng = np.random.default_rng(7)
        feeds = [a.random(rng), nonzero(b, rng)]
        if type is INT16:
            feeds[1] = rng.integers(1, 8, shape).astype(np.int16)
    activation = list(ActivationFunctionType)[len(name + op.name) % 4]
    chosen = options(
        op, activation, **({"pot_scale_int16": False} if op in (Op.ADD, Op.SUB) else {})
    )
    return Case(f"{op.name}-{type.name}-{name}", op, [a, b], [c], chosen, feeds=feeds)


def power_of_two_rows() -> list[Case]:
    """int16 with scales that are powers of two is shifted."""
    return [
        Case(
            f"{op.name}-INT16-shifted-{first}-{second}",
            op,
            [T((3, 200), INT16, scale=2.0**first), T((3, 200), INT16, scale=2.0**second)],
            [T((3, 200), INT16, scale=2.0**-10)],
            options(op, RELU6),
        )
        for op in (Op.ADD, Op.SUB)
        for first, second in ((-10, -12), (-13, -10), (-10, -10))
    ]


@pytest.mark.parametrize("op", [Op.ADD, Op.SUB], ids=lambda op: op.name)
@pytest.mark.parametrize("constant", [False, True], ids=["computed", "constant"])
@pytest.mark.parametrize(
    "scales", [(8 / 32767, 8 / 32767, 4 / 32767), (2.0**-12, 2.0**-13, 2.0**-11)], ids=str
)
def test_scales_that_are_refused(op: Op, constant: bool, scales: tuple[float, ...]) -> None:
    """TFLite shifts 16-bit codes of one input to the unit of the other and of the output."""
    rng = np.random.default_rng(5)
    a, b, c = (T((3, 20), INT16, scale=scale) for scale in scales)
    arrays = [] if constant else [a.random(rng), b.random(rng)]
    if constant:
        a, b = (T.constant(t.random(rng), INT16, scale=t.scale) for t in (a, b))
    model = one_op_model(op, [a, b], [c], options(op))
    with pytest.raises(RuntimeError, match="input1_shift == 0"):
        litert(model, arrays)
    with pytest.raises(KernelError, match="only if the larger scale of the inputs"):
        ours(model, arrays)


UNARY = (Op.EXP, Op.LOG, Op.SQRT, Op.RSQRT, Op.ABS, Op.NEG)


def unary_rows() -> list[Case]:
    rows = [
        Case(
            f"{op.name}-FLOAT32-{shape}",
            op,
            [T(shape)],
            [T(shape)],
            low=0.1 if op in (Op.LOG, Op.SQRT, Op.RSQRT) else -4.0,
        )
        for op in UNARY
        for shape in ((2, 5, 4, 3), (7,), (), (0, 3))
    ]
    rows += [
        Case(f"{op.name}-{type.name}", op, [T((5, 7), type)], [T((5, 7), type)], low=-99, high=99)
        for op, types in ((Op.ABS, (INT32, INT16)), (Op.NEG, (INT32, INT64, INT16, INT8, FLOAT16)))
        for type in types
    ]
    rows += [
        unary_codes(op, type, scale, result, zero)
        for op, scale, result, zero in (
            (Op.EXP, 0.02, 0.06, -128),
            (Op.EXP, 0.03, 0.1, -30),
            (Op.LOG, 0.02, 0.01, 20),
            (Op.LOG, 0.4, 0.05, -3),
            (Op.SQRT, 0.02, 0.01, -128),
            (Op.RSQRT, 0.02, 0.05, -128),
            (Op.ABS, 0.02, 0.02, -100),
            (Op.ABS, 0.02, 0.013, 5),
            (Op.NEG, 0.02, 0.02, 5),
        )
        for type in (INT8, INT16)
    ]
    return rows


def unary_codes(op: Op, type: TensorType, scale: float, result: float, zero: int) -> Case:
    """All codes; those below the zero point are left out where only positive numbers will do."""
    every = codes(type)
    origin = 0 if type is INT16 else -128 if op in (Op.SQRT, Op.RSQRT) else 9
    if op in (Op.SQRT, Op.RSQRT):
        every = np.maximum(every, origin).astype(every.dtype)
    divisor = 128 if type is INT16 else 1
    by_table = type is INT16 and op is not Op.ABS and op is not Op.NEG
    return Case(
        f"{op.name}-{type.name}-{scale}-{result}",
        op,
        [T(every.shape, type, scale=scale / divisor, zero_point=origin)],
        [T(every.shape, type, scale=result / divisor, zero_point=0 if type is INT16 else zero)],
        feeds=[every],
        quanta=0 if by_table else 1,
    )


CASES = plain_rows() + integer_rows() + quantized_rows() + power_of_two_rows() + unary_rows()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_against_litert(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("case", one_per_operator(CASES), ids=lambda case: case.op.name)
def test_versions_are_those_of_litert(case: Case) -> None:
    check_versions(case)


@given(
    op=st.sampled_from((Op.ADD, Op.SUB, Op.MUL, Op.MAXIMUM)),
    type=st.sampled_from((FLOAT32, UINT8, INT8, INT16)),
    shapes=mutually_broadcastable_shapes(num_shapes=2, max_dims=5, max_side=4),
    exponents=st.tuples(*(st.floats(-6, 0) for _ in range(3))),
    zeros=st.tuples(*(st.integers(-128, 127) for _ in range(3))),
    activation=st.sampled_from((NONE, RELU, RELU6, RELU_N1_TO_1)),
    seed=st.integers(0, 2**31),
)
def test_any_scales_and_shapes(
    op: Op,
    type: TensorType,
    shapes: Any,
    exponents: tuple[float, float, float],
    zeros: tuple[int, int, int],
    activation: ActivationFunctionType,
    seed: int,
) -> None:
    first, second, result = (float(np.float32(np.exp(exponent))) for exponent in exponents)
    # An output scale far below the inputs' is refused by LiteRT's ADD.
    result = max(result, first / 1e3, second / 1e3, first * second / 256)
    pair = shapes.input_shapes
    if type is FLOAT32:
        tensors = [T(shape) for shape in (*pair, shapes.result_shape)]
    else:
        tensors = [
            quantized(type, scale, zero, shape)
            for scale, zero, shape in zip(
                (first, second, result), zeros, (*pair, shapes.result_shape), strict=True
            )
        ]
    more = {"pot_scale_int16": False} if op in (Op.ADD, Op.SUB) else {}
    check(Case("drawn", op, tensors[:2], tensors[2:], options(op, activation, **more)), seed)


@pytest.mark.parametrize("op", [Op.ADD, Op.SUB, Op.MUL, Op.MAXIMUM], ids=lambda op: op.name)
@pytest.mark.parametrize("type", [FLOAT32, INT8, UINT8], ids=lambda type: type.name)
@pytest.mark.parametrize("first", [False, True], ids=["constant-second", "constant-first"])
def test_constant_operand(op: Op, type: TensorType, first: bool) -> None:
    rng = np.random.default_rng(3)
    scale = None if type is FLOAT32 else 0.04
    zero = 130 if type is UINT8 else 2
    constant = T((3,), type, scale=scale, zero_point=zero)
    constant = T.constant(constant.random(rng), type, scale=scale, zero_point=zero)
    other = T((2, 4, 5, 3), type, scale=None if scale is None else 0.03, zero_point=zero)
    pair = [constant, other] if first else [other, constant]
    result = T(other.shape, type, scale=None if scale is None else 0.05, zero_point=zero)
    check(Case("constant", op, pair, [result], options(op)))


def between_pools(op: Op, others: Sequence[T], chosen: Any = None) -> bytes:
    """MAX_POOL_2D -> `op` with constants or the pool again -> MAX_POOL_2D."""
    pooled = T((1, 4, 6, 5))
    constants = {f"k{i}": t for i, t in enumerate(others)}
    tensors = {"x": T((1, 8, 12, 5)), "a": pooled, "b": pooled, "y": T((1, 2, 3, 5)), **constants}
    pool = Pool2DOptions(Padding.VALID, stride_w=2, stride_h=2, filter_width=2, filter_height=2)
    nodes = [
        Node(Op.MAX_POOL_2D, ["x"], ["a"], pool),
        Node(op, ["a", *(constants or ["a"])], ["b"], chosen),
        Node(Op.MAX_POOL_2D, ["b"], ["y"], pool),
    ]
    return graph_model(tensors, nodes, ["y"])


OPERAND_SHAPES: tuple[Shape, ...] = ((5,), (6, 5), (4, 1, 1), (1, 4, 6, 5), (1,))
FOLLOWERS = [
    *[
        (op, shape)
        for op in (Op.ADD, Op.SUB, Op.MUL, Op.MAXIMUM, Op.PRELU)
        for shape in OPERAND_SHAPES
    ],
    *[(op, None) for op in (Op.ADD, Op.MUL, Op.MINIMUM)],
]


@pytest.mark.parametrize(("op", "shape"), FOLLOWERS, ids=str)
def test_follows_the_layout_of_its_input(op: Op, shape: Shape | None) -> None:
    """Between operators that want channels first nothing is transposed."""
    rng = np.random.default_rng(4)
    others = [] if shape is None else [T.constant(rng.normal(size=shape).astype(np.float32))]
    model = between_pools(op, others, options(op))
    x = rng.normal(size=(1, 8, 12, 5)).astype(np.float32)
    (got,), runs_on = ours(model, [x])
    assert runs_on == {"ort"}
    assert_close(got, litert(model, [x], "reference")[0], 0, 1e-5, f"{op.name} of {shape}")
    nodes = [node.op_type for node in export_onnx(model).graph.node]
    assert nodes.count("Transpose") == 2, nodes


NAN_CASES = (Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.MAXIMUM, Op.MINIMUM, Op.SQUARED_DIFFERENCE)


@pytest.mark.parametrize("op", NAN_CASES, ids=lambda op: op.name)
def test_not_a_number_and_infinity(op: Op) -> None:
    values = np.array([np.nan, np.inf, -np.inf, 0.0, 1.5, -2.0], np.float32)
    feeds = [array.ravel() for array in np.meshgrid(values, values)]
    tensor = T(feeds[0].shape)
    model = one_op_model(op, [tensor, tensor], [tensor], options(op))
    (want,) = litert(model, feeds, "default")
    for providers in (None, []):
        (got,), _ = ours(model, feeds, providers)
        assert_close(got, want, 0, 1e-6, f"{op.name} with providers {providers}")


def test_floor_division_takes_the_divisors_sign() -> None:
    a, b = np.array([7, -7, 7, -7], np.int32), np.array([2, 2, -2, -2], np.int32)
    model = one_op_model(Op.FLOOR_DIV, [T((4,), INT32)] * 2, [T((4,), INT32)])
    (result,), runs_on = ours(model, [a, b])
    assert result.tolist() == [3, -4, -4, 3]
    assert runs_on == {"numpy"}, "a divisor that may be 0 needs the kernel"


def test_floor_division_of_codes_ignores_their_scale() -> None:
    every = codes(INT8)
    divisor = T.constant(np.array(-3, np.int8), INT8, scale=0.2, zero_point=4)
    tensor = T(every.shape, INT8, scale=0.1, zero_point=7)
    check(Case("codes", Op.FLOOR_DIV, [tensor, divisor], [tensor], feeds=[every], quanta=0))


@pytest.mark.parametrize("op", [Op.ADD, Op.SUB, Op.MUL], ids=lambda op: op.name)
def test_scales_of_int32_mean_nothing(op: Op) -> None:
    tensor = T((40,), INT32, scale=0.5, zero_point=3)
    check(Case("scaled", op, [tensor, tensor], [tensor], options(op)))


def test_no_quotient_rounds_up_to_a_whole() -> None:
    a, b = np.array([16777215.0], np.float32), np.array([1.0000001], np.float32)
    model = one_op_model(Op.FLOOR_DIV, [T((1,))] * 2, [T((1,))])
    assert np.array_equal(ours(model, [a, b])[0][0], litert(model, [a, b])[0])
