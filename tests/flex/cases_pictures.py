"""Cases of operators that read pictures. The contents stand in the model, which exports so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
    damaged("DecodePng", "rgb.png", 60),
    damaged("DecodePng", "rgb.png", 10),
    damaged("DecodeJpeg", "rgb.jpg", 300),
    damaged("DecodeBmp", "rgb.bmp", 100),
    damaged("DecodeImage", "one.gif", 40),
    damaged("DecodeImage", "one.gif", 0),
]
