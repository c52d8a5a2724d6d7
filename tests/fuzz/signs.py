"""Why a result differs where nothing can be taken out of the file: the results tell it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tests.fuzz import repairs
from tests.fuzz.case import ASKED_SECONDS, Case, is_close
from tests.fuzz.compare import RTOL, Array, difference, severity
from tests.fuzz.describe import makers
from tests.fuzz.feeds import TEXTS, Tame
from tests.fuzz.litert import Answer, Question
from tests.fuzz.repairs import name_of
from tests.fuzz.steps import run
from tests.fuzz.tree import data_of, values_of, with_graph
from tflite_ort.schema import (
    BridgeError,
    Model,
    Operator,
    StridedSliceOptions,
    TensorType,
    write_model,
)
from tflite_ort.schema.arithmetic.fixed_point import (
    leading_zeros,
    quantize_multiplier,
    reciprocal,
)

# Those of sums of numbers around 4.
_LAST_BITS = 1e-6
# Operators of a file that are looked at one at a time.
_MANY = 64
_WITH_TENTHS = "MaxPoolingWithArgmax2D"
# LiteRT has a bit for each dimension of a slice, in 32.
_MASK_BITS = 32
_HANDLES = (TensorType.RESOURCE, TensorType.VARIANT)


def unstable(case: Case) -> bool:
    """Whether LiteRT's result depends on what memory holds that is not set."""
    answers = case.answers
    pairs = (("default", "unset"), ("reference", "unset again"))
    return any(_apart(case, answers[a], answers[b]) for a, b in pairs)


def written(model: Model) -> bytes | None:
    """The file of a model; None where no file can hold it."""
    try:
        return write_model(model)
    except (BridgeError, ValueError, TypeError, OverflowError):
        return None


def _apart(case: Case, a: Answer, b: Answer) -> str:
    if not a.stage == b.stage == "done":
        return ""
    return difference(a.outputs, b.outputs, case.outcome.quantised)


def _divided(case: Case, model: Model) -> bool:
    """Whether two of LiteRT's sets of kernels are as far apart as we are from the nearest."""
    names = ("default", "optimized", "reference")
    done = [case.answers[each] for each in names if case.answers[each].stage == "done"]
    ours = severity(case.least())
    own = [_apart(case, a, b) for a in done for b in done if a is not b]
    return max(map(severity, own), default=0) >= ours


def _grown(case: Case, model: Model) -> bool:
    """Whether LiteRT's own result changes as much when what it is given changes in the last bit."""
    content = written(repairs.nudged(model))
    if content is None:
        return False
    ours = severity(case.least())
    for kernels in ("default", "reference"):
        before = case.answers[kernels]
        question = Question(
            content, case.seed, kernels, seconds=ASKED_SECONDS, tame=int(Tame.NUDGED)
        )
        if severity(_apart(case, before, case.litert.ask(question))) >= ours:
            return True
    return False


def _cancelled(case: Case, model: Model) -> bool:
    """Whether floats differ by less than the last bits of numbers of a usual size."""
    for name in ("default", "optimized", "reference"):
        wanted = case.answers[name].outputs
        pairs = list(zip(case.outcome.outputs, wanted, strict=False))
        if case.answers[name].stage == "done" and all(_is_near(a, b) for a, b in pairs):
            return True
    return False


def _is_near(got: Array, want: Array) -> bool:
    if got.dtype != np.float32 or want.dtype != np.float32 or got.shape != want.shape:
        return got.shape == want.shape and bool((got == want).all())
    return bool(np.allclose(got, want, rtol=RTOL, atol=_LAST_BITS, equal_nan=True))


def _lacks_the_tenth(case: Case, model: Model) -> bool:
    """Whether positions are those of LiteRT, but for the tenth that MediaPipe adds to floats, and
    what operators make of them, each alone."""
    want, names = case.answers["default"].outputs, [name for name, _ in makers(case.content)]
    if _WITH_TENTHS not in names or len(want) != len(case.outcome.outputs):
        return False
    pairs = zip(case.outcome.outputs, want, strict=True)
    return all(_is_near(_without_the_tenth(a, b), b) for a, b in pairs) or _each_is_close(
        case, model
    )


