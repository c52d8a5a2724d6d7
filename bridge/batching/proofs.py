"""Of which operators it is known along which axes they mix nothing."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from tflite_ort.batching.elementwise import ALIKE
from tflite_ort.batching.graph import known_values
from tflite_ort.batching.layers import ALONG_LAST
from tflite_ort.batching.sample_axes import MERGED, SIZES, SampleAxes, called, proof
from tflite_ort.schema import Op, OperatorView, Specialized, TensorView, Unbatchable
from tflite_ort.schema.values.elementwise import BROADCASTING, UNARY
from tflite_ort.schema.values.semantics import normalized_axes, normalized_axis
from tflite_ort.schema.values.sizes import is_one, may_differ

View = OperatorView[Any]

_MANY = 1 << 30


@proof(*BROADCASTING, *UNARY, Op.CAST, Op.FAKE_QUANT, Op.BROADCAST_TO, shapes=(1,))
def elementwise(op: View, axes: SampleAxes) -> None:
    """All operands have the samples in one axis, counted from the last."""
    inputs, out = [t for t in op.present_inputs() if axes.of(t) != SIZES], op.output
    if len(inputs) < len(op.present_inputs()) and op.op is not Op.BROADCAST_TO:
        raise Unbatchable("it computes with the number of samples")
    for tensor in inputs:
        if tensor.quantization is not None and tensor.quantization.per_channel:
            raise Unbatchable("its scales go along an axis")
    if any(axes.of(tensor) == MERGED for tensor in inputs):
        axis = 0
        if any(axes.of(t) not in (None, MERGED) or t.rank > out.rank for t in inputs):
            raise Unbatchable("its operands have the samples in other axes")
        axes.merge(out)
    else:
        axis = axes.found(out)
        axes.note(out)
    for tensor in inputs:
        place = axis - out.rank + tensor.rank
        if axes.differs(tensor):
            if max(axes.places[tensor.index], 0) != place:
                raise Unbatchable("its operands have the samples in other axes")
        elif place >= 0 and not is_one(tensor.shape[place]):
            raise Unbatchable("an operand has another value for each sample by its place")


@proof(*ALIKE, Op.SELECT)
def of_one_shape(op: View, axes: SampleAxes) -> None:
    """Operands of one shape."""
    if any(may_differ(tensor.shape, op.output.shape) for tensor in op.present_inputs()):
        raise Unbatchable("its operands have other shapes")
    elementwise(op, axes)


@proof(Op.FILL, "FlexTensorListReserve", "FlexEmptyTensorList", shapes=(0,))
def alike(op: View, axes: SampleAxes) -> None:
    """One value everywhere."""
    if axes.of(op.present_inputs()[1]) is not None:  # what fills a tensor; the length of a list
        raise Unbatchable("it computes with the number of samples")
    if any(size is axes.count for size in op.output.shape):
        axes.note(op.output)


@proof(Op.SHAPE, Op.RANK)
def shape(op: View, axes: SampleAxes) -> None:
    """Sizes."""
    axes.note_sizes(op.output)


def _only(op: View, name: str, axes: SampleAxes) -> tuple[TensorView, int]:
    """The one input that differs between the samples, and its axis."""
    source = op[name]
    if any(axes.differs(t) for t in op.inputs if t is not source) or not axes.differs(source):
        raise Unbatchable("more than its data differs between the samples")
    return source, axes.places[source.index]


def _along(op: View, source: TensorView, mixed: set[int], axes: SampleAxes) -> None:
    """Notes the results of what mixes along the axes `mixed` of its source."""
    place = axes.places[source.index]
    if max(place, 0) in mixed:
        raise Unbatchable("it goes along the axis of the samples")
    for out in op.outputs:
        if place == MERGED:
            axes.merge(out)
        else:
            axes.note(out)


@proof(*ALONG_LAST)
def along_last(op: View, axes: SampleAxes) -> None:
    """Along the last axes; convolutions and pools have one more, that of the samples."""
    names = op.names
    source, _ = _only(op, names[0], axes)
    count = ALONG_LAST[op.op if op.custom_code is None else op.custom_code]
    if source.rank <= count:
        raise Unbatchable("no axis is left for the samples")
    _along(op, source, set(range(source.rank - count, source.rank)), axes)


@proof(Op.SUM, Op.MEAN, Op.REDUCE_PROD, Op.REDUCE_MAX, Op.REDUCE_MIN)
@proof(Op.REDUCE_ANY, Op.REDUCE_ALL, Op.REVERSE_V2)
def reduction(op: View, axes: SampleAxes) -> None:
    """Along the axes that are listed."""
    source, _ = _only(op, "input", axes)
    listed = normalized_axes(known_values(op["axes"], "list of axes"), source.rank)
    _along(op, source, set(listed), axes)


@proof(Op.CUMSUM, Op.ARG_MAX, Op.ARG_MIN, Op.SPLIT, Op.SPLIT_V)
def along_one(op: View, axes: SampleAxes) -> None:
    """Along one axis."""
    source, _ = _only(op, "input", axes)
    axis = int(known_values(op["axis"], "axis").item())
    _along(op, source, {normalized_axis(axis, source.rank)}, axes)


@proof(Op.UNPACK)
def unpack(op: View, axes: SampleAxes) -> None:
    """Along one axis."""
    source, _ = _only(op, "input", axes)
    _along(op, source, {normalized_axis(op.options.axis, source.rank)}, axes)


@proof(Op.CONCATENATION, Op.PACK)
def joined(op: View, axes: SampleAxes) -> None:
    """Values that all have the samples in one axis."""
    values, out = op.every("values"), op.output
    places = {axes.of(tensor) for tensor in values}
    if len(places) != 1 or places & {None, MERGED, SIZES}:
        raise Unbatchable("its values do not have the samples in one axis")
    if op.op is Op.CONCATENATION:
        _along(op, values[0], {normalized_axis(op.options.axis, out.rank)}, axes)
    else:
        axes.note(out)


@proof(Op.RESHAPE, Op.SQUEEZE, Op.EXPAND_DIMS, shapes=(1,))
def reshape(op: View, axes: SampleAxes) -> None:
    """The elements keep their order."""
    source, _ = _only(op, "input", axes)
    axes.keep_order(source, op.output)


@proof(Op.TRANSPOSE)
def transpose(op: View, axes: SampleAxes) -> None:
    """The axis of the samples goes where the permutation says."""
    _, place = _only(op, "input", axes)
    if place == MERGED:
        if int(known_values(op["perm"], "permutation")[0]):
            raise Unbatchable("it moves an axis that counts samples and others")
        axes.merge(op.output)
    else:
        axes.note(op.output)


@proof(Op.PAD, Op.PADV2, Op.MIRROR_PAD, Op.TILE)
@proof(Op.SLICE, shapes=(2,))
def in_place(op: View, axes: SampleAxes) -> None:
    """The axis of the samples is as long as before, and stays where it is."""
    source, place = _only(op, "input", axes)
    if op.op is Op.SLICE and axes.of(op["size"]) == SIZES and not _is_shape(op["size"], source):
        raise Unbatchable("it computes with the number of samples")
    if place == MERGED or axes.found(op.output) != place:
        raise Unbatchable("it changes the number of samples")
    axes.note(op.output)


@proof(Op.STRIDED_SLICE, shapes=(2,))
def strided_slice(op: View, axes: SampleAxes) -> None:
    """A step of 1: as many samples are all samples in their order."""
    source, place = _only(op, "input", axes)
    end = op["end"]
    if place == MERGED or (axes.of(end) == SIZES and not _is_shape(end, source)):
        raise Unbatchable("it computes with the number of samples")
    if any(known_values(op["strides"], "list of strides") != 1):
        raise Unbatchable("its steps are not 1")
    axes.note(op.output)


def _is_shape(sizes: TensorView, source: TensorView) -> bool:
    """Whether a list has the sizes of `source`, but for those that are told without the samples."""
    known = [] if sizes.sizes is None else sizes.sizes.reshape(-1).tolist()
    pairs = zip(known, source.shape, strict=False)
    return bool(known) and all(a is b or isinstance(a, int) for a, b in pairs)


@proof(Op.GATHER)
def gather(op: View, axes: SampleAxes) -> None:
    """Positions along another axis, or of each sample in data that is the same for all."""
    source, positions = op["input"], op["positions"]
    axis, lots = normalized_axis(op.options.axis, source.rank), op.options.batch_dims
    if not axes.differs(source):
        if lots or axes.of(positions) == MERGED:
            raise Unbatchable("its positions and its data have the samples in other axes")
    elif axes.differs(positions):
        place, other = axes.places[source.index], axes.places[positions.index]
        if place != other or not 0 <= place < lots:
            raise Unbatchable("its positions and its data have the samples in other axes")
    elif axes.of(source) in (axis, MERGED) or lots:
        raise Unbatchable("it picks samples")
    axes.note(op.output)


@proof(Op.FULLY_CONNECTED)
def fully_connected(op: View, axes: SampleAxes) -> None:
    """Rows of the filter's depth."""
    source, place = _only(op, "input", axes)
    if len(op.outputs) != 1 or source.rank < 2 or place == source.rank - 1:
        raise Unbatchable("it goes along the axis of the samples")
    if may_differ(source.shape[-1:], op["filter"].shape[-1:]):
        raise Unbatchable("its rows are not those of its input")
    if place > 0 and not op.options.keep_num_dims and source.rank > 2:
        raise Unbatchable("its rows are those of several samples")
    if any(size is axes.count for size in op.output.shape):
        axes.note(op.output)
    else:
        axes.merge(op.output)


