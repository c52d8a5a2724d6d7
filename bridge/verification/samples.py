"""What a verification feeds: arrays of the caller, or random values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.comparison.drawn import random_inputs
from tflite_ort.interpreter.tensor_values import native
from tflite_ort.metadata import Metadata, TensorDescription
from tflite_ort.schema import Budgets, Model, TensorError
from tflite_ort.verification.extraction import tensor_index
from tflite_ort.verification.runtimes import Sample

Given = Mapping[str, npt.ArrayLike] | Mapping[int, npt.ArrayLike]

_LARGEST_PIXEL = 255.0


@dataclass(frozen=True, slots=True)
class Random:
    """Random inputs: floats from the range that the metadata tell, or of pixels after its
    normalisation, else [-1, 1); codes over their whole range.

    Args:
        samples: how many.
        steps: runs one after the other, over which state lasts, of each sample.
        seed: of the first run; every other run has the next one.
    """

    samples: int = 2
    steps: int = 1
    seed: int = 0


RANDOM = Random()


def random_samples(
    details: Sequence[Mapping[str, Any]],
    metadata: Metadata | None,
    random: Random,
    limits: Mapping[int, int] | None = None,
    budgets: Budgets | None = None,
) -> list[Sample]:
    """Random inputs by tensor index, of each run of each sample; `limits` and `budgets` as of
    `random_inputs`."""
    described = () if metadata is None else metadata.inputs
    pairs = zip(details, described, strict=False)
    found = {int(each["index"]): value_range(said) for each, said in pairs}
    ranges = {index: each for index, each in found.items() if each is not None}
    seeds = range(random.seed, random.seed + random.samples * random.steps)
    runs = [random_inputs(details, seed, ranges, limits, budgets) for seed in seeds]
    return [runs[at : at + random.steps] for at in range(0, len(runs), random.steps)]


def value_range(said: TensorDescription) -> tuple[float, float] | None:
    """The real values that an input is made for; None where nothing tells."""
    stats = said.table.stats
    if stats is not None and stats.min and stats.max and min(stats.min) < max(stats.max):
        return float(min(stats.min)), float(max(stats.max))
    if said.mean and said.std and 0 not in said.std:
        edges = [(pixel - m) / s for pixel in (0.0, _LARGEST_PIXEL) for m, s in _pairs(said)]
        return min(edges), max(edges)
    return None


def given_samples(model: Model, given: Sequence[Sequence[Given]]) -> list[Sample]:
    """Arrays by input name or index, of each run of each sample, by index.

    Raises:
        TensorError: an input is missing or has another rank or dtype.
        ExtractionError: there is no such tensor.
    """
    graph = model.subgraphs[0]
    found: list[Sample] = []
    for sample in given:
        runs = []
        for arrays in sample:
            # LiteRT takes the bytes of another byte order as they are.
            run = {tensor_index(graph, name): native(np.asarray(a)) for name, a in arrays.items()}
            if missing := [graph.tensors[i].name for i in graph.inputs if i not in run]:
                raise TensorError(f"nothing given for the inputs {missing}")
            runs.append(run)
        found.append(runs)
    return found


def _pairs(said: TensorDescription) -> Sequence[tuple[float, float]]:
    if len(said.std) == 1:
        return [(mean, said.std[0]) for mean in said.mean]
    return list(zip(said.mean * len(said.std), said.std, strict=False))