def _are_pointers(case: Case, model: Model) -> bool:
    """Whether LiteRT makes strings that are neither in the file nor fed."""
    known = (case.content, *TEXTS)
    return any(
        isinstance(text, bytes) and text != b"" and not any(text in each for each in known)
        for answer in case.answers.values()
        for output in answer.outputs
        if output.dtype.kind in "OS"
        for text in output.reshape(-1)
    )


def _is_sliced(case: Case, model: Model) -> bool:
    """Whether the results that differ are of slices with an ellipsis or new axes, without elements
    or of more than 32 dimensions, and are what numpy's own indexing gives."""
    graph, want = model.subgraphs[0], case.answers["default"].outputs
    pairs = list(zip(graph.outputs, case.outcome.outputs, want, strict=False))
    apart = {index for index, got, wanted in pairs if difference([got], [wanted], [False])}
    makers_of = {op.outputs[0]: op for op in graph.operators if len(op.outputs) == 1}
    return bool(apart) and all(
        index in makers_of and _is_numpys(case, makers_of[index]) for index in apart
    )


def _is_numpys(case: Case, op: Operator) -> bool:
    options, read = op.options, [index for index in op.inputs if index is not None]
    if not isinstance(options, StridedSliceOptions) or len(read) != 4:
        return False
    outcome = run(case.content, case.seed, (*read, *op.outputs))
    if outcome.stage != "done":
        return False
    data, *lists, made = outcome.outputs
    if len({each.size for each in lists}) > 1:
        return False
    plain = not (options.ellipsis_mask or options.new_axis_mask)
    if made.size and plain and data.ndim <= _MASK_BITS:
        return False
    index = tuple(
        _index(options, place, [int(each) for each in triple])
        for place, triple in enumerate(zip(*lists, strict=True))
    )
    if index.count(...) > 1:
        return False
    return bool(np.array_equal(data[index], made, equal_nan=data.dtype.kind == "f"))


def _index(options: StridedSliceOptions, place: int, triple: list[int]) -> object:
    """What stands at a place between the brackets of numpy's indexing."""
    begin, end, stride = triple
    bit = 1 << place
    if options.ellipsis_mask & bit:
        return ...
    if options.new_axis_mask & bit:
        return None
    if options.shrink_axis_mask & bit:
        return begin
    first = None if options.begin_mask & bit else begin
    last = None if options.end_mask & bit else begin + end if options.offset else end
    return slice(first, last, stride)


def _is_rotated_in_part(case: Case, model: Model) -> bool:
    """Whether each element of a rotation of more than three dimensions is in LiteRT either the one
    that is right, or the one that was there."""
    for name, inputs, outputs in _operators(model):
        if name != "aeq.hadamard_rotation" or len(inputs) != 1 or len(outputs) != 1:
            continue
        outcome = run(case.content, case.seed, (*inputs, *outputs))
        question = Question(case.content, case.seed, "default", 0, ASKED_SECONDS, tuple(outputs))
        answer = case.litert.ask(question)
        if not outcome.stage == answer.stage == "done" or outcome.outputs[0].ndim < 4:
            continue
        given, right = (each.reshape(-1) for each in outcome.outputs)
        found = answer.outputs[0].reshape(-1)[: right.size]
        near: dict[str, Any] = {"atol": 1e-5, "equal_nan": True}
        same = [np.isclose(found, each[: found.size], **near) for each in (given, right)]
        return bool(np.logical_or(*same).all())
    return False


def _operators(model: Model) -> list[tuple[str, list[int], list[int]]]:
    """Name, inputs and outputs of the operators of the main graph."""
    return [
        (name_of(model, op), [i for i in op.inputs if i is not None], list(op.outputs))
        for op in model.subgraphs[0].operators
    ]


