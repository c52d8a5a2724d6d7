"""Arithmetic of complex numbers, which are pairs of reals along the last axis."""

from __future__ import annotations

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.onnx_graph import ir


def parts(g: Graph, value: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The real and the imaginary parts."""
    first, second = (g.op("Gather", value, g.ints(which), axis=-1) for which in (0, 1))
    return first, second


def joined(g: Graph, real: ir.Value, imaginary: ir.Value) -> ir.Value:
    """Pairs of two parts."""
    ends = g.ints([-1])
    return g.op("Concat", *(g.op("Unsqueeze", x, ends) for x in (real, imaginary)), axis=-1)


def product(g: Graph, x: ir.Value, y: ir.Value) -> ir.Value:
    """(a + bi)(c + di)."""
    (a, b), (c, d) = parts(g, x), parts(g, y)
    real = g.op("Sub", g.op("Mul", a, c), g.op("Mul", b, d))
    return joined(g, real, g.op("Add", g.op("Mul", a, d), g.op("Mul", b, c)))


def reciprocal(g: Graph, x: ir.Value) -> ir.Value:
    """(a - bi) / (a² + b²), of numbers scaled so that no square leaves the range."""
    a, b = parts(g, x)
    largest = g.op("Max", g.op("Abs", a), g.op("Abs", b))
    a, b = g.op("Div", a, largest), g.op("Div", b, largest)
    square = g.op("Mul", g.op("Add", g.op("Mul", a, a), g.op("Mul", b, b)), largest)
    return joined(g, g.op("Div", a, square), g.op("Neg", g.op("Div", b, square)))


def quotient(g: Graph, x: ir.Value, y: ir.Value) -> ir.Value:
    """The product with the reciprocal."""
    return product(g, x, reciprocal(g, y))


def exponential(g: Graph, x: ir.Value) -> ir.Value:
    """exp(a) (cos b + i sin b)."""
    a, b = parts(g, x)
    size = g.op("Exp", a)
    return joined(g, g.op("Mul", size, g.op("Cos", b)), g.op("Mul", size, g.op("Sin", b)))
