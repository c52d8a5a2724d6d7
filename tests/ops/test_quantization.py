"""QUANTIZE, DEQUANTIZE, CAST, DENSIFY against LiteRT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.one_op import Case, Node, T, assert_close, check, graph_model, one_op_model, ours
from tests.ops.operands import exported
from tests.ops.versions import check_versions, one_per_operator
from tests.oracle import litert
from tflite_ort.schema import (
    DimensionMetadata,
    DimensionType,
    Int32Vector,
    KernelError,
    Op,
    SparsityParameters,
    TensorType,
)
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.schema.values.semantics import quantized_range

FLOAT32, FLOAT16, FLOAT64 = TensorType.FLOAT32, TensorType.FLOAT16, TensorType.FLOAT64
UINT8, INT8, INT16, INT32 = TensorType.UINT8, TensorType.INT8, TensorType.INT16, TensorType.INT32
INT64, UINT16, UINT32, BOOL = (
    TensorType.INT64,
    TensorType.UINT16,
    TensorType.UINT32,
    TensorType.BOOL,
)

ZERO_POINTS = {UINT8: 121, INT8: -7, INT16: 0, INT32: 0}
SCALES = {UINT8: 0.043, INT8: 0.043, INT16: 0.043 / 256, INT32: 0.043 / 2**16}


def codes(type: TensorType) -> Any:
    if type is INT32:
        return np.random.default_rng(0).integers(-(2**22), 2**22, 500).astype(np.int32)
    low, high = quantized_range(type)
    return np.arange(low, high + 1).astype(NUMPY_DTYPE[type])


def tensor(shape: tuple[int, ...], type: TensorType, scale: float | None = None) -> T:
    if type not in SCALES:
        return T(shape, type)
    return T(shape, type, scale=scale or SCALES[type], zero_point=ZERO_POINTS[type])


def requantize(source: TensorType, target: TensorType, ratio: float) -> Case:
    every = codes(source)
    return Case(
        f"QUANTIZE-{source.name}-{target.name}-{ratio}",
        Op.QUANTIZE,
        [tensor(every.shape, source)],
        [tensor(every.shape, target, SCALES[target] * ratio)],
        feeds=[every],
    )


CASES = [
    *[
        Case(
            f"QUANTIZE-FLOAT32-{type.name}-{shape}",
            Op.QUANTIZE,
            [T(shape)],
            [tensor(shape, type)],
            low=-9,
            high=9,
        )
        for type in (UINT8, INT8, INT16)
        for shape in ((2, 5, 4, 3), (300,), (), (0, 2))
    ],
    *[
        requantize(source, target, ratio)
        for source, targets in (
            (UINT8, (UINT8, INT8, INT16)),
            (INT8, (UINT8, INT8, INT16)),
            (INT16, (INT8, INT16, INT32)),
            (INT32, (INT8, INT16)),
        )
        for target in targets
        for ratio in (1.0, 0.37, 2.9)
    ],
    *[
        Case(
            f"QUANTIZE-{type.name}-{shape}",
            Op.QUANTIZE,
            [tensor(shape, type)],
            [tensor(shape, type, SCALES[type] * 2.9)],
        )
        for type in (UINT8, INT8, INT16)
        for shape in ((2, 5, 4, 3), (), (0, 2))
    ],
    *[
        Case(
            f"DEQUANTIZE-{type.name}",
            Op.DEQUANTIZE,
            [tensor(codes(type).shape, type)],
            [T(codes(type).shape)],
            feeds=[codes(type)],
        )
        for type in (UINT8, INT8, INT16)
    ],
    Case("DEQUANTIZE-FLOAT16", Op.DEQUANTIZE, [T((9, 7), FLOAT16)], [T((9, 7))], rtol=0),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_against_litert(case: Case) -> None:
    check(case)


CONSTANT = T.constant(np.zeros((2, 3), np.float32))
OTHERS = [
    Case("cast", Op.CAST, [T((2, 3))], [T((2, 3), INT32)]),
    Case("densify", Op.DENSIFY, [CONSTANT], [T((2, 3))]),
]


@pytest.mark.parametrize("case", one_per_operator(CASES + OTHERS), ids=lambda case: case.op.name)
def test_versions_are_those_of_litert(case: Case) -> None:
    check_versions(case)


def test_recoding_int8_to_uint8_is_exact() -> None:
    """The same scale, and zero points 128 apart: ONNX Runtime has nothing to do."""
    every = codes(INT8)
    model = one_op_model(
        Op.QUANTIZE,
        [T(every.shape, INT8, scale=0.1, zero_point=-5)],
        [T(every.shape, UINT8, scale=0.1, zero_point=123)],
    )
    for providers in (None, []):
        (got,), _ = ours(model, [every], providers)
        assert got.tolist() == list(range(256))


@pytest.mark.parametrize("op", [Op.QUANTIZE, Op.RELU], ids=lambda op: op.name)
def test_two_quantizations_in_a_row_keep_their_scales(op: Op) -> None:
    """ONNX Runtime makes one pair of two QuantizeLinear and DequantizeLinear, of a mean scale."""
    tensors = {
        "x": T((2, 300)),
        "fine": T((2, 300), INT8, scale=0.0627, zero_point=0),
        "coarse": T((2, 300), INT8, scale=0.0314, zero_point=-128),
        "y": T((2, 300)),
    }
    nodes = [
        Node(Op.QUANTIZE, ["x"], ["fine"]),
        Node(op, ["fine"], ["coarse"], version=2),
        Node(Op.DEQUANTIZE, ["coarse"], ["y"], version=2),
    ]
    model = graph_model(tensors, nodes, ["y"])
    feeds = [np.linspace(-8, 8, 600, dtype=np.float32).reshape(2, 300)]
    expected = litert(model, feeds, "reference")[0]
    for found in (ours(model, feeds)[0], exported(model, feeds)):
        # The halves of codes apart, which the two runtimes may round either way.
        assert np.mean(np.abs(found[0] - expected) > 1e-6) < 0.02


@given(
    source=st.sampled_from((FLOAT32, UINT8, INT8, INT16)),
    target=st.sampled_from((INT8, INT16)),
    exponents=st.tuples(st.floats(-8, 1), st.floats(-8, 1)),
    zeros=st.tuples(st.integers(-128, 127), st.integers(-128, 127)),
    seed=st.integers(0, 2**31),
)
def test_any_quantization(
    source: TensorType,
    target: TensorType,
    exponents: tuple[float, float],
    zeros: tuple[int, int],
    seed: int,
) -> None:
    scales = [float(np.float32(np.exp(exponent))) for exponent in exponents]
    moved = {UINT8: zeros[0] + 128, INT8: zeros[0]}
    input = T((400,), source)
    if source is not FLOAT32:
        input = T((400,), source, scale=scales[0], zero_point=moved.get(source, 0))
    output = T((400,), target, scale=scales[1], zero_point=zeros[1] if target is INT8 else 0)
    check(Case("drawn", Op.QUANTIZE, [input], [output], low=-300, high=300), seed)


@pytest.mark.parametrize(("type", "zero"), [(TensorType.INT4, -2), (TensorType.UINT4, 7)])
@pytest.mark.parametrize("scale", [0.5, 0.37])
def test_floats_become_codes_of_4_bits(type: TensorType, zero: int, scale: float) -> None:
    """Halves go away from zero."""
    x = np.append(np.arange(-40, 41) * 0.125, [np.inf, -np.inf]).astype(np.float32)
    model = one_op_model(Op.QUANTIZE, [T(x.shape)], [T(x.shape, type, scale, zero)], version=4)
    (want,) = litert(model, [x[:-2]], "reference")
    low, high = quantized_range(type)
    for got in (*(ours(model, [x], each)[0][0] for each in (None, [])), *exported(model, [x])):
        np.testing.assert_array_equal(got, [*want, high, low])


# CAST --------------------------------------------------------------------------------------------

CAST_TYPES = (FLOAT32, FLOAT64, FLOAT16, INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, BOOL)
EXTREMES = (0, 1, -1, 2.5, -2.5, 127.9, -128.9, 255.5, 300, -300, 32768, 65536, 2**31, -(2.0**33))
FLOAT_EXTREMES = (*EXTREMES, 2.0**64, -(2.0**64), np.nan, np.inf, -np.inf)


@pytest.mark.parametrize("target", CAST_TYPES, ids=lambda type: type.name)
@pytest.mark.parametrize("source", CAST_TYPES, ids=lambda type: type.name)
def test_cast(source: TensorType, target: TensorType) -> None:
    """Floats saturate and NaN becomes the highest integer; integers wrap."""
    dtype = NUMPY_DTYPE[source]
    with np.errstate(all="ignore"):
        if dtype.kind == "f":
            x = np.array(FLOAT_EXTREMES).astype(dtype)
        else:
            x = np.array(EXTREMES).astype(np.int64).astype(dtype)
    model = one_op_model(Op.CAST, [T(x.shape, source)], [T(x.shape, target)])
    (want,) = litert(model, [x], "reference")
    for providers in (None, []):
        (got,), runs_on = ours(model, [x], providers)
        assert runs_on == {"numpy" if providers == [] else "ort"}
        assert_close(got, want, 0, 0, f"{x} with providers {providers}")


def test_many_floats_are_cast_some_at_a_time() -> None:
    x = np.resize(np.array([*FLOAT_EXTREMES, -(2.0**31), 2.0**31 - 128], np.float32), 200_001)
    model = one_op_model(Op.CAST, [T(x.shape)], [T(x.shape, INT32)])
    (want,) = litert(model, [x], "reference")
    (got,), _ = ours(model, [x], [])
    assert np.array_equal(got, want)


def test_cast_takes_codes_as_they_are() -> None:
    every = codes(INT8)
    model = one_op_model(
        Op.CAST, [T(every.shape, INT8, scale=0.1, zero_point=3)], [T(every.shape, FLOAT32)]
    )
    for providers in (None, []):
        (got,), _ = ours(model, [every], providers)
        assert got.tolist() == every.tolist()


def test_cast_of_a_complex_number_gives_its_real_part() -> None:
    x = np.array([1.5 + 2j, -3 - 1j], np.complex64)
    model = one_op_model(Op.CAST, [T((2,), TensorType.COMPLEX64)], [T((2,), FLOAT32)])
    assert ours(model, [x])[0][0].tolist() == [1.5, -3.0]


# Constants ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("providers", [None, []], ids=["ort", "numpy"])
def test_constants_become_floats(providers: Any) -> None:
    """Weights stored as float16, int8 per channel or int4 are dequantised."""
    rng = np.random.default_rng(1)
    packed = bytes([0x21, 0xF8, 0x07])
    for constant, want in (
        (T.constant(rng.normal(size=(3, 4)).astype(np.float16)), None),
        (T.constant(rng.integers(-128, 128, (3, 4)).astype(np.int8), scale=[0.1, 0.2, 0.3]), None),
        (T((2, 3), TensorType.INT4, scale=0.5, raw=packed), [[0.5, 1.0, -4.0], [-0.5, 3.5, 0.0]]),
    ):
        model = one_op_model(Op.DEQUANTIZE, [constant], [T(constant.shape)])
        (got,), _ = ours(model, [], providers)
        expected = litert(model, [], "reference")[0] if want is None else np.array(want, np.float32)
        assert_close(got, expected, 0, 0, "constant")


@pytest.mark.parametrize("type", [FLOAT32, FLOAT16, INT8], ids=lambda type: type.name)
@pytest.mark.parametrize("providers", [None, []], ids=["ort", "numpy"])
def test_sparse_constants_become_dense(type: TensorType, providers: Any) -> None:
    """Rows are dense, columns are compressed: 3 values in a matrix [2, 4]."""
    values = np.array([5, 6, 7, 0, 0, 0, 0, 0], NUMPY_DTYPE[type])
    compressed = SparsityParameters(
        traversal_order=(0, 1),
        dim_metadata=(
            DimensionMetadata(format=DimensionType.DENSE, dense_size=2),
            DimensionMetadata(
                format=DimensionType.SPARSE_CSR,
                array_segments=Int32Vector(values=np.array([0, 1, 3], np.int32)),
                array_indices=Int32Vector(values=np.array([2, 0, 3], np.int32)),
            ),
        ),
    )
    scale = 0.1 if type is INT8 else None
    sparse = T((2, 4), type, scale, raw=values.tobytes(), sparsity=compressed)
    content = one_op_model(Op.DENSIFY, [sparse], [tensor((2, 4), type, 0.1)])
    (got,), _ = ours(content, [], providers)
    assert got.tolist() == [[0, 0, 5, 0], [6, 0, 0, 7]]
    assert np.array_equal(got, litert(content, [], "reference")[0])


REFUSED = (
    (Op.QUANTIZE, INT64, INT8),
    (Op.QUANTIZE, UINT8, INT32),
    (Op.DEQUANTIZE, INT32, FLOAT32),
    (Op.CAST, TensorType.INT4, INT8),
)


SEVERAL = [
    (INT8, (-5, 0, 127, -128)),
    (UINT8, (120, 0, 255, 3)),
    (INT16, (0, 0, 0, 0)),
]


@pytest.mark.parametrize(("op", "source", "target"), REFUSED)
def test_types_not_implemented_are_named(op: Op, source: TensorType, target: TensorType) -> None:
    model = one_op_model(op, [tensor((2,), source)], [tensor((2,), target)])
    with pytest.raises(KernelError, match=f"{source.name} to {target.name}"):
        ours(model, [np.ones(2, NUMPY_DTYPE[source])])


@pytest.mark.parametrize(("type", "zeros"), SEVERAL)
@pytest.mark.parametrize("axis", [0, 1])
def test_codes_of_several_scales(type: TensorType, zeros: Sequence[int], axis: int) -> None:
    """TFLite rounds halves away from zero."""
    scales = (0.1, 0.5, 0.3, 2.0**-20)
    x, y = T((4, 4)), T((4, 4), type, scales, zeros, axis)
    drawn = np.random.default_rng(0).uniform(-9, 9, (4, 4)).astype(np.float32)
    halves = np.array([-1.25, -0.25, 0.25, 1.75], np.float32)
    drawn[1], drawn[:, 1] = halves, halves
    rows = (drawn, np.full((4, 4), 0.15, np.float32), 90 * drawn)
    model = one_op_model(Op.QUANTIZE, [x], [y], version=2)
    back = one_op_model(Op.DEQUANTIZE, [y], [x], version=5)
    for feed in rows:
        (want,) = litert(model, [feed])
        # LiteRT refuses to make floats of 16-bit codes of several scales.
        (reals,), _ = ours(back, [want], []) if type is INT16 else (litert(back, [want]), None)
        for made, fed, expected in ((model, feed, want), (back, want, reals)):
            (got,), places = ours(made, [fed])
            np.testing.assert_array_equal(got, expected)
            assert places == {"ort"}
            np.testing.assert_array_equal(ours(made, [fed], [])[0][0], expected)
            np.testing.assert_array_equal(exported(made, [fed])[0], expected)


@pytest.mark.parametrize("providers", [None, []], ids=["ort", "numpy"])
@pytest.mark.parametrize("type", [INT8, UINT8, INT16])
def test_what_no_code_of_several_scales_reaches(
    type: TensorType, providers: Sequence[str] | None
) -> None:
    """LiteRT makes 32-bit integers of it, which C++ does not define."""
    low, high = quantized_range(type)
    several, one = (T((2, 6), type, scale) for scale in ((0.5, 1e-30), 1e-30))
    fed = np.array([[np.inf, -np.inf, 3e38, -3e38, 1e20, np.nan]] * 2, np.float32)
    for made in (several, one):
        (got,), _ = ours(
            one_op_model(Op.QUANTIZE, [T((2, 6))], [made], version=2), [fed], providers
        )
        assert got[:, :-1].tolist() == [[high, low, high, low, high]] * 2
        if made is several or providers == []:
            assert got[:, -1].tolist() == [high, high]