def _each_is_close(case: Case, model: Model) -> bool:
    """Whether each operator alone makes what LiteRT's makes of the same values: a difference of one
    quantum or in the last bits has grown on the way."""
    made = makers(case.content)
    if not 2 <= len(made) <= _MANY or len(model.subgraphs) > 1:
        return False
    graph = model.subgraphs[0]
    indices = {i for op in graph.operators for i in op.inputs if i is not None}
    indices |= {index for _, outputs in made for index in outputs}
    variable = [i for i in indices if data_of(model, graph.tensors[i]) is None]
    for kernels in ("reference", "optimized", "default"):
        question = Question(
            case.content, case.seed, kernels, 0, ASKED_SECONDS, tuple(sorted(variable))
        )
        answer = case.litert.ask(question)
        if answer.stage == "done":
            values = dict(zip(sorted(variable), answer.outputs, strict=True))
            if all(_is_alone_close(case, model, op, values) for op in graph.operators):
                return True
    return False


def _is_alone_close(case: Case, model: Model, op: Operator, values: dict[int, Array]) -> bool:
    read = tuple(dict.fromkeys(i for i in op.inputs if i in values))
    if any(model.subgraphs[0].tensors[index].is_variable for index in read):
        return False
    alone = with_graph(model, 0, operators=(op,), inputs=read, outputs=op.outputs)
    content = written(replace(alone, signature_defs=()))
    if content is None:
        return False
    shapes = [(place, values[index].shape) for place, index in enumerate(read)]
    outcome = run(content, case.seed, shapes=shapes, values={i: values[i] for i in read})
    if outcome.stage != "done":
        return False
    made, wanted = outcome.outputs, [values[index] for index in op.outputs]
    if name_of(model, op) == _WITH_TENTHS:
        made = tuple(map(_without_the_tenth, made, wanted))
    return is_close(difference(made, wanted, outcome.quantised))


def _without_the_tenth(made: Array, wanted: Array) -> Array:
    """Positions as LiteRT has them, where it has the same."""
    alike = made.shape == wanted.shape and made.dtype.kind == "f"
    return np.floor(made) if alike and np.array_equal(np.floor(made), wanted) else made


def _declares_a_variable(case: Case, model: Model) -> bool:
    """Whether all results that differ come from a READ_VARIABLE that declares another shape than
    the variable has, and where they are its own, whether LiteRT's has the shape declared."""
    graph = model.subgraphs[0]
    reads = tuple(made[0] for name, _, made in _operators(model) if name == "READ_VARIABLE")
    found = run(case.content, case.seed, reads) if reads else None
    if found is None or found.stage != "done":
        return False
    shapes = {index: each.shape for index, each in zip(reads, found.outputs, strict=True)}
    said = {index: graph.tensors[index].shape for index in reads}
    wrong = {index for index in reads if shapes[index] != said[index]}
    behind = _behind(model, wrong)
    return any(
        all(
            index in behind and (index not in wrong or want.shape == said[index])
            for index, got, want in zip(graph.outputs, case.outcome.outputs, answer, strict=False)
            if difference([got], [want], [False])
        )
        for answer in _answers(case)
        if wrong
    )


def _answers(case: Case) -> Iterator[tuple[Array, ...]]:
    return (each.outputs for each in case.answers.values() if each.stage == "done")


def _behind(model: Model, tensors: set[int]) -> set[int]:
    """Tensors of the main graph that `tensors` go into; a value that a variable is given goes into
    all that is read of it."""
    behind, size = set(tensors), -1
    while size != len(behind):
        size = len(behind)
        for _, inputs, outputs in _operators(model):
            if behind & set(inputs):
                behind |= set(outputs or inputs[:1])
    return behind


def _only_handles(case: Case, model: Model) -> bool:
    """Whether nothing differs but handles of variables, of which LiteRT makes no array."""
    graph = model.subgraphs[0]
    return any(
        all(
            graph.tensors[index].type in _HANDLES
            for index, got, want in zip(graph.outputs, case.outcome.outputs, answer, strict=False)
            if difference([got], [want], [False])
        )
        for answer in _answers(case)
    )


