"""The outputs of a classifier: their names and labels, and which scores count."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.metadata import Metadata, TensorDescription
from tflite_ort.schema import ModelError
from tflite_ort.schema.file.model_metadata import (
    AssociatedFileType,
    ScoreCalibrationOptions,
    ScoreThresholdingOptions,
    ScoreTransformationType,
)
from tflite_ort.tasks.containers import Classifications
from tflite_ort.tasks.detectors import Choice

Array = npt.NDArray[Any]

_LEAST_LOGARITHM = 1e-16


@dataclass(frozen=True, slots=True)
class Calibration:
    """How scores become others: by a sigmoid of each class.

    Args:
        rows: by class scale, slope, offset and the least score, float32 [N, 4]; NaN of a class that
            has no sigmoid.
        default: the score of such a class, and of one below the least score.
    """

    rows: Array
    kind: ScoreTransformationType
    default: float

    @classmethod
    def read(cls, text: str, options: ScoreCalibrationOptions) -> Calibration:
        """Out of a file with a line for each class.

        Raises:
            ModelError: a line is none.
        """
        rows = [_row(line) for line in text.split("\n")]
        kind = options.score_transformation
        return cls(np.array(rows, np.float32), kind, options.default_score)

    def __call__(self, scores: Array) -> Array:
        """The calibrated scores, of scores by class.

        Raises:
            ModelError: there are not so many sigmoids.
        """
        if len(self.rows) != len(scores):
            raise ModelError(f"{len(self.rows)} sigmoids calibrate {len(scores)} scores")
        scale, slope, offset, least = self.rows.T
        with np.errstate(all="ignore"):  # of numbers that a file makes up
            where = self._transformed(scores) * slope + offset
            part = np.exp(-np.abs(where.astype(np.float64)))
            sigmoid = np.where(where >= 0, 1, part) / (1 + part)
            made = np.clip(scale * sigmoid, 0, scale).astype(np.float32)
        return np.where(np.isnan(scale) | (scores < least), np.float32(self.default), made)

    def _transformed(self, scores: Array) -> Array:
        if self.kind is ScoreTransformationType.IDENTITY:
            return scores
        logarithm = np.log(np.maximum(scores, _LEAST_LOGARITHM), dtype=np.float32)
        if self.kind is ScoreTransformationType.LOG:
            return logarithm
        other = np.log(np.maximum(1 - scores, _LEAST_LOGARITHM), dtype=np.float32)
        return np.asarray(logarithm - other)


def _row(line: str) -> list[float]:
    if not line:
        return [math.nan] * 4
    try:
        numbers = [float(part) for part in line.split(",")]
    except ValueError as error:
        raise ModelError(f"a line of the calibration of scores: {error}") from error
    if len(numbers) not in (3, 4) or not numbers[0] >= 0:
        raise ModelError(f"a line of the calibration of scores is {line[:100]!r}")
    return numbers if len(numbers) == 4 else [*numbers, -math.inf]


@dataclass(frozen=True, slots=True)
class Head:
    """An output of a classifier.

    Args:
        number: among the outputs.
        name: None where nothing says one.
        least: the score that counts at least, where the caller asks for none; None for any.
    """

    number: int
    name: str | None = None
    labels: Sequence[str] = ()
    least: float | None = None
    calibration: Calibration | None = None

    def found(
        self, scores: Array, choice: Choice, threshold: float | None, classes: Array | None = None
    ) -> Classifications:
        """The classes that are to be given, best first.

        Args:
            scores: of the classes in order, or of `classes`, the best one first.
            threshold: the score that counts at least; None as the model says.
        """
        if self.calibration is not None:
            by_class = np.empty_like(scores)
            by_class[slice(None) if classes is None else classes] = scores
            scores, classes = self.calibration(by_class), None
        if classes is None:
            classes = np.argsort(-scores, kind="stable")
            scores = scores[classes]
        least = self.least if threshold is None else threshold
        if least is not None:
            counting = scores >= np.float32(least)
            scores, classes = scores[counting], classes[counting]
        pairs = zip(classes.tolist(), scores.tolist(), strict=True)
        categories = [choice.category(*pair) for pair in pairs]
        given = [each for each in categories if each is not None]
        return Classifications(given[: choice.most], self.number, self.name)


def heads_of(metadata: Metadata, count: int, labels: Sequence[str] = ()) -> list[Head]:
    """The outputs of a classifier.

    Args:
        count: how many there are.
        labels: of the only one, where the metadata have none for it.

    Raises:
        ModelError: what the metadata say of scores is damaged.
    """
    if len(metadata.outputs) != count:
        return [Head(number, labels=labels if count == 1 else ()) for number in range(count)]
    heads = [_head(*each, metadata) for each in enumerate(metadata.outputs)]
    if count == 1 and labels:
        (head,) = heads
        return [Head(0, head.name, labels, head.least, head.calibration)]
    return heads


def _head(number: int, told: TensorDescription, metadata: Metadata) -> Head:
    least, calibration = None, None
    for unit in told.table.process_units:
        match unit.options:
            case ScoreThresholdingOptions() as options:
                least = options.global_score_threshold
            case ScoreCalibrationOptions() as options:
                calibration = Calibration.read(_calibration_text(told, metadata), options)
    return Head(number, told.name or None, told.labels, least, calibration)


def _calibration_text(told: TensorDescription, metadata: Metadata) -> str:
    wanted = AssociatedFileType.TENSOR_AXIS_SCORE_CALIBRATION
    names = [each.name for each in told.table.associated_files if each.type is wanted]
    if not names or names[0] not in metadata.files:
        raise ModelError("the metadata calibrate scores, and the file for that is missing")
    return metadata.text(names[0])
