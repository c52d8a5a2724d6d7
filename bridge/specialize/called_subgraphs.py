"""Operators that call subgraphs, with these specialised for the shapes that reach them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Any

from tflite_ort.base.optional import late
from tflite_ort.base.records import replace
from tflite_ort.schema import ModelError, Op, OperatorView, Specialized, TensorType, TensorView
from tflite_ort.schema.file.flow import called_subgraphs
from tflite_ort.schema.values.sizes import is_known
from tflite_ort.schema.values.view import VariableKey
from tflite_ort.specialize.resources import Resources, same_size, wider
from tflite_ort.state import initial_value

with late:
    from tflite_ort.schema.loops import loop_rows, trip_count

Views = Sequence[TensorView]
# Specialises a subgraph for what the caller gives it: None for one that it gives nothing.
Enter = Callable[[int, Views | None], Specialized]

# What an operator of a branch gives on is its inputs without the first one.
_SELECTORS = {Op.IF: TensorType.BOOL, Op.STABLEHLO_CASE: TensorType.INT32}
# Their kernels are given a function for each subgraph.
CALLERS = frozenset({*_SELECTORS, Op.WHILE, Op.CALL_ONCE})
# These call a subgraph on single elements: it says which function of two numbers is meant.
REGIONS = frozenset({Op.STABLEHLO_REDUCE_WINDOW, Op.STABLEHLO_SCATTER})


def is_caller(op: OperatorView[Any]) -> bool:
    """Whether `op` calls subgraphs."""
    if op.custom_code is not None:
        return False
    return op.op in CALLERS or any(called_subgraphs(op.options))


def with_bodies(op: OperatorView[Any], resources: Resources, enter: Enter) -> OperatorView[Any]:
    """`op` with the subgraphs that it calls, the shapes that they make, and as further inputs the
    variables that they use.

    Raises:
        ModelError: a subgraph does not take or give what the operator does.
    """
    indices = [index for _, index in called_subgraphs(op.options)]
    if not indices:
        raise ModelError(f"{op.label} names no subgraph")
    if op.op in REGIONS:
        return replace(op, bodies=tuple(enter(index, None) for index in indices))
    if op.op is Op.WHILE:
        op, bodies = _loop(op, indices, resources, enter)
    elif op.op in _SELECTORS:
        op, bodies = _branches(op, indices, resources, enter)
    else:
        # What runs once is given nothing, and gives nothing.
        taken, made = (0, 0) if op.op is Op.CALL_ONCE else (len(op.inputs), len(op.outputs))
        if (taken, made) != (len(op.inputs), len(op.outputs)):
            raise ModelError(f"{op.label} takes and gives nothing, but the file names tensors")
        bodies = [enter(index, op.present_inputs()) for index in indices]
        for body in bodies:
            _check_arity(op, body, taken, made)
    return _with_variables(*_without_handles(op, bodies, resources), resources)


def _check_arity(op: OperatorView[Any], body: Specialized, inputs: int, outputs: int) -> None:
    taken, made = len(body.inputs), len(body.outputs)
    if (taken, made) != (inputs, outputs):
        raise ModelError(
            f"{op.label}: subgraph {body.subgraph} maps {taken} tensors to {made}, expected "
            f"{inputs} to {outputs}"
        )


def _check_types(op: OperatorView[Any], body: Specialized, outputs: Views) -> None:
    for index, out in zip(body.outputs, outputs, strict=True):
        if body.tensors[index].type is not out.type:
            raise ModelError(
                f"{op.label}: subgraph {body.subgraph} makes {body.tensors[index].type.name}, "
                f"expected {out.type.name}"
            )


def _branches(
    op: OperatorView[Any], indices: Sequence[int], resources: Resources, enter: Enter
) -> tuple[OperatorView[Any], list[Specialized]]:
    """Outputs of the shape that all branches make; sizes in which they differ are unknown."""
    wanted = _SELECTORS[op.op]
    selector, given = next(iter(op.present_inputs()), None), op.present_inputs()[1:]
    if selector is None or selector.type is not wanted:
        raise ModelError(f"{op.label} needs a {wanted.name} first")
    if is_known(*selector.shape) and selector.ranked and set(selector.shape) - {1}:
        raise ModelError(f"{op.label} is told where to go by shape {list(selector.shape)}")
    bodies = [enter(index, given) for index in indices]
    results = []
    for body in bodies:
        _check_arity(op, body, len(given), len(op.outputs))
        _check_types(op, body, op.outputs)
        results.append([body.tensors[index] for index in body.outputs])
    shapes = (reduce(wider, made) for made in zip(*results, strict=True))
    return replace(op, outputs=tuple(map(_shaped, op.outputs, shapes))), bodies


def _loop(
    op: OperatorView[Any], indices: Sequence[int], resources: Resources, enter: Enter
) -> tuple[OperatorView[Any], list[Specialized]]:
    """The state keeps the sizes, and the constants, that no iteration changes."""
    given = op.present_inputs()
    condition, body = indices
    if condition == body:
        raise ModelError(f"{op.label}: subgraph {body} is condition and body at once")
    state, varying = given, list[int]()
    if any(each.is_constant or each.sizes is not None for each in given):
        first = enter(body, given)
        _check_arity(op, first, len(given), len(given))
        state = [
            each if taken == made else replace(each, constant=None, sizes=None)
            for each, taken, made in zip(given, first.inputs, first.outputs, strict=True)
        ]
    while True:
        bodies = [enter(condition, state), enter(body, state)]
        _check_arity(op, bodies[0], len(given), 1)
        _check_arity(op, bodies[1], len(given), len(given))
        _check_arity(op, bodies[1], len(given), len(op.outputs))
        _check_types(op, bodies[1], state)
        _check_types(op, bodies[1], op.outputs)
        following = _following(state, bodies[1], _lists(given, bodies), varying)
        if all(a is b for a, b in zip(state, following, strict=True)):
            break
        state = following
    test = bodies[0].tensors[bodies[0].outputs[0]]
    if test.type is not TensorType.BOOL or (not test.dynamic and test.shape not in ((), (1,))):
        raise ModelError(f"{op.label} ends by {test.type.name} {list(test.shape)}, expected a BOOL")
    return replace(op, outputs=tuple(map(_shaped, op.outputs, state))), bodies


def _lists(given: Views, bodies: Sequence[Specialized]) -> set[int]:
    """The places of a loop's state of which an iteration only sets one row.

    Where an input says how many iterations there are, one that sets a row that is not there fails.
    """
    condition, body = bodies
    loop = trip_count.counted(given, condition, body)
    if loop is None:
        limit = trip_count.bounded(given, condition, body)
        loop = None if limit is None else loop_rows.of_unknown_count(limit, body)
    if loop is None:
        return set()
    return {
        place
        for place in range(len(given))
        if loop_rows.rows_written(place, body, loop) is not None
    }


def _following(
    state: Views, body: Specialized, lists: set[int], varying: list[int]
) -> list[TensorView]:
    """What the next iteration takes: `state` where this one has kept it, else a wider one.

    Args:
        lists: the places that keep their shape.
        varying: the unknown sizes that stand for another number in each iteration.
    """
    following, same = [], partial(_same_or_varying, varying)
    rows = zip(state, body.inputs, body.outputs, strict=True)
    for place, (given, taken, made) in enumerate(rows):
        if taken == made:
            following.append(given)
            continue
        result = wider(given, given if place in lists else body.tensors[made], same)
        sizes = [a for a, b in zip(result.shape, given.shape, strict=True) if a is not b]
        varying += sizes
        known = given.is_constant or given.sizes is not None
        kept = not known and result.ranked == given.ranked and not sizes
        following.append(given if kept else replace(result, constant=None, sizes=None))
    return following


def _same_or_varying(varying: Sequence[int], one: int, other: int) -> bool:
    return same_size(one, other) or any(one is size for size in varying)


def _shaped(tensor: TensorView, like: TensorView) -> TensorView:
    return replace(tensor, shape=like.shape, ranked=like.ranked)


def _without_handles(
    op: OperatorView[Any], bodies: Sequence[Specialized], resources: Resources
) -> tuple[OperatorView[Any], list[Specialized]]:
    """Only values as inputs and outputs; a handle that a body gives back is known to the caller."""
    known = resources.handles
    for body in bodies:
        if len(body.outputs) != len(op.outputs):
            continue  # a condition
        for out, index in zip(op.outputs, body.outputs, strict=True):
            key = body.handles.get(index)
            if key is not None and known.setdefault(out.index, key) != key:
                raise ModelError(f"{op.label}: which resource {out.name!r} is depends on data")
    inputs = tuple(tensor for tensor in op.present_inputs() if tensor.index not in known)
    outputs = tuple(tensor for tensor in op.outputs if tensor.index not in known)
    return replace(op, inputs=inputs, outputs=outputs), [
        replace(
            body,
            inputs=[index for index in body.inputs if index not in body.handles],
            outputs=[index for index in body.outputs if index not in body.handles],
        )
        for body in bodies
    ]


def _with_variables(
    op: OperatorView[Any], bodies: Sequence[Specialized], resources: Resources
) -> OperatorView[Any]:
    """The variables of all `bodies` as inputs of `op` and as inputs and outputs of each body.

    Those that belong to a body itself are given their first values at each run of `op`: TFLite
    prepares a subgraph anew whenever it is called.
    """
    views: dict[VariableKey, TensorView] = {}
    changed: set[VariableKey] = set()
    for body in bodies:
        for index, key in body.variables.items():
            views.setdefault(key, body.tensors[index])
        changed |= {body.variables[index] for index in body.changed()}
    given = [
        resources.constant(view, initial_value(view))
        if isinstance(key[0], int)
        else resources.place(key, view, is_set=key in changed)
        for key, view in views.items()
    ]
    return replace(
        op,
        inputs=(*op.inputs, *given),
        bodies=tuple(_taking(body, views) for body in bodies),
    )


def _taking(body: Specialized, views: Mapping[VariableKey, TensorView]) -> Specialized:
    """`body` with all of `views` as its last inputs and outputs."""
    own = {key: index for index, key in body.variables.items()}
    tensors = list(body.tensors)
    for key, view in views.items():
        if key not in own:
            own[key] = len(tensors)
            tensors.append(replace(view, index=len(tensors)))
    places = [own[key] for key in views]
    return replace(
        body,
        tensors=tensors,
        inputs=(*body.inputs, *places),
        outputs=(*body.outputs, *places),
        variables={own[key]: key for key in views},
    )
