"""Makes the pictures of the pages: ``python -m docs.make_pictures [NAME...]``.

packages.svg is drawn from the tables of tests/policy.py, report.png is a report of `verify` in
Chromium, which CHROMIUM names, on a file with a fault.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from html import escape
from pathlib import Path

import onnx

from tests.models import model_path
from tests.policy import LAYERS, MAY_IMPORT, PACKAGES
from tests.verification.browser import chromium
from tflite_ort import export_onnx
from tflite_ort.verification import verify
from tflite_ort.verification.html import to_html

PICTURES = Path(__file__).parent / "pictures"
UNNAMED = {"*", "__init__", "__main__"}
FAMILIES = {"schema", "opmap", "fallback_kernels"}
WHAT = {
    "schema": "what a file says",
    "versioning": "what an operator's version means",
    "opmap": "operator to ONNX nodes",
    "fallback_kernels": "operator to numpy",
    "bridge": "interpreter, export, command line",
}


def packages(path: Path) -> None:
    """The packages as levels: each imports from those below it alone."""
    levels = [["bridge"], ["opmap", "fallback_kernels"], ["versioning"], ["schema"]]
    assert {folder for level in levels for folder in level} == set(PACKAGES)
    below: set[str] = set()
    for level in reversed(levels):
        allowed = {folder for folder in PACKAGES if PACKAGES[folder] in MAY_IMPORT[level[0]]}
        assert allowed <= below | set(level)
        below |= set(level)
    boxes, height = [], 10
    for level in levels:
        width = (940 - 20 * (len(level) - 1)) // len(level)
        drawn = [
            _box(folder, 10 + at * (width + 20), height, width) for at, folder in enumerate(level)
        ]
        boxes += [text for text, _ in drawn]
        height += max(tall for _, tall in drawn) + 20
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 {height}" role="img"'
        ' font-family="system-ui, sans-serif">\n'
        "<title>The packages: each imports from those below it alone</title>\n"
        + "".join(boxes)
        + "</svg>\n",
        encoding="utf-8",
    )


def _box(folder: str, left: int, top: int, width: int) -> tuple[str, int]:
    """A package with its layers, the highest first, and its height."""
    layers = [", ".join(sorted(layer - UNNAMED)) for layer in LAYERS.get(folder, ())]
    if folder in FAMILIES:
        layers[-1] = "one file a family of operators"
    lines = _wrapped([layer for layer in layers if layer], width - 40)
    tall = 62 + 22 * len(lines)
    parts = [
        f'<rect x="{left}" y="{top}" width="{width}" height="{tall}" rx="8" fill="#eef0fb"'
        ' stroke="#5c6bc0" stroke-width="1.5"/>\n',
        f'<text x="{left + 20}" y="{top + 30}" font-size="19" font-weight="600" fill="#283593">'
        f"{folder}</text>\n",
        f'<text x="{left + 20}" y="{top + 50}" font-size="14" fill="#3c4257">'
        f"{escape(WHAT[folder])}</text>\n",
    ]
    parts += [
        f'<text x="{left + 20}" y="{top + 74 + 22 * at}" font-size="13" fill="#5a6178">'
        f"{escape(line)}</text>\n"
        for at, line in enumerate(lines)
    ]
    return "".join(parts), tall


def _wrapped(layers: list[str], width: int) -> list[str]:
    """Layers, the lowest first, as lines of text."""
    lines: list[str] = []
    for layer in layers:
        joined = f"{lines[-1]} \N{RIGHTWARDS ARROW} {layer}" if lines else layer
        if lines and 7.3 * len(joined) <= width:
            lines[-1] = joined
        else:
            lines.append(f"\N{RIGHTWARDS ARROW} {layer}" if lines else layer)
    return lines


def report(path: Path) -> None:
    """Of a file with one weight that is wrong."""
    model = model_path("mlperf-tiny__kws_ref_model_float32.tflite")
    with tempfile.TemporaryDirectory() as folder, chromium() as page:
        other = Path(folder, "other.onnx")
        export_onnx(model, other)
        graph = onnx.load(other)
        largest = max(graph.graph.initializer, key=lambda each: len(each.raw_data))
        values = onnx.numpy_helper.to_array(largest).copy()
        values[0] = -values[0]
        largest.CopyFrom(onnx.numpy_helper.from_array(values, largest.name))
        onnx.save(graph, other)
        made = verify(model, onnx_file=other)
        file = Path(folder, "report.html")
        file.write_text(to_html(made), encoding="utf-8")
        page.resize(1100, "light")
        page.open(file)
        page.photograph(path, tallest=1100)


MAKERS: dict[str, Callable[[Path], None]] = {
    "packages.svg": packages,
    "report.png": report,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or MAKERS:
        MAKERS[name](PICTURES / name)
