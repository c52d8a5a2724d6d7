"""TensorFlow's optimizers on what their variables hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.flex.pooling import widened
from tflite_ort.fallback_kernels.flex.rest import refuse_rest
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, ModelError, OperatorView
from tflite_ort.schema.shapes.registry import shown
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.optimizers import DENSE, SPARSE

View = OperatorView[Any]


def of_values(op: View) -> None:
    """What makes an operator ready that has the values of its variables."""
    if not op.origin:
        types = ", ".join(tensor.type.name for tensor in op.present_inputs())
        raise ModelError(f"{op.label}: inputs of {types} are not computed here; see docs/flex.md")


def _given(op: View, inputs: Inputs) -> dict[str, Array]:
    """The inputs by their names, in the type that is computed in."""
    wide = widened(inputs[0]).dtype
    pairs = zip(op.names, inputs, strict=True)
    return {name: array if name == "indices" else array.astype(wide) for name, array in pairs}


@flex_kernel(*DENSE, state=of_values)
def step(op: View, inputs: Inputs, state: State) -> Outputs:
    """What the variables are after a step."""
    with np.errstate(all="ignore"):
        found = DENSE[str(op.name).removeprefix("Flex")](
            np, _given(op, inputs), node_of(op).attributes
        )
    return tuple(np.asarray(each).astype(inputs[0].dtype, copy=False) for each in found)


@flex_kernel(*SPARSE, state=of_values)
def step_of_rows(op: View, inputs: Inputs, state: State) -> Outputs:
    """What the variables are after a step of some rows. A row that comes twice is changed twice,
    one after the other."""
    given, compute = _given(op, inputs), SPARSE[str(op.name).removeprefix("Flex")]
    rows, count = given.pop("indices").reshape(-1), len(op.outputs)
    names, dtype = op.names[:count], inputs[0].dtype
    if rows.size and not (rows.min() >= 0 and rows.max() < len(inputs[0])):
        raise KernelError(f"rows {shown(rows)} of {len(inputs[0])}")
    values = {name: given[name].copy() for name in names}
    for turn in _turns(rows):
        some = {name: values[name][rows[turn]] for name in names}
        with np.errstate(all="ignore"):
            found = compute(
                np, {**given, **some, "grad": given["grad"][turn]}, node_of(op).attributes
            )
        for name, each in zip(names, found, strict=True):
            values[name][rows[turn]] = each.astype(dtype)
    return tuple(values[name].astype(dtype, copy=False) for name in names)


def _turns(rows: Array) -> list[Array]:
    """Places of `rows` in turns: a row comes in each turn once at most, and in its order."""
    order = np.argsort(rows, kind="stable")
    starts = np.flatnonzero(np.diff(rows[order], prepend=-1))
    sizes = np.diff(starts, append=len(rows))
    number = np.arange(len(rows)) - np.repeat(starts, sizes)
    return [order[number == turn] for turn in range(int(sizes.max(initial=0)))]


refuse_rest("optimizers")
