"""Cases of convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tests.flex.cases import Case

Array = npt.NDArray[Any]
RNG = np.random.default_rng(13)


def reals(*shape: int) -> Array:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def conv(
    name: str, x: Array, filter: Array, step: Any, padding: Any, note: str = "", **more: Any
) -> Case:
    """A convolution; `padding` is a name, or the explicit paddings of rows and columns."""
    exports, rtol = more.pop("exports", True), more.pop("rtol", 1e-6)
    attributes = {"strides": (1, *step, 1), "padding": padding, **more}
    if "dilations" in more:
        attributes["dilations"] = (1, *more["dilations"], 1)
    if not isinstance(padding, str):
        pads = (0, 0, *padding, 0, 0)
        attributes |= {"padding": "EXPLICIT", "explicit_paddings": pads}
    constants = () if note == "computed" else (1,)
    return Case(name, [x, filter], attributes, constants, exports=exports, rtol=rtol, note=note)


X, V = reals(2, 7, 8, 4), reals(2, 4, 5, 6, 3)
F, D, F3 = reals(3, 2, 4, 6), reals(3, 2, 4, 2), reals(2, 3, 2, 3, 4)
# TensorFlow sums products of 16 bits in 16 bits: more than one rounding is between.
HALF, WIDE = np.float16, np.float64
WHOLE = RNG.integers(-9, 10, (1, 5, 5, 2)).astype(np.int32)
WEIGHTS = RNG.integers(-9, 10, (3, 3, 2, 3)).astype(np.int32)
BIG = WHOLE * np.int32(2**28)
# Of several images TensorFlow makes numbers of the first one alone right.
PADS = np.int32([[0, 0], [1, 2], [2, 0], [0, 0]])

CASES = [
    conv("Conv2D", X, F, (1, 1), "VALID"),
    conv("Conv2D", X, F, (2, 2), "SAME", "same"),
    conv("Conv2D", X, F, (2, 1), (1, 0, 2, 1), "pads"),
    conv("Conv2D", X, F, (1, 1), "SAME", "dilated", dilations=(2, 3)),
    conv("Conv2D", X, F[:, :, :2], (1, 1), "SAME", "groups"),
    conv("Conv2D", X, F, (1, 1), "SAME", "computed"),
    conv("Conv2D", X.astype(WIDE), F.astype(WIDE), (2, 1), "SAME", exports=False),
    conv("Conv2D", X.astype(HALF), F.astype(HALF), (2, 1), "SAME", rtol=4e-3),
    conv("Conv2D", WHOLE, WEIGHTS, (1, 1), "SAME", exports=False),
    conv("Conv2D", BIG, WEIGHTS, (1, 1), "VALID", "wraps", exports=False),
    conv("Conv3D", V, F3, (1, 1, 1), "VALID"),
    conv("Conv3D", V, F3, (2, 2, 2), "SAME", "same"),
    conv("Conv3D", V, F3, (1, 2, 1), "SAME", "computed"),
    conv("Conv3D", V.astype(WIDE), F3.astype(WIDE), (1, 1, 1), "SAME", exports=False),
    conv("Conv3D", V.astype(HALF), F3.astype(HALF), (1, 1, 1), "SAME", rtol=4e-3),
    conv("DepthwiseConv2dNative", X, D, (1, 1), "VALID"),
    conv("DepthwiseConv2dNative", X, D, (2, 2), "SAME", "same"),
    conv("DepthwiseConv2dNative", X, D, (1, 1), (1, 0, 2, 1), "pads"),
    conv("DepthwiseConv2dNative", X, D, (1, 1), "SAME", "computed"),
    conv("DepthwiseConv2dNative", X.astype(WIDE), D.astype(WIDE), (1, 1), "SAME", exports=False),
    conv("DepthwiseConv2dNative", X.astype(HALF), D.astype(HALF), (1, 1), "SAME", rtol=4e-3),
    *(
        Case(
            "FusedPadConv2D",
            [X[:1], PADS, F],
            {"mode": mode, "strides": (1, 2, 1, 1), "padding": "VALID"},
            (1, 2),
            note=mode,
        )
        for mode in ("REFLECT", "SYMMETRIC")
    ),
    *(
        Case(
            "FusedResizeAndPadConv2D",
            [X[:1], np.int32([5, 11]), PADS, F],
            {"mode": "REFLECT", "strides": (1, 1, 1, 1), "padding": "VALID"}
            | {"resize_align_corners": aligned},
            (1, 2, 3),
            note=str(aligned),
        )
        for aligned in (True, False)
    ),
]
