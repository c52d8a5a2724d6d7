"""What a program may do wrong with tasks: errors are typed, and nothing is lost or hangs."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from tests.made_bundles import task
from tests.test_heads import SOUND, classifier
from tests.test_holistic import networks_of
from tests.test_interactive_segmenter import at, segmenter
from tests.test_language_detector import MODELS, detector
from tests.test_tasks import FACES, IMAGE, base
from tflite_ort import ModelError, tasks
from tflite_ort.tasks import audio, text, vision

Mode = vision.RunningMode
WAIT = 20.0  # seconds, of what takes none


def faces(mode: Any = Mode.IMAGE, callback: Any = None) -> vision.FaceDetector:
    options = vision.FaceDetectorOptions(base(FACES), mode, result_callback=callback)
    return vision.FaceDetector.create_from_options(options)


def answered(detector: vision.FaceDetector) -> None:
    """Wait for the callback."""
    assert detector._pending is not None
    detector._pending.exception(WAIT)


def test_times_go_on() -> None:
    with faces(Mode.VIDEO) as detector:
        detector.detect_for_video(IMAGE, 10)
        for wrong in (10, 9, -1, np.int64(3), float("nan"), float("inf")):
            with pytest.raises(ValueError, match=r"monotonically|number of milliseconds"):
                detector.detect_for_video(IMAGE, wrong)
        for wrong in ("11", None):
            with pytest.raises(TypeError):
                detector.detect_for_video(IMAGE, wrong)
        assert detector.detect_for_video(IMAGE, 11).detections


def test_what_a_callback_raises_is_not_lost() -> None:
    times = []

    def callback(result: Any, image: Any, time_ms: int) -> None:
        times.append(time_ms)
        if time_ms == 1:
            raise KeyError("mine")

    detector = faces(Mode.LIVE_STREAM, callback)
    detector.detect_async(IMAGE, 1)
    answered(detector)
    with pytest.raises(KeyError, match="mine"):
        detector.detect_async(IMAGE, 2)
    detector.detect_async(IMAGE, 3)
    detector.close()
    detector.close()
    assert times == [1, 3]
    with pytest.raises(ValueError, match="not running"):
        detector.detect_async(IMAGE, 4)
    detector = faces(Mode.LIVE_STREAM, callback)
    detector.detect_async(IMAGE, 1)
    with pytest.raises(KeyError, match="mine"):
        detector.close()
    detector.close()


def test_a_callback_may_close_its_task() -> None:
    closed = threading.Event()
    made = []

    def callback(result: Any, image: Any, time_ms: int) -> None:
        made[0].close()
        closed.set()

    made.append(faces(Mode.LIVE_STREAM, callback))
    made[0].detect_async(IMAGE, 1)
    assert closed.wait(WAIT)
    made[0].close()


def test_options_of_other_types() -> None:
    with pytest.raises(ValueError, match="is a RunningMode"):
        faces("IMAGE")
    for wrong in ("a text", 5):
        options = vision.FaceDetectorOptions(tasks.BaseOptions(model_asset_buffer=wrong))
        with pytest.raises(ValueError, match="model_asset_buffer is a"):
            vision.FaceDetector.create_from_options(options)
    with pytest.raises(ValueError, match="give one of"):
        vision.FaceDetector.create_from_options(vision.FaceDetectorOptions(tasks.BaseOptions()))


def test_bundles_in_bundles() -> None:
    """One level is read, as the published ones have it; deeper ones hold no models."""
    content = FACES
    for _ in range(2):
        content = task({"inner.task": content})
        faces_of = vision.FaceDetectorOptions(base(content))
        vision.FaceDetector.create_from_options(faces_of).close()
    for _ in range(30):
        content = task({"inner.task": content})
    with pytest.raises(ModelError, match="no model"):
        vision.FaceDetector.create_from_options(vision.FaceDetectorOptions(base(content)))


@pytest.mark.parametrize("wrong", [None, "a.png", np.zeros((4, 4, 3)), np.zeros((0, 4, 3), "u1")])
def test_no_picture(wrong: Any) -> None:
    with faces() as detector, pytest.raises(ValueError, match="a picture is"):
        detector.detect(wrong)
    options = vision.InteractiveSegmenterOptions(base(segmenter(np.eye(3, 4))))
    with vision.InteractiveSegmenter.create_from_options(options) as task_:
        with pytest.raises(ValueError, match="a picture is"):
            task_.segment(wrong, at(0.5, 0.5))
        with pytest.raises(TypeError, match="RegionOfInterest"):
            task_.segment(IMAGE, wrong)


def test_texts_and_sounds_of_other_types() -> None:
    made = text.LanguageDetectorOptions(base(detector(MODELS["lowered"])))
    language = text.LanguageDetector.create_from_options(made)
    for wrong in (None, 5, b"bytes"):
        with pytest.raises(TypeError, match="a text is a str"):
            language.detect(wrong)
    with pytest.raises(UnicodeEncodeError):
        language.detect("\ud800")
    assert language.detect("\0").languages
    options = audio.AudioClassifierOptions(base(classifier((5, 3), given=SOUND)))
    sounds: Any = audio.AudioClassifier.create_from_options(options)
    with pytest.raises(TypeError, match="is an AudioData"):
        sounds.classify(np.zeros(4, np.float32))
    for closed, given in ((language.detect, "a"), (sounds.classify, tasks.AudioData(4))):
        closed.__self__.close()
        closed.__self__.close()
        with pytest.raises(ValueError, match="not running"):
            closed(given)


def test_a_stream_of_sound_as_vectors() -> None:
    found: list[tuple[int, Any]] = []
    options = audio.AudioEmbedderOptions(
        base(classifier((5,), given=SOUND)),
        audio.RunningMode.AUDIO_STREAM,
        result_callback=lambda result, time_ms: found.append((time_ms, result)),
    )
    with audio.AudioEmbedder.create_from_options(options) as embedder:
        samples = tasks.AudioData.create_from_array(np.zeros(1500, np.float32), 16000)
        embedder.embed_async(samples, 5)
        embedder.embed_async(samples, 99)
        with pytest.raises(ValueError, match="monotonically"):
            embedder.embed_async(samples, 98)
        with pytest.raises(ValueError, match="audio clips mode"):
            embedder.embed(samples)
    assert [time_ms for time_ms, _ in found] == [5, 99, 99]
    assert found[0][1].embeddings[0].embedding.shape == (5,)


def test_a_person_in_odd_pictures() -> None:
    options = vision.HolisticLandmarkerOptions(base(task(networks_of())), Mode.VIDEO)
    with vision.HolisticLandmarker.create_from_options(options) as whole:
        for number, shape in enumerate([(1, 1), (120, 160), (9, 400), (400, 9)]):
            found = whole.detect_for_video(np.zeros((*shape, 3), np.uint8), number)
            assert len(found.pose_landmarks) in (0, 33)
    with pytest.raises(ValueError, match="not running"):
        whole.detect_for_video(IMAGE, 9)
    whole.close()


def test_threads_share_a_task() -> None:
    options = vision.InteractiveSegmenterOptions(base(segmenter(np.eye(3, 4))))
    wrong: list[str] = []
    with faces() as detector, vision.InteractiveSegmenter.create_from_options(options) as pointer:
        wanted = detector.detect(IMAGE)

        def work() -> None:
            for _ in range(4):
                if detector.detect(IMAGE) != wanted:
                    wrong.append("faces")
                pointer.segment(IMAGE, at(0.5, 0.5))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join(WAIT)
        assert not any(each.is_alive() for each in threads)
    assert wrong == []
