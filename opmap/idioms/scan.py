"""A step that is repeated along a sequence: a Scan, or the step itself if there is only one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.onnx_graph import ir

Values = Sequence[ir.Value]
Step = Callable[[Values, Values], tuple[Values, Values]]
_ALONG_TIME = 0


def scan(
    g: Graph,
    step: Step,
    states: Values,
    sequences: Values,
    *,
    single: bool,
    reverse: bool = False,
    types: Sequence[ir.DataType] = (),
) -> tuple[Values, Values]:
    """Repeat `step`: the last states, and the results of all steps stacked along a first axis.

    Args:
        step: takes the states and one slice of every sequence, returns new states and results.
        sequences: their first axis is time.
        single: there is one step.
        reverse: from the last slice to the first; a result has the position of its slice.
        types: of states and sequences; none for float32.
    """
    if single:
        axis = g.ints([_ALONG_TIME])
        slices = [g.op("Squeeze", sequence, axis) for sequence in sequences]
        states, results = step(states, slices)
        return states, [g.op("Unsqueeze", result, axis) for result in results]
    counts: list[int] = []

    def build(arguments: Values) -> Values:
        new, results = step(arguments[: len(states)], arguments[len(states) :])
        counts.append(len(results))
        # A value can be only one output of a graph.
        kept = {id(state) for state in new}
        return [*new, *(g.op("Identity", r) if id(r) in kept else r for r in results)]

    body = g.body(types or [ir.DataType.FLOAT] * len((*states, *sequences)), build)
    made = g.op_multi(
        "Scan",
        *states,
        *sequences,
        outputs=len(states) + counts[0],
        body=body,
        num_scan_inputs=len(sequences),
        scan_input_directions=[1] * len(sequences) if reverse else None,
        scan_output_directions=[1] * counts[0] if reverse else None,
    )
    return made[: len(states)], made[len(states) :]
