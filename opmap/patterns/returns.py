"""Chains of TRANSPOSE and RESHAPE that move their elements once, or not at all.

Converters keep the channels of an image first, and those of tokens last. So [batch, height, width,
channels] becomes [batch, channels, height * width] on its way to [batch, height * width, channels],
and all elements stand where they stood. Patches of an image are cut out by three TRANSPOSE, which
are one TRANSPOSE of more dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.graph.rows import RESHAPES, has_rows, row_shape
from tflite_ort.opmap.idioms.movement import keeps_rows, moved_domain
from tflite_ort.opmap.patterns.matching import Producers
from tflite_ort.opmap.patterns.pattern import Emit, View
from tflite_ort.opmap.patterns.views import Strided
from tflite_ort.records import record
from tflite_ort.schema import Op, TensorType, TensorView, Untranslatable
from tflite_ort.schema.values.sizes import is_known

# ONNX Runtime copies runs of elements that stay together at once.
_RUN = 4


@record
class Chain:
    """Operators one after the other, each of which reads the one before.

    Args:
        members: those that `plan` replaces: all, or the last one alone where something else reads
            what stands inside.
        plan: what adds the nodes.
    """

    operators: Sequence[View]
    members: Sequence[View]
    plan: Emit


def chains(operators: Sequence[View], results: Sequence[TensorView]) -> Iterator[Chain]:
    """The chains that end with a TRANSPOSE and take fewer nodes than their operators."""
    producers = Producers(operators, results)
    done = set[int]()
    for op in reversed(operators):  # the longest chains end last
        if op.op is not Op.TRANSPOSE or op.index in done or not _is_plain(op):
            continue
        move = _move(_before(op, producers))
        if move is None:
            continue
        inside = {each.index for each in move.operators}
        made = [each.output for each in move.operators if each is not op]
        closed = not any(map(producers.is_result, made)) and all(
            reader.index in inside for each in made for reader in producers.readers(each)
        )
        if closed or move.returns:
            members = move.operators if closed else (op,)
            done.update(each.index for each in members)
            yield Chain(move.operators, members, partial(_emit, move))


@record
class _Move:
    """Where a chain takes the elements of a tensor.

    Args:
        operators: of the chain, in their order.
        view: the result, as elements of the tensor.
        transposes: how many TRANSPOSE there are.
    """

    x: TensorView
    operators: Sequence[View]
    view: Strided
    transposes: int

    @property
    def returns(self) -> bool:
        """Whether all elements stand where they stood."""
        count = (prod(self.x.shape),)
        return self.view.reshaped(count) == Strided.whole(count)


def _is_plain(op: View) -> bool:
    """Whether an operator moves a tensor of known sizes in a known way."""
    x, output = op.inputs[0], op.outputs[0]
    sizes = () if x is None else (*x.shape, *output.shape)
    if x is None or not sizes or not is_known(*sizes) or 0 in sizes:
        return False
    if x.is_constant or x.is_variable or output.is_variable or x.type is TensorType.STRING:
        return False
    return op.op in RESHAPES or _order(op) is not None


def _order(op: View) -> Sequence[int] | None:
    """The axes of a TRANSPOSE, counted from the front; None where they are none that are known."""
    x, perm = op["input"], op["perm"].data
    if perm is None or perm.size != x.rank:
        return None
    order = [int(axis) + x.rank * (axis < 0) for axis in perm.ravel()]
    return order if sorted(order) == list(range(x.rank)) else None


def _before(op: View, producers: Producers) -> Sequence[View]:
    """`op`, and the operators before it that move elements too, in their order."""
    found = [op]
    while (source := found[-1].inputs[0]) is not None:
        maker = producers.maker(source)
        if maker is None or maker.op not in {*RESHAPES, Op.TRANSPOSE} or not _is_plain(maker):
            break
        found.append(maker)
    return found[::-1]


def _move(operators: Sequence[View]) -> _Move | None:
    """What the end of a run of operators does: the longest end after which all elements stand where
    they stood, else the longest that is one TRANSPOSE in the place of several."""
    moves = [_taken(operators[first:]) for first in range(len(operators) - 1)]
    found = [move for move in moves if move is not None and move.transposes > 1]
    whole = (move for move in found if move.returns)
    return next(whole, None) or next((move for move in found if _is_one(move.view)), None)


def _taken(operators: Sequence[View]) -> _Move | None:
    """Where operators take a tensor; None where a RESHAPE cuts what no longer stands together."""
    x = operators[0].inputs[0]
    assert x is not None
    view: Strided | None = Strided.whole(x.shape)
    for op in operators:
        order = _order(op) if op.op is Op.TRANSPOSE else None
        view = None if view is None else view.reshaped(op.present_inputs()[0].shape)
        view = view if view is None or order is None else view.transposed(order)
        view = None if view is None else view.reshaped(op.output.shape)
    count = sum(op.op is Op.TRANSPOSE for op in operators)
    starts = operators[0].op is Op.TRANSPOSE
    return None if view is None or not starts else _Move(x, operators, view, count)


def _runs(view: Strided) -> Sequence[tuple[int, int]]:
    """Sizes and strides of what a result runs through, in its order."""
    return [run for runs in view.dimensions for run in runs]


def _is_one(view: Strided) -> bool:
    """Whether one TRANSPOSE makes the result, and copies runs of elements."""
    size, stride = _runs(view)[-1]
    return stride == 1 and size >= _RUN


def _emit(move: _Move, g: Graph, op: View) -> None:
    """Add the nodes, unless they would not be fewer."""
    x, output = move.x, op.output
    domain, is_first = moved_domain(x, output), g.layout(x) is Layout.FIRST
    blocked = bool(g.target.block) and not x.is_quantized
    if is_first and not blocked:
        # One TRANSPOSE takes none then. From blocks, all layouts take as long.
        raise Untranslatable("channels are first already")
    if not move.returns:
        if not g.target.cpu_kernels or x.is_quantized or move.transposes - is_first < 2:
            raise Untranslatable("one by one they take no more nodes")
        _emit_move(move, g, output, domain)
    elif not keeps_rows(x, output, g, domain):
        value = g.read(x, domain=domain)
        if is_first and output.rank == 3 and has_rows(output):
            g.write(output, g.reshape(value, row_shape(output)), layout=Layout.ROWS, domain=domain)
            return
        value = value if x.shape == output.shape else g.reshape(value, output.shape)
        g.write(output, value, domain=domain)


def _emit_move(move: _Move, g: Graph, output: TensorView, domain: Domain) -> None:
    """One Transpose of as many dimensions as there are runs."""
    runs = _runs(move.view)
    places = sorted(range(len(runs)), key=lambda place: -runs[place][1])
    value = g.reshape(g.read(move.x, domain=domain), [runs[place][0] for place in places])
    value = g.op("Transpose", value, perm=[places.index(place) for place in range(len(runs))])
    is_rows = has_rows(output) and any(each.op in RESHAPES for each in g.readers(output))
    layout = Layout.ROWS if is_rows else Layout.LAST
    shape = row_shape(output) if is_rows else output.shape
    g.write(output, g.reshape(value, shape), layout=layout, domain=domain)
