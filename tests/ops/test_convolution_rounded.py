"""Wide convolutions of floats and 8-bit filters in codes: rounded as LiteRT rounds them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.one_op import Case, T, assert_close, ours
from tests.ops.operands import exported
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tflite_ort.opmap.graph import costs
from tflite_ort.schema import Conv2DOptions, Op, Padding
from tflite_ort.schema.values.semantics import explicit_padding

Array = npt.NDArray[Any]
SEED = 13
CODED = "MatMulIntegerToFloat", "MatMulInteger", "DynamicQuantizeMatMul"


@pytest.fixture(autouse=True)
def small_layers_are_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on processors with VNNI, whatever this one is."""
    for others in ("uint8", "tiles"):
        vectors = costs.table()["rounded images int8"]
        monkeypatch.setitem(costs.table(), f"rounded images {others}", vectors)


def convolution(
    image: tuple[int, ...],
    outputs: int,
    side: int,
    *,
    stride: int = 1,
    dilation: int = 1,
    padding: Padding = Padding.SAME,
    channels: bool = True,
) -> Case:
    rng = np.random.default_rng(SEED)
    codes = rng.integers(-127, 128, (outputs, side, side, image[3])).astype(np.int8)
    scales = rng.uniform(0.01, 0.02, outputs).tolist()
    filter = T.constant(codes, scale=scales, axis=0) if channels else T.constant(codes, scale=0.01)
    bias = T.constant(rng.normal(0, 1, outputs).astype(np.float32))
    reach = (side - 1) * dilation + 1
    sizes = []
    for size in image[1:3]:
        pads = explicit_padding(padding, size, side, stride, dilation)
        sizes.append((size + sum(pads) - reach) // stride + 1)
    options = Conv2DOptions(
        padding=padding,
        stride_h=stride,
        stride_w=stride,
        dilation_h_factor=dilation,
        dilation_w_factor=dilation,
    )
    result = T((image[0], *sizes, outputs))
    return Case("rounded", Op.CONV_2D, [T(image), filter, bias], [result], options, 5)


CASES = {
    "1x1": convolution((1, 14, 14, 128), 128, 1),
    "1x1 of every second cell": convolution((1, 28, 28, 128), 128, 1, stride=2),
    "3x3": convolution((1, 14, 15, 64), 64, 3),
    "3x3 inside": convolution((1, 14, 15, 64), 64, 3, padding=Padding.VALID),
    "3x3 of every second cell": convolution((1, 27, 28, 64), 96, 3, stride=2),
    "3x3 with holes": convolution((1, 18, 17, 64), 64, 3, dilation=2),
    "5x5": convolution((1, 12, 12, 48), 64, 5),
    "one scale": convolution((1, 14, 14, 64), 64, 3, channels=False),
    "1x1, one scale": convolution((1, 14, 14, 128), 128, 1, channels=False),
    "two images": convolution((2, 14, 14, 64), 64, 3),
    "two images, 1x1": convolution((2, 14, 14, 128), 128, 1),
    "two images, one scale": convolution((2, 14, 14, 64), 64, 3, channels=False),
    "patches": convolution((1, 96, 96, 3), 128, 16, stride=16, padding=Padding.VALID),
    "patches of two images": convolution((2, 64, 96, 3), 96, 16, stride=16, padding=Padding.VALID),
    "patches with rows beyond": convolution((1, 26, 28, 64), 96, 4, stride=4),
    "two images with rows beyond": convolution((2, 26, 28, 64), 96, 4, stride=4),
    "patches apart": convolution((1, 94, 96, 4), 192, 8, stride=16, padding=Padding.VALID),
}
IMAGES = {
    "normal": lambda rng, shape: rng.normal(0.3, 2, shape),
    "positive": lambda rng, shape: np.maximum(rng.normal(0, 2, shape), 0) + 0.5,
    "zeros": lambda rng, shape: np.zeros(shape),
    "unequal": lambda rng, shape: (
        rng.normal(0, 1, shape) * 10.0 ** np.arange(shape[0]).reshape(-1, 1, 1, 1)
    ),
}


def image(kind: str, case: Case) -> Array:
    drawn: Array = IMAGES[kind](np.random.default_rng(SEED), case.inputs[0].shape)
    return drawn.astype(np.float32)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_they_are_products_of_codes(case: Case) -> None:
    for hybrid in ("auto", "xnnpack", "dynamic"):
        nodes = optimised_nodes(case.model(), hybrid=hybrid)
        assert sum(nodes[each] for each in CODED) == 1
        assert not {"Conv", "Transpose"} & set(nodes)


@pytest.mark.parametrize("kind", IMAGES)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_images_are_rounded_as_litert_does(case: Case, kind: str) -> None:
    print(f"seed {SEED}")
    x = image(kind, case)
    for hybrid, kernels in (("xnnpack", "default"), ("dynamic", "reference")):
        (want,) = litert(case.model(), [x], kernels)
        (got,), runners = ours(case.model(), [x], hybrid=hybrid)
        assert runners == {"ort"}
        for mine, theirs in zip(got, want, strict=True):
            assert_close(mine, theirs, 0, 2e-6, f"{hybrid}, as LiteRT's {kernels} kernels")


@pytest.mark.parametrize("kind", IMAGES)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_by_default_the_error_is_no_more_than_litert_s(case: Case, kind: str) -> None:
    print(f"seed {SEED}")
    x = image(kind, case)
    (true,), (got,) = (ours(case.model(), [x], hybrid=each)[0] for each in ("float", "auto"))
    theirs = [litert(case.model(), [x], each)[0] for each in ("default", "reference")]
    for number, mine in enumerate(got):
        error, *others = (
            float(np.sqrt(((each - true[number]) ** 2).mean()))
            for each in (mine, *(each[number] for each in theirs))
        )
        assert error <= 1.02 * max(others) + 1e-6 * np.abs(true[number]).max()


@pytest.mark.parametrize(
    "case",
    [
        convolution((1, 9, 9, 32), 32, 1),
        convolution((2, 5, 3, 7), 9, 1, padding=Padding.VALID),
        convolution((2, 5, 3, 7), 9, 1, dilation=2),
        convolution((2, 6, 6, 7), 9, 1, stride=2),
        convolution((1, 1, 1, 7), 9, 1),
    ],
    ids=str,
)
def test_small_windows_of_one_cell_are_rounded_as_litert_does(case: Case) -> None:
    """The cells of an image by themselves, where every cell has its window."""
    print(f"seed {SEED}")
    x = image("normal", case)
    (want,) = litert(case.model(), [x])
    (got,), _ = ours(case.model(), [x], hybrid="xnnpack")
    assert_close(got, want, 0, 2e-6, "as LiteRT's default")
    (dynamic,) = exported(case.model(), [x], hybrid="xnnpack")
    assert_close(dynamic, want, 0, 2e-6, "exported")


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_images_do_not_reach_other_images(odd: float) -> None:
    case = CASES["two images"]
    x = image("normal", case)
    (want,), _ = ours(case.model(), [x])
    x[1, 3, 4, 5] = odd
    (got,), _ = ours(case.model(), [x])
    np.testing.assert_array_equal(got[0], want[0])


@pytest.mark.parametrize(
    "case",
    [
        convolution((1, 7, 7, 16), 16, 3),
        convolution((1, 64, 64, 16), 32, 1),
        convolution((1, 32, 32, 4), 16, 3),
        convolution((1, 300, 300, 1), 256, 9),
    ],
    ids=str,
)
def test_floats_elsewhere(case: Case) -> None:
    """With few products they are faster; many places would be a large constant."""
    assert "Conv" in optimised_nodes(case.model())
