"""Which tensors stay in a device's memory between the sessions of one delegate."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from tflite_ort.base.records import replace
from tflite_ort.plan.partition import NUMPY, Partition
from tflite_ort.providers.binding import DeviceTensor
from tflite_ort.providers.provider import DeviceMemory


def with_places(
    parts: Sequence[Partition],
    results: Collection[int],
    variables: Collection[int],
    memory_of: Callable[[str], DeviceMemory | None],
) -> list[Partition]:
    """`parts` where what one session makes for another of the same delegate stays on its device;
    what is read elsewhere too is copied to the host's memory beside.

    Args:
        results: tensors that are wanted at the end.
        variables: tensors that any operator may set; they stay in the host's memory.
        memory_of: the memory of a backend's device, None for the host's. Asking may take a session,
            so it is asked only of backends that have something to hand on.
    """
    if len(parts) < 2:
        return list(parts)
    sessions = [part for part in parts if part.backend != NUMPY and _has_known_shapes(part)]
    places = _places(sessions, variables, memory_of)
    if not places:
        return list(parts)
    placed = [_placed(part, places) if part in sessions else part for part in parts]
    read = {t.index for part in placed for t in part.inputs if t.index not in part.places}
    return [_with_copies(part, read.union(results)) for part in placed]


def _places(
    sessions: Sequence[Partition],
    variables: Collection[int],
    memory_of: Callable[[str], DeviceMemory | None],
) -> dict[tuple[str, int], DeviceTensor]:
    """By backend and tensor, what one session makes and another of the backend reads."""
    read: dict[str, set[int]] = {}
    for part in sessions:
        read.setdefault(part.backend, set()).update(tensor.index for tensor in part.inputs)
    places: dict[tuple[str, int], DeviceTensor] = {}
    for part in sessions:
        kept = read[part.backend].difference(variables)
        made = [t.index for t in part.outputs if t.index in kept and t.dtype != np.object_]
        memory = memory_of(part.backend) if made else None
        if memory is not None:
            places.update(((part.backend, index), DeviceTensor(memory)) for index in made)
    return places


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