def _shifts_too_far(case: Case, model: Model) -> bool:
    """Whether LiteRT's quotients of codes differ only where its last shift is by 32 bits and more,
    of the operator DIV whose results differ first."""
    graph = model.subgraphs[0]
    for op in graph.operators:
        if name_of(model, op) == "DIV" and len(op.inputs) == 2 and None not in op.inputs:
            indices = (*op.inputs, *op.outputs)
            constant = {i: values_of(model, graph.tensors[i]) for i in indices if i is not None}
            asked = tuple(i for i, values in constant.items() if values is None)
            outcome = run(case.content, case.seed, asked)
            question = Question(case.content, case.seed, "reference", 0, ASKED_SECONDS, asked)
            answer = case.litert.ask(question)
            if not outcome.stage == answer.stage == "done":
                return False
            (*_, got), (*_, want) = outcome.outputs, answer.outputs
            far = _far_shifts(
                model, op, {**constant, **dict(zip(asked, answer.outputs, strict=True))}
            )
            apart = got != want
            if apart.any():
                return far is not None and bool(np.broadcast_to(far, got.shape)[apart].all())
    return False


def _far_shifts(model: Model, op: Operator, values: Mapping[int | None, Any]) -> Array | None:
    """Where a quotient of codes is shifted to the right by more than 31 bits."""
    tensors = [
        model.subgraphs[0].tensors[index]
        for index in (*op.inputs, *op.outputs)
        if index is not None
    ]
    given = [each.quantization for each in tensors]
    if any(each is None or each.scale is None or each.zero_point is None for each in given):
        return None
    scales = [float(each.scale[0]) for each in given if each and each.scale is not None]
    codes = [
        values[index].reshape(tensor.shape).astype(np.int64)
        - int(tensor.quantization.zero_point[0])
        for index, tensor in zip(op.inputs, tensors[:2], strict=True)
    ]
    dividend, divisor = np.where(codes[1] < 0, -codes[0], codes[0]), np.abs(codes[1])
    headroom = leading_zeros(np.where(dividend < 0, ~dividend, dividend)) - 1
    shift = quantize_multiplier(scales[0] / (scales[1] * scales[2]))[1]
    return np.asarray(reciprocal(divisor, 31)[1] + headroom - shift > 31)


def _unpools_elsewhere(case: Case, model: Model) -> bool:
    """Whether cells are unpooled to places that no pooling gave them, which the numpy kernel
    refuses."""
    if not any(name == "MaxUnpooling2D" for name, _, _ in _operators(model)):
        return False
    numpy = run(case.content, case.seed, providers=[])
    return (
        numpy.stage == "invoke" and "MaxUnpooling2D" in numpy.error and "a cell at" in numpy.error
    )


def _wraps_squares(case: Case, model: Model) -> bool:
    """Whether rows of so many codes are normalised that the sum of their squares may pass 32 bits:
    LiteRT's results are the lowest, the middle and the highest code then."""
    if [name for name, _, _ in _operators(model)] != ["L2_NORMALIZATION"]:
        return False
    (want,) = case.answers["default"].outputs
    info = np.iinfo(want.dtype) if want.dtype.itemsize == 1 and want.dtype.kind in "iu" else None
    if info is None or want.ndim < 1 or want.shape[-1] * 255**2 < 2**31:
        return False
    codes = (info.min, (info.min + info.max + 1) // 2, info.max)
    return bool(np.isin(want, np.array(codes, want.dtype)).all())


SIGNS: dict[str, Callable[[Case, Model], bool]] = {
    "strings that nobody gave": _are_pointers,
    "a declared shape of a variable": _declares_a_variable,
    "handles as results": _only_handles,
    "quotients shifted by 32 bits and more": _shifts_too_far,
    "sums of squares beyond 32 bits": _wraps_squares,
    "positions that no pooling made": _unpools_elsewhere,
    "positions without MediaPipe's tenth": _lacks_the_tenth,
    "ellipsis, new axes, offset and nothing of a slice": _is_sliced,
    "a rotation of more than three dimensions": _is_rotated_in_part,
    "the last bits of what is left": _cancelled,
    "the last bits, grown": _grown,
    "quanta, grown": _each_is_close,
    "LiteRT's kernels differ as much": _divided,
}
