"""What operators that read pictures do beside TensorFlow's answers."""

from __future__ import annotations

import struct
import sys
import zlib
from typing import Any

import numpy as np
import pytest

from tests.flex.cases import Case, texts
from tests.flex.cases_pictures import ACCURATE, FOLDER, case, cropped
from tflite_ort import BridgeError, Interpreter, KernelError
from tflite_ort.fallback_kernels.flex import pictures as kernels
from tflite_ort.fallback_kernels.idioms import fast_jpeg


def decoded(operator: Case) -> Any:
    interpreter = Interpreter(model_content=operator.model(), providers=[])
    interpreter.allocate_tensors()
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


def test_colours_sampled_in_another_way_are_refused() -> None:
    """One for two pixels, one below the other."""
    content = (FOLDER / "rgb.jpg").read_bytes().replace(b"\x01\x22\x00", b"\x01\x12\x00")
    with pytest.raises(BridgeError, match=r"sampled by \[\(1, 2\)"):
        decoded(Case("DecodeJpeg", [texts(content).reshape(())], {}, [0]))


def test_a_high_picture_is_decoded_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each part sees the colours above and below it."""
    whole = decoded(case("DecodeJpeg", "rgb.jpg"))
    monkeypatch.setattr(fast_jpeg, "_ROWS", 2)
    np.testing.assert_array_equal(decoded(case("DecodeJpeg", "rgb.jpg")), whole)


@pytest.mark.parametrize(("side", "match"), [(30000, "bomb"), (10000, "10000 times 10000")])
def test_a_large_picture_is_refused_before_it_is_read(side: int, match: str) -> None:
    """A PNG whose header says so."""
    content = bytearray((FOLDER / "gray.png").read_bytes())
    content[16:24] = struct.pack(">II", side, side)
    content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
    with pytest.raises(BridgeError, match=match):
        decoded(Case("DecodePng", [texts(bytes(content)).reshape(())], {}, [0]))


@pytest.mark.parametrize(
    ("name", "file", "attributes"),
    [
        ("DecodePng", "rgb.png", {"channels": 1}),
        ("DecodePng", "palette.png", {"channels": 4}),
        ("DecodePng", "wide_rgb.png", {"dtype": "uint16"}),
        ("DecodeJpeg", "cmyk.jpg", {}),
        ("DecodeJpeg", "rgb.jpg", {"ratio": 2}),
        ("DecodeGif", "two.gif", {}),
    ],
)
def test_other_pixels_than_tensorflow_s_are_refused(
    name: str, file: str, attributes: dict[str, Any]
) -> None:
    with pytest.raises(BridgeError, match=r"not implemented|mode CMYK"):
        decoded(case(name, file, **attributes))


def test_a_part_whose_edges_are_not_known_is_refused() -> None:
    """TensorFlow makes the colours of its last column of the part alone."""
    with pytest.raises(BridgeError, match="fewer columns of colours"):
        decoded(cropped("rgb.jpg", [1, 2, 3, 4], **ACCURATE))


@pytest.mark.parametrize("file", ["one.gif", "two.gif"])
def test_pictures_that_end_early_are_read_or_refused(file: str) -> None:
    """Pillow raises an IndexError for some."""
    content = (FOLDER / file).read_bytes()
    refused = 0
    for size in range(6, len(content)):
        try:
            kernels._pixels(content[:size], "GIF", 3, np.dtype(np.uint8))
        except KernelError:
            refused += 1
    assert refused


def test_without_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "PIL"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr("tflite_ort.base.optional.installed", lambda name: name != "PIL")
    with pytest.raises(BridgeError, match="images"):
        decoded(case("DecodePng", "rgb.png"))
