"""Classifiers of several outputs, and scores that the metadata calibrate or leave out.

Scores and names are those that MediaPipe 1.2.3 gives for the same files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tests.one_op import Node, T, graph_model
from tests.prediction.models import described
from tests.test_tasks import base
from tflite_ort import ModelError, tasks
from tflite_ort.schema import FullyConnectedOptions, Op, ReshapeOptions
from tflite_ort.schema.file.model_metadata import (
    AssociatedFile,
    AssociatedFileType,
    AudioProperties,
    ColorSpaceType,
    Content,
    ImageProperties,
    NormalizationOptions,
    ProcessUnit,
    ScoreCalibrationOptions,
    ScoreThresholdingOptions,
    ScoreTransformationType,
    Stats,
    TensorMetadata,
)
from tflite_ort.tasks import audio, vision

_SEED = 3
PICTURE = TensorMetadata(
    name="image",
    content=Content(ImageProperties(ColorSpaceType.RGB)),
    process_units=(ProcessUnit(NormalizationOptions((0.0,), (255.0,))),),
    stats=Stats((1.0,), (0.0,)),
)
SOUND = TensorMetadata(name="audio", content=Content(AudioProperties(16000, 1)))
LINES = "0.9,2.0,-0.5\n\n1.0,-3.0,0.2,0.5\n0.7,1.5,0.1,0.2"


def classifier(
    counts: Sequence[int],
    units: Sequence[Any] = (),
    lines: str | None = None,
    given: TensorMetadata = PICTURE,
) -> bytes:
    """Of each output scores, which random weights make of the pixels or samples.

    Args:
        units: of the first output.
        lines: how its scores are calibrated.
    """
    rng, size = np.random.default_rng(_SEED), 300 if given is PICTURE else 1000
    tensors = {
        "x": T((1, 10, 10, 3)) if given is PICTURE else T((1, size)),
        "shape": T.constant(np.array([1, size], np.int32)),
        "row": T((1, size)),
    }
    nodes = [Node(Op.RESHAPE, ["x", "shape"], ["row"], ReshapeOptions())]
    made, files = [], dict[str, str]()
    for head, count in enumerate(counts):
        weights = (rng.normal(size=(count, size)) / 8).astype(np.float32)
        tensors |= {f"w{head}": T.constant(weights), f"z{head}": T((1, count))}
        tensors |= {f"y{head}": T((1, count))}
        dense = FullyConnectedOptions()
        nodes += [
            Node(Op.FULLY_CONNECTED, ["row", f"w{head}", None], [f"z{head}"], dense),
            Node(Op.LOGISTIC, [f"z{head}"], [f"y{head}"]),
        ]
        files[f"l{head}.txt"] = "\n".join(f"c{head}_{number}" for number in range(count))
        types = {f"l{head}.txt": AssociatedFileType.TENSOR_AXIS_LABELS}
        if lines is not None and not head:
            files["lines.txt"] = lines
            types["lines.txt"] = AssociatedFileType.TENSOR_AXIS_SCORE_CALIBRATION
        named = tuple(AssociatedFile(name=name, type=kind) for name, kind in types.items())
        of_head = tuple(ProcessUnit(unit) for unit in units) if not head else ()
        made.append(TensorMetadata(name=f"h{head}", associated_files=named, process_units=of_head))
    names = [f"y{head}" for head in range(len(counts))]
    return described(graph_model(tensors, nodes, names), given, made, files)


def picture() -> Any:
    return np.random.default_rng(0).integers(0, 256, (10, 10, 3), np.uint8)


def calibrated(kind: int) -> bytes:
    options = ScoreCalibrationOptions(ScoreTransformationType(kind), 0.25)
    return classifier((4, 3), [options], LINES)


MODELS: Mapping[str, Any] = {
    "two": lambda: classifier((5, 3)),
    "least": lambda: classifier((4,), [ScoreThresholdingOptions(0.5)]),
    "one class": lambda: classifier((1,)),
    "identity": lambda: calibrated(0),
    "log": lambda: calibrated(1),
    "inverse": lambda: calibrated(2),
}

# By model and output, the labels and scores.
FOUND: Mapping[str, list[dict[str, float]]] = {
    "two": [
        {"c0_1": 0.856819, "c0_0": 0.795972, "c0_3": 0.700179, "c0_4": 0.685696, "c0_2": 0.287154},
        {"c1_0": 0.854471, "c1_1": 0.53334, "c1_2": 0.532647},
    ],
    "least": [{"c0_1": 0.856819, "c0_0": 0.795972, "c0_3": 0.700179}],
    "one class": [{"c0_0": 0.795972}],
    "identity": [
        {"c0_0": 0.673873, "c0_3": 0.531692, "c0_1": 0.25, "c0_2": 0.25},
        {"c1_1": 0.854471, "c1_0": 0.685696, "c1_2": 0.53334},
    ],
    "log": [
        {"c0_3": 0.275115, "c0_1": 0.25, "c0_2": 0.25, "c0_0": 0.249843},
        {"c1_1": 0.854471, "c1_0": 0.685696, "c1_2": 0.53334},
    ],
    "inverse": [
        {"c0_0": 0.812036, "c0_3": 0.558417, "c0_1": 0.25, "c0_2": 0.25},
        {"c1_1": 0.854471, "c1_0": 0.685696, "c1_2": 0.53334},
    ],
}


def check(found: Any, wanted: Sequence[Mapping[str, float]]) -> None:
    heads = found.classifications
    assert [each.head_index for each in heads] == list(range(len(wanted)))
    assert [each.head_name for each in heads] == [f"h{number}" for number in range(len(wanted))]
    for head, scores in zip(heads, wanted, strict=True):
        assert [each.category_name for each in head.categories] == list(scores)
        made = [each.score for each in head.categories]
        np.testing.assert_allclose(made, list(scores.values()), atol=2e-6)


@pytest.mark.parametrize("name", MODELS)
def test_outputs_are_those_of_mediapipe(name: str) -> None:
    options = vision.ImageClassifierOptions(base(MODELS[name]()))
    with vision.ImageClassifier.create_from_options(options) as task:
        check(task.classify(picture()), FOUND[name])


def test_options_hold_for_each_output() -> None:
    options = vision.ImageClassifierOptions(
        base(MODELS["two"]()), max_results=2, score_threshold=0.6, category_denylist=["c1_0"]
    )
    with vision.ImageClassifier.create_from_options(options) as task:
        first, second = task.classify(picture()).classifications
    assert [each.category_name for each in first.categories] == ["c0_1", "c0_0"]
    assert second.categories == []


def test_a_threshold_stands_over_that_of_the_model() -> None:
    options = vision.ImageClassifierOptions(base(MODELS["least"]()), score_threshold=0.8)
    with vision.ImageClassifier.create_from_options(options) as task:
        (head,) = task.classify(picture()).classifications
    assert [each.category_name for each in head.categories] == ["c0_1"]


def test_sounds() -> None:
    samples = np.random.default_rng(2).normal(size=1500).astype(np.float32) / 4
    options = audio.AudioClassifierOptions(base(classifier((5, 3), given=SOUND)), max_results=2)
    with audio.AudioClassifier.create_from_options(options) as task:
        one, two = task.classify(tasks.AudioData.create_from_array(samples, 16000))
    assert (one.timestamp_ms, two.timestamp_ms) == (0, 62)
    check(one, [{"c0_2": 0.766937, "c0_3": 0.431517}, {"c1_0": 0.793895, "c1_1": 0.59168}])
    check(two, [{"c0_4": 0.689659, "c0_0": 0.622276}, {"c1_1": 0.624642, "c1_2": 0.470186}])


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (None, "file for that is missing"),
        ("1,2\n" * 4, "calibration of scores"),
        ("-1,2,3\n\n\n", "calibration of scores"),
        ("nan,2,3\n\n\n", "calibration of scores"),
        ("a,b,c\n\n\n", "calibration of scores"),
        ("1,2,3", "1 sigmoids calibrate 4 scores"),
    ],
)
def test_calibrations_that_are_none_are_refused(lines: str | None, why: str) -> None:
    units = [ScoreCalibrationOptions(ScoreTransformationType.IDENTITY, 0.0)]
    options = vision.ImageClassifierOptions(base(classifier((4,), units, lines)))
    with pytest.raises(ModelError, match=why):
        vision.ImageClassifier.create_from_options(options).classify(picture())


def test_vectors_have_the_name_of_the_output() -> None:
    options = vision.ImageEmbedderOptions(base(classifier((4,))))
    with vision.ImageEmbedder.create_from_options(options) as task:
        (found,) = task.embed(picture()).embeddings
    assert (found.head_index, found.head_name) == (0, "h0")
    np.testing.assert_allclose(found.embedding[0], 0.795972, atol=2e-6)
