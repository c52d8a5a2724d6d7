"""`AudioClassifier`: windows of clips and of streams."""

from __future__ import annotations

import numpy as np
import pytest

from tests.one_op import Node, T, graph_model
from tests.prediction.models import described
from tests.test_tasks import base
from tflite_ort import ModelError, tasks
from tflite_ort.schema import Op, SoftmaxOptions
from tflite_ort.schema.file.model_metadata import AudioProperties, Content, TensorMetadata


def sound_model() -> bytes:
    """Classes of 1000 samples: softmax of the first five."""
    tensors = {
        "sound": T((1000,)),
        "shape": T.constant(np.array([1, 1000], np.int32)),
        "row": T((1, 1000)),
        "w": T.constant(np.eye(5, 1000, dtype=np.float32) * 9),
        "f": T((1, 5)),
        "y": T((1, 5)),
    }
    nodes = [
        Node(Op.RESHAPE, ["sound", "shape"], ["row"]),
        Node(Op.FULLY_CONNECTED, ["row", "w", None], ["f"]),
        Node(Op.SOFTMAX, ["f"], ["y"], SoftmaxOptions(1.0)),
    ]
    return graph_model(tensors, nodes, ["y"])


def test_sound_is_heard_window_by_window() -> None:
    samples = np.zeros(2100, np.float32)
    samples[[2, 1003, 2004]] = 1
    clip = tasks.AudioData.create_from_array(samples, 16_000)
    make = tasks.AudioClassifier.create_from_options
    options = tasks.AudioClassifierOptions(base(sound_model()), max_results=1)
    heard = make(options).classify(clip)
    best = [each.classifications[0].categories[0].index for each in heard]
    assert best == [2, 3, 4]
    assert [each.timestamp_ms for each in heard] == [0, 62, 125]
    assert make(options).classify([clip, clip]) == [heard, heard]
    answers: list[int | None] = []
    options = tasks.AudioClassifierOptions(
        base(sound_model()),
        tasks.audio.RunningMode.AUDIO_STREAM,
        result_callback=lambda result, _: answers.append(
            result.classifications[0].categories[0].index
        ),
    )
    stream = make(options)
    for number, block in enumerate(np.split(samples, 3)):
        stream.classify_async(tasks.AudioData.create_from_array(block, 16_000), number)
    assert answers == [2, 3]
    with pytest.raises(ValueError, match="audio clips mode"):
        stream.classify(clip)


def test_a_rate_of_sound_that_nothing_has() -> None:
    """A clip of a second would become 34 GB."""
    properties = AudioProperties(sample_rate=0xFFFFFFFF, channels=1)
    sound = TensorMetadata(name="sound", content=Content(content_properties=properties))
    content = described(sound_model(), sound, [TensorMetadata(name="y")], {})
    with pytest.raises(ModelError, match="sound at 4294967295 Hz"):
        tasks.AudioClassifier.create_from_options(tasks.AudioClassifierOptions(base(content)))