@proof(Op.BATCH_MATMUL)
def batch_matmul(op: View, axes: SampleAxes) -> None:
    """Products of the last two axes; those before broadcast."""
    x, y, out = op["x"], op["y"], op.output
    rows = axes.of(x) == x.rank - 2 and not op.options.adj_x and not axes.differs(y)
    if not rows:
        at = axes.found(out)
        for tensor in (x, y):
            place = at - out.rank + tensor.rank
            same = not axes.differs(tensor) and (place < 0 or is_one(tensor.shape[place]))
            if not same and (axes.of(tensor) != place or place >= tensor.rank - 2):
                raise Unbatchable("its operands have the samples in other axes")
    axes.note(out)


@proof("FlexTensorListFromTensor", "FlexTensorListStack", shapes=(1,))
def of_list(op: View, axes: SampleAxes) -> None:
    """A list of elements that have the samples in an axis of theirs."""
    place = axes.of(op.present_inputs()[0])
    if place in (0, MERGED, SIZES):
        raise Unbatchable("the samples are the elements of a list")
    axes.note(op.output)


@proof("FlexTensorListSetItem", "FlexTensorListPushBack")
def with_item(op: View, axes: SampleAxes) -> None:
    """An element that has the samples where those of the list have them."""
    whole, *index, item = op.present_inputs()
    if any(axes.differs(tensor) for tensor in index):
        raise Unbatchable("each sample sets another element")
    at = axes.found(op.output)
    for tensor, place in ((whole, at), (item, at - 1)):
        if axes.of(tensor) != place:
            raise Unbatchable("the samples are in no axis of the elements of a list")
    axes.note(op.output)


