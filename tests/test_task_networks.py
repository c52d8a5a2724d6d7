"""Networks of tasks on providers that cannot load them, or that pass over inputs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.test_tasks import FACES, IMAGE, base
from tflite_ort import DelegateError, DelegateWarning
from tflite_ort.providers.provider import ON_CPU, Provider
from tflite_ort.tasks import network, vision


def test_a_network_that_a_provider_cannot_load_runs_on_the_cpu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The provider stands in for OpenVINO, whose reader knows no GridSample of this version."""
    other, tried = Provider("OpenVINOExecutionProvider"), []
    usual = network.OnnxSession

    def made(model: Any, *, provider: Provider, **options: Any) -> Any:
        tried.append(provider)
        if provider != ON_CPU:
            raise DelegateError("GridSample: " + "no such mode " * 1000)
        return usual(model, provider=provider, **options)

    class Chosen:
        provider = other

    monkeypatch.setattr(network, "OnnxSession", made)
    monkeypatch.setattr(network, "chosen_delegates", lambda *_: [Chosen])
    with pytest.warns(DelegateWarning, match="cannot load the face detector") as warned:
        task = vision.FaceDetector.create_from_options(vision.FaceDetectorOptions(base(FACES)))
    assert tried == [other, ON_CPU]
    assert len(str(warned[0].message)) <= 500
    assert len(task.detect(IMAGE).detections) == 1
    monkeypatch.setattr(network, "chosen_delegates", lambda *_: [])
    monkeypatch.setattr(network, "ON_CPU", other)
    with pytest.raises(DelegateError):
        vision.FaceDetector.create_from_options(vision.FaceDetectorOptions(base(FACES)))


def test_no_input_of_a_network_has_a_value_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenVINO's provider takes such values for constants."""
    models, usual = [], network.OnnxSession

    def made(model: Any, **options: Any) -> Any:
        models.append(model)
        return usual(model, **options)

    monkeypatch.setattr(network, "OnnxSession", made)
    task = vision.FaceDetector.create_from_options(vision.FaceDetectorOptions(base(FACES)))
    (model,) = models
    inputs = {value.name for value in model.graph.input}
    assert inputs == {
        *("image", "roi", "places", "min_score", "min_suppression_threshold", "max_results"),
    }
    assert not inputs & {each.name for each in model.graph.initializer}
    assert len(task._network(IMAGE)["boxes"]) == 1  # the values are given by the task
    assert not len(task._network(IMAGE, min_score=0.99)["boxes"])
