"""Cases of images."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.flex.cases import Case

Array = npt.NDArray[Any]
RNG = np.random.default_rng(17)


def scalar(value: float) -> Array:
    return np.array(value, np.float32)


# With greys, equal channels, numbers below 0 and above 1.
COLORS = RNG.uniform(0, 1, (2, 5, 6, 3)).astype(np.float32)
COLORS[0, 0] = COLORS[0, 0, :, :1]
COLORS[0, 1, :, 1] = COLORS[0, 1, :, 0]
COLORS[0, 2, :, 2] = COLORS[0, 2, :, 0]
COLORS[0, 3, 0], COLORS[0, 3, 1], COLORS[0, 3, 2] = 0, 1, (1.5, -0.25, 0.5)
COLORS[0, 4, :3] = np.eye(3)
HSV = COLORS.clip(0, 1)
HALF, WIDE = np.float16, np.float64
BYTES = RNG.integers(0, 256, (1, 4, 5, 2)).astype(np.uint8)
SMALL = COLORS[:1, :4, :5, :2].copy()
BOXES = np.float32([[0, 0, 1, 1], [0.2, 0.1, 0.7, 0.9], [0.9, 0.8, 0.1, 0], [-0.5, 0.2, 1.5, 1.2]])
INDICES = np.int32([0, 1, 1, 0])


def crops(image: Array, size: Any, note: str = "", **attributes: Any) -> Case:
    inputs = [image, BOXES, INDICES, np.int32(size)]
    return Case("CropAndResize", inputs, attributes, (3,), note=f"{size}-{note}")


def resized(name: str, image: Array, size: Any, **attributes: Any) -> Case:
    inputs, note = [image, np.int32(size)], f"{size}-{'-'.join(attributes)}"
    exports = attributes.pop("exports", True)
    return Case(name, inputs, attributes, (1,), note=note, rtol=2e-6, exports=exports)


TURNED = np.float32([[0.9, -0.3, 0.5, 0.3, 0.9, -1.2, 0, 0], [1, 0.2, -2, 0.1, 1.3, 1, 0.02, 0.1]])
FAR = np.float32([[3, 0, -8.3, 0, 3, -7.2, 0, 0]])


def projected(image: Array, turns: Array, kind: str, mode: str) -> Case:
    inputs = [image, turns, np.int32([4, 7]), scalar(0.5)]
    attributes = {"interpolation": kind, "fill_mode": mode}
    note = f"{kind}-{mode}-{len(turns)}"
    exports = image.dtype == np.float32
    return Case("ImageProjectiveTransformV3", inputs, attributes, (2,), exports=exports, note=note)


FORMS: list[dict[str, Any]] = [{}, {"align_corners": True}, {"half_pixel_centers": True}]
CASES = [
    Case("AdjustContrastv2", [COLORS, scalar(1.7)]),
    *(Case("AdjustHue", [COLORS, scalar(d)], note=str(d)) for d in (0.25, -0.6, 1, 0)),
    *(Case("AdjustSaturation", [COLORS, scalar(d)], note=str(d)) for d in (0.25, 3, 0)),
    Case("RGBToHSV", [COLORS]),
    Case("RGBToHSV", [COLORS.astype(WIDE)], rtol=1e-12),
    Case("HSVToRGB", [HSV]),
    Case("HSVToRGB", [HSV.astype(WIDE)], rtol=1e-12),
    crops(COLORS, (4, 3)),
    crops(COLORS, (1, 5), "one", extrapolation_value=0.5),
    crops(COLORS, (4, 3), "nearest", method="nearest"),
    crops((COLORS * 255).astype(np.uint8), (3, 3), "bytes"),
    crops(COLORS.astype(WIDE), (3, 3), "wide"),
    *(
        resized(name, image, size, **form)
        for name in ("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic")
        for image, size in ((SMALL, (7, 3)), (BYTES, (2, 9)))
        for form in FORMS
    ),
    *(
        resized(name, SMALL.astype(dtype), (7, 3), half_pixel_centers=True)
        for name in ("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic")
        for dtype in (HALF, WIDE, np.int32)
    ),
    resized("ResizeBicubic", SMALL, (1, 1), align_corners=True),
    *(
        projected(COLORS, turns, kind, mode)
        for turns in (TURNED, FAR)
        for kind in ("NEAREST", "BILINEAR")
        for mode in ("CONSTANT", "REFLECT", "WRAP", "NEAREST")
    ),
    *(projected(BYTES.astype(d), FAR, "BILINEAR", "REFLECT") for d in (np.uint8, np.int32, WIDE)),
    Case(
        "ImageProjectiveTransformV2",
        [COLORS, TURNED, np.int32([4, 7])],
        {"interpolation": "BILINEAR"},
        (2,),
    ),
]
