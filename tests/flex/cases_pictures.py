"""Cases of operators that read and write pictures. What is read stands in the model, which exports
so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.flex.cases import Case, texts

FOLDER = Path(__file__).parent / "pictures"


def case(name: str, file: str, *, refused: bool = False, **attributes: Any) -> Case:
    content = texts((FOLDER / file).read_bytes()).reshape(())
    note = f"{file} {attributes}"
    return Case(name, [content], attributes, [0], refused=refused, note=note)


def damaged(name: str, file: str, size: int, **attributes: Any) -> Case:
    """A file that ends after some bytes."""
    content = texts((FOLDER / file).read_bytes()[:size]).reshape(())
    return Case(name, [content], attributes, [0], refused=True, note=f"{file} {size}")


def pixels(*shape: int, dtype: str = "uint8") -> Any:
    """Pixels of slopes with noise."""
    rng = np.random.default_rng(shape)
    slopes = np.indices(shape).sum(axis=0) * 5 + rng.integers(0, 9, shape)
    return (slopes * (257 if dtype == "uint16" else 1)).astype(dtype)


def written(name: str, array: Any, *more: Any, refused: bool = False, **attributes: Any) -> Case:
    """What is written of pixels."""
    inputs = [array, *more]
    note = f"{array.shape} {attributes}"
    return Case(name, inputs, attributes, exports=False, refused=refused, note=note)


def cropped(file: str, window: list[int], *, refused: bool = False, **attributes: Any) -> Case:
    content = texts((FOLDER / file).read_bytes()).reshape(())
    given = [content, np.int32(window)]
    note = f"{file} {window} {attributes}"
    return Case("DecodeAndCropJpeg", given, attributes, [0, 1], refused=refused, note=note)


PNG = ("gray.png", "rgb.png", "rgba.png", "la.png", "palette.png", "palette_alpha.png", "bits.png")
SMALL = ("palette.png", "bits.png")  # to which TensorFlow adds alpha that is not opaque
ACCURATE = {"dct_method": "INTEGER_ACCURATE"}
CASES = [
    *(case("DecodePng", file, channels=n) for file in PNG for n in (0, 3)),
    *(case("DecodePng", file, channels=4) for file in PNG if file not in SMALL),
    *(case("DecodePng", file, channels=1) for file in ("gray.png", "la.png", "bits.png")),
    *(case("DecodePng", "wide.png", dtype=type) for type in ("uint8", "uint16")),
    *(case("DecodePng", file, dtype="uint16") for file in ("gray.png", "rgba.png")),
    case("DecodePng", "wide_rgb.png", channels=3),
    *(
        case("DecodeJpeg", file, channels=n, **ACCURATE)
        for file in ("rgb.jpg", "full.jpg", "gray.jpg", "progressive.jpg")
        for n in (0, 1, 3)
    ),
    *(
        case("DecodeJpeg", file, channels=n, **method)
        for file in ("rgb.jpg", "full.jpg", "gray.jpg", "progressive.jpg")
        for n in (0, 1, 3)
        for method in ({}, {"dct_method": "INTEGER_FAST"})
    ),
    *(case("DecodeImage", file) for file in ("rgb.jpg", "gray.jpg")),
    *(case("DecodePng", file) for file in ("rgb.jpg", "gray.jpg")),
    case("DecodeJpeg", "rgb.png"),
    *(case("DecodeBmp", file) for file in ("rgb.bmp", "gray.bmp", "rgba.bmp")),
    case("DecodeBmp", "rgb.bmp", channels=3),
    case("DecodeGif", "one.gif"),
    case("DecodeGif", "rgb.bmp", refused=True),
    *(
        case("DecodeImage", file, dtype=type, channels=3)
        for file in ("rgb.png", "rgb.bmp", "wide.png")
        for type in ("uint8", "uint16", "float")
    ),
    case("DecodeImage", "one.gif"),
    case("DecodeImage", "one.gif", expand_animations=False),
    *(
        cropped(file, window, channels=n, **method)
        for file in ("rgb.jpg", "full.jpg", "gray.jpg")
        for window in ([0, 0, 4, 5], [1, 2, 3, 5])
        for n in (0, 1)
        for method in ({}, ACCURATE)
    ),
    cropped("rgb.jpg", [0, 0, 400, 5], refused=True, **ACCURATE),
    cropped("rgb.jpg", [0, -1, 4, 5], refused=True, **ACCURATE),
    *(
        written("EncodePng", pixels(*shape), **more)
        for shape in ((7, 9, 1), (5, 6, 2), (20, 30, 3), (4, 5, 4), (1, 9, 3), (9, 1, 3))
        for more in ({}, {"compression": 1})
    ),
    written("EncodePng", pixels(90, 80, 3)),
    written("EncodePng", pixels(2, 3, 4, 5, 3)),
    *(written("EncodePng", pixels(6, 5, n, dtype="uint16"), T="uint16") for n in (1, 3)),
    written("EncodePng", pixels(3, 4, 5), refused=True),
    *(
        written("EncodeJpeg", pixels(11, 17, n), **more)
        for n in (1, 3)
        for more in (
            {},
            {"quality": 40, "format": ""},
            {"progressive": True},
            {"optimize_size": True},
            {"chroma_downsampling": False, "quality": 100},
            {"density_unit": "cm", "x_density": 7, "xmp_metadata": "<x>y</x>"},
        )
    ),
    written("EncodeJpeg", pixels(4, 5, 3), format="grayscale", refused=True),
    written("EncodeJpeg", pixels(4, 5, 2), refused=True),
    *(
        written("EncodeJpegVariableQuality", pixels(11, 17, n), np.array(q, np.int32))
        for n in (1, 3)
        for q in (0, 30, 100)
    ),
    damaged("DecodePng", "rgb.png", 60),
    damaged("DecodePng", "rgb.png", 10),
    damaged("DecodeJpeg", "rgb.jpg", 300),
    damaged("DecodeBmp", "rgb.bmp", 100),
    damaged("DecodeImage", "one.gif", 40),
    damaged("DecodeImage", "one.gif", 0),
]
