"""Which tensors stay in a device's memory between the sessions of one delegate."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from tflite_ort.plan.context import PlanContext
from tflite_ort.plan.partition import NUMPY, Partition
from tflite_ort.providers.session import DeviceTensor


def with_places(
    parts: Sequence[Partition],
    results: Collection[int],
    variables: Collection[int],
    context: PlanContext,
) -> list[Partition]:
    """`parts` where what one session makes for another of the same delegate stays on its device;
    what is read elsewhere too is copied to the host's memory beside.

    Args:
        results: tensors that are wanted at the end.
        variables: tensors that any operator may set; they stay in the host's memory.
    """
    sessions = [part for part in parts if part.backend != NUMPY and _has_known_shapes(part)]
    places: dict[tuple[str, int], DeviceTensor] = {}
    for part in sessions:
        same = (each for each in sessions if each.backend == part.backend)
        read = {t.index for each in same for t in each.inputs}.difference(variables)
        for tensor in part.outputs:
            if tensor.index in read and tensor.dtype != np.object_:
                memory = context.device_memory(part.backend)
                if memory is not None:
                    places[part.backend, tensor.index] = DeviceTensor(memory)
    if not places:
        return list(parts)
    placed = [_placed(part, places) if part in sessions else part for part in parts]
    read = {t.index for part in placed for t in part.inputs if t.index not in part.places}
    return [_with_copies(part, read.union(results)) for part in placed]


def _placed(part: Partition, places: dict[tuple[str, int], DeviceTensor]) -> Partition:
    crossing = {tensor.index for tensor in (*part.inputs, *part.outputs)}
    own = {index: place for (name, index), place in places.items() if name == part.backend}
    return replace(part, places={index: own[index] for index in crossing & own.keys()})


def _with_copies(part: Partition, read: Collection[int]) -> Partition:
    return replace(
        part, copies=[t for t in part.outputs if t.index in part.places and t.index in read]
    )


def _has_known_shapes(part: Partition) -> bool:
    return not any(tensor.dynamic for tensor in (*part.inputs, *part.outputs))
