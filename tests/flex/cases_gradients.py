"""Cases of gradients, but for those of windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.flex.cases import Case

Array = npt.NDArray[Any]
RNG = np.random.default_rng(44)
HALF, WIDE = np.float16, np.float64


def drawn(*shape: int, dtype: npt.DTypeLike = np.float32) -> Array:
    return RNG.uniform(-2, 2, shape).astype(dtype)


# Results and features with their edges; the gradients beside them.
Y = np.float32([-1, -0.5, -0.25, 0.125, 0.5, 0.75, 1, 2.5, 3, 100])
DY = np.float32([1, -2, 0.5, 3, -1, 0.25, 2, -0.5, 1, -1])
X = np.float32([-100, -6, -0.5, 0, 0.5, 3, 6, 6.5, 100, np.inf])
OF_RESULT = ("InvGrad", "ReciprocalGrad", "RsqrtGrad", "SigmoidGrad", "SqrtGrad", "TanhGrad")
OF_FEATURES = ("ReluGrad", "Relu6Grad", "SoftplusGrad", "SoftsignGrad", "LeakyReluGrad")
OF_OUTPUT = ("EluGrad", "SeluGrad")
COMPLEX = (Y + 1j * DY).astype(np.complex64)
INTEGERS = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64, np.uint32, np.uint64)


def edges(dtype: npt.DTypeLike) -> Array:
    info = np.iinfo(dtype)
    return np.array([info.min, 0, 1, 5, 6, 7, 100, info.max], dtype)


def steps(dtype: npt.DTypeLike) -> Array:
    return np.arange(1, 9).astype(dtype)


IMAGE = drawn(2, 3, 4, 5)
GIVEN, MEAN = drawn(2, 3, 4, 5), drawn(5)
SCALE, VARIANCE = drawn(5), RNG.uniform(0.5, 2, 5).astype(np.float32)


def norm(name: str, x: Array = IMAGE, given: Array = GIVEN, note: str = "", **more: Any) -> Case:
    rtol = more.pop("rtol", 2e-6)
    inputs = [given, x, SCALE[: len(MEAN)], MEAN, VARIANCE]
    inputs += [np.zeros(1, np.float32)] if name.endswith("V3") else []
    return Case(name, inputs, more, rtol=rtol, results=3, note=note)


VOLUMES = [each[:, None].repeat(2, 1) for each in (IMAGE, GIVEN)]
NORMS = ("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")


def axes(one: list[int], other: list[int], dtype: Any = np.int32, results: int = 2) -> Case:
    inputs = [np.array(one, dtype), np.array(other, dtype)]
    return Case("BroadcastGradientArgs", inputs, results=results, note=f"{one}{other}")


Pair = tuple[int, int]


def resized(name: str, new: Pair, old: Pair, **attributes: Any) -> Case:
    note = f"{new}{old}-{'-'.join(attributes)}".replace(" ", "")
    return Case(f"Resize{name}Grad", [drawn(2, *new, 2), drawn(2, *old, 2)], attributes, note=note)


def nearest(new: Pair, old: Pair, dtype: Any = np.float32, **attributes: Any) -> Case:
    note = f"{new}{old}-{'-'.join(attributes)}".replace(" ", "")
    given = RNG.integers(-5, 6, (2, *new, 2)).astype(dtype)
    return Case(
        "ResizeNearestNeighborGrad",
        [given, np.int32(old)],
        attributes,
        (1,),
        exports=dtype is np.float32,
        note=note,
    )


SIZES = [((6, 8), (3, 4)), ((3, 5), (7, 4)), ((1, 1), (2, 3))]
KINDS: list[dict[str, Any]] = [{}, {"align_corners": True}, {"half_pixel_centers": True}]


def sliced(shape: list[int], bounds: list[list[int]], given: Array, **masks: Any) -> Case:
    note = "-".join(masks) or "plain"
    inputs = [np.int32(shape), *map(np.int32, bounds), given]
    return Case("StridedSliceGrad", inputs, masks, (0, 1, 2, 3), note=note)


def mirrored(mode: str, pairs: list[list[int]], given: Array) -> Case:
    return Case("MirrorPadGrad", [given, np.int32(pairs)], {"mode": mode}, (1,), note=mode)


def segments(name: str, dtype: Any = np.float32) -> Case:
    return Case(
        f"SparseSegment{name}Grad",
        [drawn(3, 2, dtype=dtype), np.int32([1, 4, 1, 0]), np.int32([0, 0, 1, 2]), np.int32(6)],
        constants=(3,),
    )


NEW_AXIS = {"begin_mask": 1, "end_mask": 1, "new_axis_mask": 2}
NARROW = {"min": -1.0, "max": 5.5, "num_bits": 4, "narrow_range": True}
INFINITE = np.float32([np.inf, 1, 2])
RANGE = np.float32([-8, -6.1, -6, -1, 0, 2.5, 5.9, 6, 6.1, 8]).reshape(5, 2)


def fake_quant(kind: str, low: Any, high: Any) -> Case:
    name, inputs = f"FakeQuantWithMinMax{kind}Gradient", [drawn(5, 2), RANGE, low, high]
    return Case(name, inputs, exports=False)


BOXES = np.float32([[0, 0, 1, 1], [0.1, 0.3, 0.8, 0.9], [-0.3, 0.2, 0.7, 1.4], [0.9, 0.8, 0.2, 0]])


def cropped(kind: str, sizes: Pair, dtype: Any = np.float32, **attributes: Any) -> Case:
    given, box_ind = drawn(4, *sizes, 2), np.int32([0, 1, 1, 0])
    note = "-".join([str(sizes).replace(" ", ""), *map(str, attributes.values())])
    known: dict[str, Any] = {"exports": False, "note": note, "rtol": 2e-6}
    if kind == "Boxes":
        inputs = [given, (drawn(2, 5, 6, 2) * 50).astype(dtype), BOXES, box_ind]
        return Case("CropAndResizeGradBoxes", inputs, attributes, **known)
    inputs = [given, BOXES, box_ind, np.int32([2, 5, 6, 2])]
    return Case("CropAndResizeGradImage", inputs, {"T": "float", **attributes}, (3,), **known)


CASES = [
    *(cropped("Image", sizes) for sizes in ((4, 3), (1, 1))),
    cropped("Image", (4, 3), method="nearest"),
    *(cropped("Boxes", sizes) for sizes in ((4, 3), (1, 1), (1, 4))),
    cropped("Boxes", (4, 3), np.uint8),
    *(Case(name, [Y, DY]) for name in OF_RESULT),
    *(Case(name, [Y.astype(WIDE), DY.astype(WIDE)]) for name in OF_RESULT),
    *(Case(name, [Y.astype(HALF), DY.astype(HALF)], rtol=2e-3) for name in OF_RESULT),
    *(Case(name, [COMPLEX, COMPLEX[::-1].copy()], exports=False) for name in OF_RESULT),
    *(Case(name, [DY, X]) for name in OF_FEATURES),
    *(Case(name, [DY.astype(WIDE), X.astype(WIDE)]) for name in OF_FEATURES),
    *(Case(name, [DY.astype(HALF), X.astype(HALF)], rtol=2e-3) for name in OF_FEATURES),
    Case("ReluGrad", [X[::-1].copy(), X], note="infinite"),
    Case("LeakyReluGrad", [DY, X], {"alpha": 0.5}, note="alpha"),
    *(
        Case(name, [steps(d), edges(d)], exports=d is not np.uint64)
        for name in ("ReluGrad", "Relu6Grad")
        for d in INTEGERS
    ),
    *(Case(name, [DY, Y]) for name in OF_OUTPUT),
    *(Case(name, [DY.astype(WIDE), Y.astype(WIDE)]) for name in OF_OUTPUT),
    *(Case(name, [DY.astype(HALF), Y.astype(HALF)], rtol=2e-3) for name in OF_OUTPUT),
    Case("StopGradient", [IMAGE]),
    Case("PreventGradient", [IMAGE]),
    Case("StopGradient", [edges(np.int64)]),
    Case("BiasAddGrad", [IMAGE]),
    Case("BiasAddGrad", [IMAGE], {"data_format": "NCHW"}, note="first"),
    Case("BiasAddGrad", [IMAGE[0, 0]], note="rows"),
    Case("BiasAddGrad", [IMAGE.astype(WIDE)]),
    Case("BiasAddGrad", [RNG.integers(-9, 9, (2, 3, 4)).astype(np.int32)]),
    axes([3, 4], [2, 3, 4], results=1),
    axes([2, 1, 4], [2, 3, 1]),
    axes([1, 1, 3], [1, 3]),
    axes([1, 3], [1, 1]),
    axes([], [5], np.int64, results=1),
    axes([1], [1, 1]),
    *(norm(name, note="training") for name in NORMS),
    *(norm(name, note="inference", is_training=False, epsilon=0.25) for name in NORMS),
    norm("FusedBatchNormGradV3", *VOLUMES, "volume", data_format="NDHWC"),
    norm("FusedBatchNormGradV3", IMAGE.astype(HALF), GIVEN.astype(HALF), "half", rtol=2e-3),
    Case("FakeQuantWithMinMaxArgsGradient", [drawn(5, 2), RANGE]),
    Case("FakeQuantWithMinMaxArgsGradient", [drawn(5, 2), RANGE], NARROW, note="narrow"),
    fake_quant("Vars", np.float32(-5), np.float32(6.05)),
    fake_quant("VarsPerChannel", np.float32([-5, -1]), np.float32([6.05, 3])),
    *(resized("Bilinear", *sizes, **kind) for sizes in SIZES for kind in KINDS),
    *(resized("Bicubic", *SIZES[0], **kind) for kind in KINDS),
    *(nearest(*sizes, **kind) for sizes in SIZES for kind in KINDS),
    nearest(*SIZES[0], dtype=np.int32),
    mirrored("REFLECT", [[0, 0], [2, 1], [1, 1], [0, 0]], drawn(1, 6, 5, 2)),
    mirrored("SYMMETRIC", [[1, 0], [2, 3], [0, 1]], drawn(3, 8, 4)),
    mirrored("SYMMETRIC", [[1, 2]], drawn(6, dtype=WIDE)),
    sliced([4, 5], [[1, 0], [4, 5], [2, 3]], drawn(2, 2)),
    sliced([4, 5], [[3, 4], [0, 0], [-1, -2]], drawn(3, 2)),
    sliced([4, 5, 2], [[1, 0], [2, 1], [1, 1]], drawn(5, 2), ellipsis_mask=2, shrink_axis_mask=1),
    sliced([4, 5], [[0, 1], [0, 0], [1, 1]], drawn(4, 1, 5), **NEW_AXIS),
    Case("SparseFillEmptyRowsGrad", [np.int64([0, 2, 3]), drawn(5)]),
    Case("SparseFillEmptyRowsGrad", [np.int64([1, 0]), INFINITE], note="infinite"),
    *(segments(name, dtype) for name in ("Mean", "SqrtN", "Sum") for dtype in (np.float32, WIDE)),
]
