"""Two TRANSPOSE after which the elements stand in their first order: one RESHAPE.

Converters keep the channels of an image first, and those of tokens last. So [batch, height, width,
channels] becomes [batch, channels, height * width] on its way to [batch, height * width, channels].
"""

from __future__ import annotations

from functools import partial
from math import prod

from tflite_ort.opmap.graph import Graph, Layout
from tflite_ort.opmap.idioms.movement import keeps_rows, moved_domain
from tflite_ort.opmap.patterns.matching import Found, Leaf, node
from tflite_ort.opmap.patterns.pattern import Emit, Pattern, Surroundings, View
from tflite_ort.opmap.patterns.views import Strided
from tflite_ort.schema import Op, TensorType, TensorView, Untranslatable
from tflite_ort.schema.values.semantics import normalized_axis
from tflite_ort.schema.values.sizes import is_known

_TRANSPOSE, _X = node(Op.TRANSPOSE), Leaf()
_TURNED = _TRANSPOSE(_X)
_RETURNED = _TRANSPOSE(_TURNED)


def _plan(found: Found, around: Surroundings) -> Emit | None:
    """A RESHAPE, where all elements stand where they stood."""
    x, result = found[_X], found[_RETURNED]
    first, second = (found.operator(part) for part in (_TURNED, _RETURNED))
    between = (first["input"], first.output, second["input"], result)
    sizes = [size for tensor in (x, *between) for size in tensor.shape]
    if not is_known(*sizes) or 0 in sizes or x.type is TensorType.STRING:
        return None
    view: Strided | None = Strided.whole(x.shape)
    for op in (first, second):
        view = None if view is None else view.reshaped(op["input"].shape)
        perm = op["perm"].data
        if view is None or perm is None:
            return None
        rank = len(view.dimensions)
        view = view.transposed([normalized_axis(int(axis), rank) for axis in perm.ravel()])
    count = (prod(x.shape),)
    returned = view is not None and view.reshaped(count) == Strided.whole(count)
    return partial(_emit, x) if returned else None


def _emit(x: TensorView, g: Graph, op: View) -> None:
    """Add the node, unless `x` stands with its channels first: then one TRANSPOSE takes none."""
    output, domain = op.output, moved_domain(x, op.output)
    if g.layout(x) is Layout.FIRST:
        raise Untranslatable("channels are first already")
    if not keeps_rows(x, output, g, domain):
        value = g.read(x, domain=domain)
        value = value if x.shape == output.shape else g.reshape(value, output.shape)
        g.write(output, value, domain=domain)


RETURNS = (Pattern("TRANSPOSE and back", _RETURNED, _plan),)
