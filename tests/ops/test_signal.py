"""RFFT2D, REAL, IMAG and COMPLEX_ABS against LiteRT."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.one_op import Case, Node, T, check, graph_model, one_op_model, ours
from tests.ops.operands import exported
from tests.oracle import litert
from tflite_ort import ModelError, export_onnx
from tflite_ort.fallback_kernels import kernel
from tflite_ort.schema import MulOptions, Op, TensorType

COMPLEX64, COMPLEX128 = TensorType.COMPLEX64, TensorType.COMPLEX128
REALS = {COMPLEX64: TensorType.FLOAT32, COMPLEX128: TensorType.FLOAT64}
PARTS = (Op.REAL, Op.IMAG, Op.COMPLEX_ABS)
Shape = tuple[int, ...]


def transform(shape: Shape, lengths: tuple[int, int]) -> Case:
    result = T((*shape[:-2], lengths[0], lengths[1] // 2 + 1), COMPLEX64)
    constant = T.constant(np.array(lengths, np.int32))
    return Case(f"{shape}-{lengths}", Op.RFFT2D, [T(shape), constant], [result])


def check_transform(case: Case, seed: int = 0) -> None:
    print(f"{case.name}: seed {seed}")
    feeds = case.arrays(np.random.default_rng(seed))
    (expected,) = litert(case.model(), feeds, case.reference)
    longest = int(np.max(case.inputs[1].data))  # rows above 512 are numpy's
    for providers, where in ((None, "ort" if longest <= 512 else "numpy"), ([], "numpy")):
        (got,), runners = ours(case.model(), feeds, providers)
        assert (got.dtype, got.shape, runners) == (expected.dtype, expected.shape, {where})
        bound = 1e-6 if where == "ort" else 2e-7
        assert np.max(np.abs(got - expected)) <= bound * np.max(np.abs(expected))


@pytest.mark.parametrize(
    ("shape", "lengths"),
    [
        ((8, 16), (8, 16)),
        ((2, 3, 5, 7), (4, 4)),
        ((3, 5, 5), (8, 8)),
        ((4, 9), (1, 2)),
        ((2, 30, 3), (16, 8)),
        ((3, 1, 512), (1, 512)),  # the longest that is a product on the CPU
        ((3, 1, 1024), (1, 1024)),
        ((2, 22, 1, 2048), (1, 2048)),
        ((16, 1024), (16, 1024)),
        ((9, 1, 8192), (1, 8192)),
        ((8, 1, 32768), (1, 32768)),
    ],
)
def test_transform(shape: Shape, lengths: tuple[int, int]) -> None:
    check_transform(transform(shape, lengths))


@pytest.mark.parametrize("rows", [1, 40])
def test_small_parts_of_long_rows_are_exact(rows: int) -> None:
    """Logarithms of a spectrum show what is a millionth of its peak, so it is made in float64."""
    case = transform((rows, 1, 2048), (1, 2048))
    time = np.arange(2048 * rows) / 48000
    tone = np.sin(2 * np.pi * 3000 * time).astype(np.float32).reshape(rows, 1, 2048)
    (got,), _ = ours(case.model(), [tone])
    want = np.fft.rfft(tone.astype(np.float64))
    assert np.all(np.abs(got - want) <= 1e-6 * np.abs(want) + 1e-10 * np.abs(want).max())


def test_an_export_transforms_long_rows_with_dft() -> None:
    case = transform((3, 1, 2048), (1, 2048))
    feeds = case.arrays(np.random.default_rng(0))
    pairs = exported(case.model(), feeds[:1])[0]
    (want,) = litert(case.model(), feeds, case.reference)
    got = pairs[..., 0] + 1j * pairs[..., 1]
    assert np.max(np.abs(got - want)) <= 1e-6 * np.max(np.abs(want))


@pytest.mark.parametrize("shape", [(8, 16), (2, 3, 5, 7), (3, 1, 9)])
@pytest.mark.parametrize("opset", ["17", "21"])
def test_an_export_takes_computed_lengths(shape: Shape, opset: str) -> None:
    """Such a model was refused; the file fails at lengths that LiteRT refuses."""
    lengths = T((2,), TensorType.INT32)
    model = one_op_model(Op.RFFT2D, [T(shape), lengths], [T((*shape[:-2], 4, 3), COMPLEX64)])
    content = export_onnx(model, opset=int(opset)).SerializeToString()
    session = onnxruntime.InferenceSession(content)
    names = [each.name for each in session.get_inputs()]
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    for taken in ((4, 4), (8, 16), (1, 2), (16, 2), (1, 16), (4, 1), (1, 1)):
        feeds = [x, np.array(taken, np.int32)]
        (pairs,) = session.run(None, dict(zip(names, feeds, strict=True)))
        want = np.fft.rfft2(x.astype(np.float64), taken)
        np.testing.assert_allclose(pairs[..., 0] + 1j * pairs[..., 1], want, atol=1e-5)
    for refused in ((3, 4), (0, 4), (4, -4)):
        feeds = [x, np.array(refused, np.int32)]
        with pytest.raises(onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument):
            session.run(None, dict(zip(names, feeds, strict=True)))


def test_a_width_of_one_is_the_transform_of_a_column() -> None:
    """What LiteRT makes of it is no Fourier transform."""
    case = transform((4, 3), (4, 1))
    feeds = case.arrays(np.random.default_rng(0))
    (got,), _ = ours(case.model(), feeds)
    np.testing.assert_allclose(got[:, 0], np.fft.fft(feeds[0][:, 0]), rtol=1e-5)


@pytest.mark.parametrize("lengths", [(1, 40), (6, 7), (3, 600), (5, 4), (1023, 3)])
@pytest.mark.parametrize("more", [-2, 0, 2])
def test_lengths_that_are_no_powers_of_two(lengths: tuple[int, int], more: int) -> None:
    """LiteRT refuses them."""
    shape = (2, lengths[0] + 1, lengths[1] + more)
    case = transform(shape, lengths)
    feeds = case.arrays(np.random.default_rng(0))
    want = np.fft.rfft2(feeds[0].astype(np.float64), lengths)
    pairs = exported(case.model(), feeds)[0]
    found = [ours(case.model(), feeds, providers)[0][0] for providers in (None, [])]
    for got in (*found, pairs[..., 0] + 1j * pairs[..., 1]):
        assert np.abs(got - want).max() <= 2e-6 * np.abs(want).max()


@pytest.mark.parametrize("lengths", [(0, 8), (8, -1), (1, 2**23)])
def test_lengths_that_are_refused(lengths: tuple[int, int]) -> None:
    with pytest.raises(ModelError, match="expected 1 to 4194304"):
        ours(transform((8, 8), lengths).model(), [np.zeros((8, 8), np.float32)])


@pytest.mark.parametrize("op", PARTS)
def test_reals_have_no_parts(op: Op) -> None:
    model = Case(op.name, op, [T((2,))], [T((2,))]).model()
    with pytest.raises(ModelError, match="FLOAT32 is not one of the types accepted"):
        ours(model, [np.zeros(2, np.float32)])


@given(st.data())
def test_drawn_transforms(data: st.DataObject) -> None:
    sizes = st.integers(1, 9)
    shape = data.draw(st.lists(sizes, min_size=2, max_size=4))
    lengths = tuple(2 ** data.draw(st.integers(low, 4)) for low in (0, 1))
    check_transform(transform(tuple(shape), lengths), seed=data.draw(st.integers(0, 2**31)))


@pytest.mark.parametrize("type", REALS)
@pytest.mark.parametrize("op", PARTS)
def test_part(op: Op, type: TensorType) -> None:
    rng = np.random.default_rng(4)
    values: npt.NDArray[np.complex128] = rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4))
    given_ = T((3, 4), type)
    feeds = [values.astype(np.complex64 if type is COMPLEX64 else np.complex128)]
    case = Case(op.name, op, [given_], [T((3, 4), REALS[type])], feeds=feeds)
    check(case)


PLANES: list[tuple[Shape, Shape]] = [
    ((3, 4), (3, 4)),
    ((2, 3, 2, 4), (3, 1, 4)),
    ((), (2, 3, 3)),
    ((0, 2), (1,)),
]


@pytest.mark.parametrize("shapes", PLANES)
def test_complex_products(shapes: tuple[Shape, Shape]) -> None:
    """ONNX has no complex numbers: pairs of reals broadcast as the numbers do."""
    rng = np.random.default_rng(5)
    feeds = [(rng.normal(size=s) + 1j * rng.normal(size=s)).astype(np.complex64) for s in shapes]
    output = T(np.broadcast_shapes(*shapes), COMPLEX64)
    model = one_op_model(Op.MUL, [T(s, COMPLEX64) for s in shapes], [output], MulOptions(), 6)
    for providers, where in ((None, "ort"), ([], "numpy")):
        (got,), runners = ours(model, feeds, providers)
        assert runners == {where if got.size else "constant"}
        np.testing.assert_allclose(got, feeds[0] * feeds[1], rtol=1e-5)


def test_spectra_may_be_reshaped() -> None:
    tensors = {
        "x": T((4, 8)),
        "lengths": T.constant(np.array([4, 8], np.int32)),
        "shape": T.constant(np.array([2, -1, 5], np.int32)),
        "spectrum": T((4, 5), COMPLEX64),
        "spectra": T((2, 2, 5), COMPLEX64),
    }
    nodes = [
        Node(Op.RFFT2D, ["x", "lengths"], ["spectrum"]),
        Node(Op.RESHAPE, ["spectrum", "shape"], ["spectra"]),
    ]
    model = graph_model(tensors, nodes, ["spectra"])
    feeds = [np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)]
    (got,), runners = ours(model, feeds)
    assert runners == {"ort"}
    np.testing.assert_allclose(got, litert(model, feeds)[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("op", PARTS)
def test_parts_of_no_element(op: Op) -> None:
    model = Case(op.name, op, [T((0, 3), COMPLEX64)], [T((0, 3))]).model()
    (got,), runners = ours(model, [np.zeros((0, 3), np.complex64)])
    assert (got.shape, runners) == ((0, 3), {"constant"})


def test_complex_inputs_and_outputs_of_an_exported_file_are_pairs() -> None:
    """ONNX Runtime takes no complex tensors."""
    model = Case("imag", Op.IMAG, [T((2, 3), COMPLEX64)], [T((2, 3))]).model()
    values = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    np.testing.assert_array_equal(exported(model, [values])[0], values[..., 1])


@pytest.mark.parametrize("op", (Op.RFFT2D, *PARTS))
def test_version(op: Op) -> None:
    assert kernel.versions(op) == [1]


def test_spectrum_between_operators_of_onnx_runtime() -> None:
    tensors = {
        "x": T((4, 8)),
        "double": T((4, 8)),
        "lengths": T.constant(np.array([4, 8], np.int32)),
        "spectrum": T((4, 5), COMPLEX64),
        "size": T((4, 5)),
        "root": T((4, 5)),
    }
    nodes = [
        Node(Op.ABS, ["x"], ["double"]),
        Node(Op.RFFT2D, ["double", "lengths"], ["spectrum"]),
        Node(Op.COMPLEX_ABS, ["spectrum"], ["size"]),
        Node(Op.SQRT, ["size"], ["root"]),
    ]
    model = graph_model(tensors, nodes, ["root"])
    feeds = [np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)]
    (got,), runners = ours(model, feeds)
    assert runners == {"ort"}
    np.testing.assert_allclose(got, litert(model, feeds)[0], rtol=1e-5)