# What calls subgraphs --------------------------------------------------------------------------


@proof(Op.WHILE, shapes=range(_MANY))
def loop(op: View, axes: SampleAxes) -> None:
    """The same number of iterations for all samples; what differs in a state after an iteration
    differs from the start on."""
    test, body = op.bodies
    inputs = op.present_inputs()
    inner = called(axes, inputs, body)
    while True:
        after = SampleAxes(axes.count, inner.places)
        after.follow(body)
        if not _widened(inner, after, body):
            break
    _check_condition(SampleAxes(axes.count, _renumbered(inner, body, test)), test)
    for index, out in zip(body.outputs, op.outputs, strict=False):
        _note_result(out, after.of(body.tensors[index]), axes)


def _widened(inner: SampleAxes, after: SampleAxes, body: Specialized) -> bool:
    """Let the inputs of a body differ as its outputs do; whether one did not before."""
    more = False
    for given, made in zip(body.inputs, body.outputs, strict=False):
        now, then = inner.of(body.tensors[given]), after.of(body.tensors[made])
        if then is None or now == then:
            continue
        if then == MERGED or (now is not None and now >= 0):
            raise Unbatchable("the samples change their axis from iteration to iteration")
        inner.places[given] = then
        if then >= 0 and inner.found(body.tensors[given]) != then:
            raise Unbatchable("the samples change their axis from iteration to iteration")
        more = True
    return more


def _renumbered(inner: SampleAxes, body: Specialized, test: Specialized) -> dict[int, int]:
    """The same places for the inputs of the condition."""
    pairs = zip(body.inputs, test.inputs, strict=True)
    return {other: inner.places[one] for one, other in pairs if one in inner.places}


def _check_condition(axes: SampleAxes, test: Specialized) -> None:
    axes.follow(test)
    if any(axes.of(test.tensors[index]) is not None for index in test.outputs):
        raise Unbatchable("the number of iterations depends on the samples")


def _note_result(out: TensorView, place: int | None, axes: SampleAxes) -> None:
    if place == SIZES:
        axes.note_sizes(out)
    elif place is not None:
        axes.note(out)


@proof(Op.IF, shapes=range(1, _MANY))
def branches(op: View, axes: SampleAxes) -> None:
    """The same branch for all samples."""
    condition, *inputs = op.present_inputs()
    if axes.of(condition) is not None:
        raise Unbatchable("the branch depends on the samples")
    made = []
    for body in op.bodies:
        inner = called(axes, inputs, body)
        inner.follow(body)
        made.append([inner.of(body.tensors[index]) for index in body.outputs])
    for out, one, other in zip(op.outputs, *made, strict=False):
        if one != other:
            raise Unbatchable("the branches have the samples in other axes")
        _note_result(out, one, axes)


def keeps_samples_apart(graph: Specialized, given: Collection[int], count: int) -> SampleAxes:
    """The axes of the samples, of which `graph` has any number.

    Args:
        given: the inputs of which there is one for each sample.
        count: the number of samples, which is the first size of each of these.

    Raises:
        Unbatchable: some may be mixed.
    """
    axes = SampleAxes(count, dict.fromkeys(given, 0))
    axes.follow(graph)
    for index in graph.outputs:
        place = axes.of(graph.tensors[index])
        if place != 0 and (place is not None or len(given) == len(graph.inputs)):
            raise Unbatchable("an output has no row for each sample")
    return axes
