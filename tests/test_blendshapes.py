"""Expressions of faces: a network after the landmarks."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.made_bundles import task
from tests.made_networks import network
from tests.one_op import Node, T, graph_model
from tests.test_tasks import FACES, IMAGE, base
from tflite_ort import ModelError, export_onnx
from tflite_ort.decode.face_mesh import BLENDSHAPE_POINTS, BLENDSHAPES
from tflite_ort.schema import FullyConnectedOptions, Op, ReshapeOptions
from tflite_ort.tasks import vision

_SEED = 5
# As MediaPipe's graph has them.
_SUM_OF_POINTS, _SOME = 33_248, {0: 0, 25: 66, 100: 321, 145: 477}


def blendshapes() -> bytes:
    """Of the coordinates of 146 points sums by random weights."""
    weights = np.random.default_rng(_SEED).normal(size=(52, 292)).astype(np.float32)
    tensors = {
        "points": T((1, 146, 2)),
        "shape": T.constant(np.array([1, 292], np.int32)),
        "row": T((1, 292)),
        "w": T.constant(weights),
        "made": T((1, 52)),
        "flat": T.constant(np.array([52], np.int32)),
        "y": T((52,)),
    }
    nodes = [
        Node(Op.RESHAPE, ["points", "shape"], ["row"], ReshapeOptions()),
        Node(Op.FULLY_CONNECTED, ["row", "w", None], ["made"], FullyConnectedOptions()),
        Node(Op.RESHAPE, ["made", "flat"], ["y"], ReshapeOptions()),
    ]
    return graph_model(tensors, nodes, ["y"])


def bundle(*, complete: bool = True) -> bytes:
    mesh = np.random.default_rng(2).uniform(40, 150, (1, 1, 1, 1434))
    landmarks = network(192, [mesh, np.full((1, 1, 1, 1), 5.0)], weight=20.0)
    files = {"face_detector.tflite": FACES, "face_landmarks_detector.tflite": landmarks}
    return task(files | ({"face_blendshapes.tflite": blendshapes()} if complete else {}))


def test_what_mediapipe_names() -> None:
    assert len(BLENDSHAPE_POINTS) == len(set(BLENDSHAPE_POINTS)) == 146
    assert list(BLENDSHAPE_POINTS) == sorted(BLENDSHAPE_POINTS)
    assert sum(BLENDSHAPE_POINTS) == _SUM_OF_POINTS
    assert {place: BLENDSHAPE_POINTS[place] for place in _SOME} == _SOME
    assert len(BLENDSHAPES) == len(set(BLENDSHAPES)) == 52
    assert [BLENDSHAPES[place] for place in (0, 25, 38, 51)] == [
        *("_neutral", "jawOpen", "mouthPucker", "noseSneerRight")
    ]


def test_the_decoded_export_says_which_points() -> None:
    written = export_onnx(blendshapes(), decode=True)
    said = json.loads({each.key: each.value for each in written.metadata_props}["tflite.decoded"])
    assert said["kind"] == "face blendshapes"
    assert (said["points"], said["names"]) == (list(BLENDSHAPE_POINTS), list(BLENDSHAPES))


def test_expressions_are_of_points_in_pixels() -> None:
    options = vision.FaceLandmarkerOptions(base(bundle()), output_face_blendshapes=True)
    found = vision.FaceLandmarker.create_from_options(options).detect(IMAGE)
    (points,), (shown,) = found.face_landmarks, found.face_blendshapes
    pixels = [[points[n].x or 0, points[n].y or 0] for n in BLENDSHAPE_POINTS]
    weights = np.random.default_rng(_SEED).normal(size=(52, 292)).astype(np.float32)
    wanted = weights @ (np.array(pixels) * [160, 120]).ravel()
    np.testing.assert_allclose([each.score for each in shown], wanted, atol=1e-2)
    assert [each.category_name for each in shown] == list(BLENDSHAPES)
    assert [each.index for each in shown] == list(range(52))
    options = vision.FaceLandmarkerOptions(base(bundle()))
    assert not vision.FaceLandmarker.create_from_options(options).detect(IMAGE).face_blendshapes


def test_a_bundle_without_expressions() -> None:
    wanted = vision.FaceLandmarkerOptions(
        base(bundle(complete=False)), output_face_blendshapes=True
    )
    with pytest.raises(ModelError, match="face_blendshapes"):
        vision.FaceLandmarker.create_from_options(wanted)
