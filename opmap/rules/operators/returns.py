"""Chains of TRANSPOSE and RESHAPE that move their elements once, or not at all.

Converters keep the channels of an image first, and those of tokens last. So [batch, height, width,
channels] becomes [batch, channels, height * width] on its way to [batch, height * width, channels],
and all elements stand where they stood. Patches of an image are cut out by three TRANSPOSE, which
are one TRANSPOSE of more dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from tflite_ort.base.records import record
from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.graph.rows import RESHAPES, has_rows, row_shape
from tflite_ort.opmap.idioms.movement import keeps_rows, moved_domain
from tflite_ort.opmap.rules.operators.matching import Producers
from tflite_ort.opmap.rules.operators.moves import Move, is_plain, moves_before, taken
from tflite_ort.opmap.rules.operators.pattern import Emit, View
from tflite_ort.schema import Op, TensorView, Untranslatable

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


def chains(producers: Producers) -> Iterator[Chain]:
    """The chains that end with a TRANSPOSE and take fewer nodes than their operators."""
    done = set[int]()
    for op in reversed(producers.operators):  # the longest chains end last
        if op.op is not Op.TRANSPOSE or op.index in done or not is_plain(op):
            continue
        move = _move(moves_before(op, producers))
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


def _move(operators: Sequence[View]) -> Move | None:
    """What the end of a run of operators does: the longest end after which all elements stand where
    they stood, else the longest that is one TRANSPOSE in the place of several."""
    moves = [taken(operators[first:]) for first in range(len(operators) - 1)]
    found = [move for move in moves if move is not None and move.transposes > 1]
    whole = (move for move in found if move.returns)
    return next(whole, None) or next((move for move in found if _is_one(move)), None)


def _is_one(move: Move) -> bool:
    """Whether one TRANSPOSE makes the result, and copies runs of elements."""
    size, stride = move.runs[-1]
    return stride == 1 and size >= _RUN


def _emit(move: Move, g: Graph, op: View) -> None:
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


def _emit_move(move: Move, g: Graph, output: TensorView, domain: Domain) -> None:
    """One Transpose of as many dimensions as there are runs."""
    runs = move.runs
    places = sorted(range(len(runs)), key=lambda place: -runs[place][1])
    value = g.reshape(g.read(move.x, domain=domain), [runs[place][0] for place in places])
    value = g.op("Transpose", value, perm=[places.index(place) for place in range(len(runs))])
    is_rows = has_rows(output) and any(each.op in RESHAPES for each in g.uses.readers(output))
    layout = Layout.ROWS if is_rows else Layout.LAST
    shape = row_shape(output) if is_rows else output.shape
    g.write(output, g.reshape(value, shape), layout=layout, domain=domain)
