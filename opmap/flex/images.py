"""TensorFlow's images: colors, crops, bicubic resizing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tflite_ort.opmap.flex.elementwise import FLOATS, read_computed, write_computed
from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import flex_translator
from tflite_ort.schema import OperatorView, TensorType, TensorView, Untranslatable
from tflite_ort.schema.shapes.flex.images import bicubic_weights
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.sizes import is_known

View = OperatorView[Any]
_T = TensorType
_FLOAT = np.dtype(np.float32)


class _Numbers:
    """Arithmetic of one float type."""

    def __init__(self, g: Graph, type: TensorType) -> None:
        self.g = g
        self.dtype = np.dtype(np.float64 if type is _T.FLOAT64 else np.float32)

    def __call__(self, op_type: str, *values: ir.Value | float, **attributes: Any) -> ir.Value:
        given = [v if isinstance(v, ir.Value) else self.of(v) for v in values]
        return self.g.op(op_type, *given, **attributes)

    def of(self, number: float) -> ir.Value:
        """A constant."""
        return self.g.constant(number, self.dtype)

    def parts(self, x: ir.Value) -> list[ir.Value]:
        """The three channels, each [..., 1]."""
        return list(self.g.op_multi("Split", x, outputs=3, axis=-1, num_outputs=3))


@flex_translator("AdjustContrastv2")
def contrast(op: View, g: Graph) -> None:
    """The distance from the mean of rows and columns, times a factor."""
    x = op["images"]
    n, value = _Numbers(g, x.type), read_computed(g, x, FLOATS, Layout.LAST)
    mean = g.op("ReduceMean", value, g.ints([x.rank - 3, x.rank - 2]))
    moved = n("Mul", n("Sub", value, mean), g.read(op["contrast_factor"]))
    write_computed(g, op.output, n("Add", moved, mean), Layout.LAST)


def _hue(n: _Numbers, x: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """(hue, greatest, range), each [..., 1]; the hue in 0..1."""
    red, green, blue = n.parts(x)
    high = n("Max", red, green, blue)
    spread = n("Sub", high, n("Min", red, green, blue))
    some = n("Greater", spread, 0)
    norm = n("Div", 1 / 6, n("Where", some, spread, 1))
    of_red = n("Mul", norm, n("Sub", green, blue))
    of_green = n("Add", n("Mul", norm, n("Sub", blue, red)), 2 / 6)
    of_blue = n("Add", n("Mul", norm, n("Sub", red, green)), 4 / 6)
    other = n("Where", n("Equal", green, high), of_green, of_blue)
    hue = n("Where", some, n("Where", n("Equal", red, high), of_red, other), 0)
    return n("Where", n("Less", hue, 0), n("Add", hue, 1), hue), high, spread


def _shares(n: _Numbers, hue: ir.Value) -> ir.Value:
    """How much of each color [..., 3] a hue has."""
    six = n("Mul", hue, 6)
    red = n("Sub", n("Abs", n("Sub", six, 3)), 1)
    green, blue = (n("Sub", 2, n("Abs", n("Sub", six, place))) for place in (2, 4))
    return n("Clip", n("Concat", red, green, blue, axis=-1), 0, 1)


def _saturation(n: _Numbers, high: ir.Value, spread: ir.Value) -> ir.Value:
    positive = n("Greater", high, 0)
    return n("Where", positive, n("Div", spread, n("Where", positive, high, 1)), 0)


def _to_rgb(n: _Numbers, hue: ir.Value, saturation: ir.Value, value: ir.Value) -> ir.Value:
    colored = n("Mul", saturation, _shares(n, hue))
    return n("Mul", n("Add", n("Sub", 1, saturation), colored), value)


@flex_translator("RGBToHSV", "HSVToRGB", "AdjustHue", "AdjustSaturation")
def colors(op: View, g: Graph) -> None:
    """Hue, saturation and value, and back."""
    image = op["images"]
    n, x = _Numbers(g, image.type), read_computed(g, image, FLOATS, Layout.LAST)
    if op.name == "FlexHSVToRGB":
        result = _to_rgb(n, *n.parts(x))
    else:
        hue, high, spread = _hue(n, x)
        if op.name == "FlexRGBToHSV":
            result = n("Concat", hue, _saturation(n, high, spread), high, axis=-1)
        elif op.name == "FlexAdjustHue":
            turned = n("Add", hue, g.read(op["delta"]))
            shares = _shares(n, n("Sub", turned, n("Floor", turned)))
            result = n("Add", n("Sub", high, spread), n("Mul", spread, shares))
        else:
            scaled = n("Mul", _saturation(n, high, spread), g.read(op["scale"]))
            result = _to_rgb(n, hue, n("Clip", scaled, 0, 1), high)
    write_computed(g, op.output, result, Layout.LAST)


@flex_translator("CropAndResize")
def crops(op: View, g: Graph) -> None:
    """GatherND of the pixels around each place."""
    image, n = op["image"], _Numbers(g, _T.FLOAT32)
    (_, height, width, _), (_, rows, columns, _) = image.shape, op.output.shape
    if not is_known(height, width, rows, columns):
        raise Untranslatable("images or crops of an unknown size")
    value = g.cast(g.read(image, domain=Domain.FILE), ir.DataType.FLOAT)
    edges = g.op_multi("Split", g.read(op["boxes"]), outputs=4, axis=1, num_outputs=4)
    y = _places(n, edges[0], edges[2], height, rows)
    x = _places(n, edges[1], edges[3], width, columns)
    y, x = g.op("Unsqueeze", y, g.ints([2])), g.op("Unsqueeze", x, g.ints([1]))
    inside = None
    for at, size in ((y, height), (x, width)):
        within = g.op("And", n("GreaterOrEqual", at, 0), n("LessOrEqual", at, size - 1))
        inside = within if inside is None else g.op("And", inside, within)
    assert inside is not None
    y, x = n("Clip", y, 0, height - 1), n("Clip", x, 0, width - 1)
    images = g.op("Reshape", g.whole(op["box_ind"]), g.ints([-1, 1, 1, 1]))
    around = g.op("Concat", g.op("Shape", images, end=1), g.ints([rows, columns, 1]), axis=0)

    def pick(at_y: ir.Value, at_x: ir.Value) -> ir.Value:
        last = g.ints([3])
        parts = [g.op("Unsqueeze", g.cast(v, ir.DataType.INT64), last) for v in (at_y, at_x)]
        whole = [g.op("Expand", part, around) for part in (images, *parts)]
        return g.op("GatherND", value, g.op("Concat", *whole, axis=3))

    if node_of(op)["method"] == "nearest":
        result = pick(n("Floor", n("Add", y, 0.5)), n("Floor", n("Add", x, 0.5)))
    else:
        low_y, low_x = n("Floor", y), n("Floor", x)
        past_y, past_x = (
            g.op("Unsqueeze", n("Sub", at, low), g.ints([3]))
            for at, low in ((y, low_y), (x, low_x))
        )
        lines = []
        for line in (low_y, n("Ceil", y)):
            left, right = pick(line, low_x), pick(line, n("Ceil", x))
            lines.append(n("Add", left, n("Mul", n("Sub", right, left), past_x)))
        result = n("Add", lines[0], n("Mul", n("Sub", lines[1], lines[0]), past_y))
    inside = g.op("Unsqueeze", inside, g.ints([3]))
    g.write(op.output, n("Where", inside, result, node_of(op)["extrapolation_value"]))


def _places(n: _Numbers, first: ir.Value, last: ir.Value, old: int, new: int) -> ir.Value:
    """[boxes, new]: where the rows of crops are among the old ones."""
    if new == 1:
        return n("Mul", n("Mul", n("Add", first, last), 0.5), old - 1)
    scale = n("Div", n("Mul", n("Sub", last, first), old - 1), new - 1)
    counted = n.g.constant(np.arange(new, dtype=np.float32))
    return n("Add", n("Mul", first, old - 1), n("Mul", counted, scale))


@flex_translator("ResizeBicubic")
def bicubic(op: View, g: Graph) -> None:
    """Products with the weights of rows and of columns."""
    image, node = op["images"], node_of(op)
    old, new = image.shape[1:3], op.output.shape[1:3]
    if not is_known(*old, *new):
        raise Untranslatable("images of an unknown size")
    given = node["align_corners"], node["half_pixel_centers"]
    rows, columns = (bicubic_weights(a, b, *given) for a, b in zip(old, new, strict=True))
    x = g.cast(g.read(image, layout=Layout.FIRST, domain=Domain.FILE), ir.DataType.FLOAT)
    whole = g.op("MatMul", g.op("MatMul", g.constant(rows), x), g.constant(columns.T))
    g.write(op.output, whole, layout=Layout.FIRST)


_FAR = 1 << 24  # a place that is outside of every image


@flex_translator("ImageProjectiveTransformV2", "ImageProjectiveTransformV3")
def projective(op: View, g: Graph) -> None:
    """Places by arithmetic, and GatherND of the pixels there."""
    x, node, places = op["images"], node_of(op), Places(g)
    _, height, width, _ = x.shape
    _, rows, columns, _ = op.output.shape
    if not is_known(height, width, rows, columns) or 0 in (height, width, rows, columns):
        raise Untranslatable(f"images of {x.shape}")
    kind, outside = node["interpolation"], OUTSIDE.get(node["fill_mode"])
    if x.type is not _T.FLOAT32 or outside is None or kind not in ("NEAREST", "BILINEAR"):
        raise Untranslatable(f"{x.type.name} images, {kind}, {node['fill_mode']}")
    a = [
        g.op(
            "Unsqueeze", g.op("Gather", g.read(op["transforms"]), g.ints([i]), axis=1), g.ints([2])
        )
        for i in range(8)
    ]
    across = g.constant(np.arange(columns, dtype=np.float32))
    down = g.constant(np.arange(rows, dtype=np.float32)[:, None])

    def product(i: int, j: int) -> ir.Value:
        return places("Add", places("Mul", a[i], across), places("Mul", a[j], down))

    scale = places("Add", product(6, 7), 1)
    seen = g.op("Not", places("Equal", scale, 0))
    at = []
    for i, size in ((3, height), (0, width)):
        place = outside(
            places, places("Div", places("Add", product(i, i + 1), a[i + 2]), scale), size
        )
        # Neither NaN nor what is infinite is less.
        seen = g.op("And", seen, places("Less", places("Abs", place), float(np.inf)))
        at.append(place)
    at = [places("Min", places("Max", places("Where", seen, p, -2), -2), _FAR) for p in at]
    fill = g.read(op["fill_value"]) if "fill_value" in op.names else places("Add", 0, 0)
    value = _projected(g, places, x, op.output, at, fill, kind)
    made = g.op("Where", g.op("Unsqueeze", seen, g.ints([3])), value, fill)
    g.write(op.output, made, domain=Domain.FILE)


def _projected(
    g: Graph,
    places: Places,
    x: TensorView,
    output: TensorView,
    at: list[ir.Value],
    fill: ir.Value,
    kind: str,
) -> ir.Value:
    """The pixels at the places [images or 1, rows, columns] of rows and of columns."""
    images, zero = g.read(x, domain=Domain.FILE), g.constant(0, np.float32)
    shape = g.op("Concat", g.op("Shape", images, end=1), g.ints(output.shape[1:3]), axis=0)
    numbers = g.op("Range", g.ints(0), g.reshape(g.op("Shape", images, end=1), ()), g.ints(1))
    number = g.op("Expand", g.op("Unsqueeze", numbers, g.ints([1, 2])), shape)

    def pick(y: ir.Value, x_: ir.Value) -> ir.Value:
        inside, indices = None, [number]
        for place, size in ((y, x.shape[1]), (x_, x.shape[2])):
            fits = g.op("And", places("GreaterOrEqual", place, 0), places("Less", place, size))
            inside = fits if inside is None else g.op("And", inside, fits)
        assert inside is not None
        for place in (y, x_):
            index = g.cast(g.op("Where", inside, place, zero), ir.DataType.INT64)
            indices.append(g.op("Expand", index, shape))
        last = g.ints([3])
        indices = [g.op("Unsqueeze", index, last) for index in indices]
        found = g.op("GatherND", images, g.op("Concat", *indices, axis=3))
        return g.op("Where", g.op("Unsqueeze", inside, last), found, fill)

    if kind == "NEAREST":
        return pick(places.rounded(at[0]), places.rounded(at[1]))
    low_y, low_x = (g.op("Floor", place) for place in at)
    past = [
        g.op("Unsqueeze", places("Sub", p, low), g.ints([3]))
        for p, low in zip(at, (low_y, low_x), strict=True)
    ]
    next_x = places("Add", low_x, 1)
    lines = []
    for line in (low_y, places("Add", low_y, 1)):
        left = places("Mul", places("Sub", 1, past[1]), pick(line, low_x))
        lines.append(places("Add", left, places("Mul", past[1], pick(line, next_x))))
    first = places("Mul", places("Sub", 1, past[0]), lines[0])
    return places("Add", first, places("Mul", past[0], lines[1]))


class Places:
    """Arithmetic of float32, and what is taken for a place outside of an image."""

    def __init__(self, g: Graph) -> None:
        self._g = g

    def __call__(self, op_type: str, *values: ir.Value | float) -> ir.Value:
        given = [v if isinstance(v, ir.Value) else self._g.constant(v, _FLOAT) for v in values]
        return self._g.op(op_type, *given)

    def cut(self, value: ir.Value) -> ir.Value:
        """The whole number next to a value towards 0."""
        return self("Mul", self("Sign", value), self("Floor", self("Abs", value)))

    def held(self, at: ir.Value, size: int) -> ir.Value:
        """The nearest place inside."""
        return self("Min", self("Max", at, 0), size - 1)

    def reflected(self, at: ir.Value, size: int) -> ir.Value:
        """The place in a row of images of which every other one is mirrored."""
        if size <= 1:
            return self("Mul", at, 0)
        turns = self("Mul", self.cut(self("Div", self("Neg", at), 2 * size)), 2 * size)
        low = self("Where", self("Less", at, -2 * size), self("Add", turns, at), at)
        mirrored = self("Sub", self("Neg", low), 1)
        low = self("Where", self("Less", low, -size), self("Add", low, 2 * size), mirrored)
        turns = self("Mul", self.cut(self("Div", at, 2 * size)), 2 * size)
        high = self("Sub", at, turns)
        mirrored = self("Sub", self("Sub", 2 * size, high), 1)
        high = self("Where", self("GreaterOrEqual", high, size), mirrored, high)
        return self._chosen(at, low, high, size)

    def wrapped(self, at: ir.Value, size: int) -> ir.Value:
        """The place in a row of images."""
        if size <= 1:
            return self("Mul", at, 0)
        turns = self("Add", self.cut(self("Div", self("Neg", at), size - 1)), 1)
        low = self("Add", at, self("Mul", turns, size))
        high = self("Sub", at, self("Mul", self.cut(self("Div", at, size - 1)), size))
        return self._chosen(at, low, high, size)

    def _chosen(self, at: ir.Value, low: ir.Value, high: ir.Value, size: int) -> ir.Value:
        inside = self("Where", self("Greater", at, size - 1), high, at)
        return self.held(self("Where", self("Less", at, 0), low, inside), size)

    def rounded(self, value: ir.Value) -> ir.Value:
        """Halves away from 0."""
        return self("Mul", self("Sign", value), self("Floor", self("Add", self("Abs", value), 0.5)))


# By TensorFlow's fill modes.
OUTSIDE: dict[str, Callable[[Places, ir.Value, int], ir.Value]] = {
    "CONSTANT": lambda places, at, size: at,
    "NEAREST": Places.held,
    "REFLECT": Places.reflected,
    "WRAP": Places.wrapped,
}
