"""The matrix of a face: against a face that is put before the camera."""

from __future__ import annotations

import math
import random
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.made_bundles import task
from tests.made_networks import network
from tests.test_tasks import FACES, IMAGE, base
from tflite_ort import MalformedBundle, MissingEntry
from tflite_ort.tasks import vision
from tflite_ort.tasks.face_geometry import METADATA, CanonicalFace

Array = npt.NDArray[Any]

RNG = np.random.default_rng(11)
FACE = RNG.uniform(-8, 8, (468, 3)).astype(np.float32)
WEIGHTS = dict(zip(range(0, 468, 9), RNG.uniform(size=52).tolist(), strict=True))
SIZE = (640, 480)


def metadata(points: Array = FACE, weights: Mapping[int, float] = WEIGHTS) -> bytes:
    """As the bundle has it: x, y, z and two zeros of each point, and the weights of some."""
    numbers = np.pad(np.asarray(points, np.float32), [(0, 0), (0, 2)])
    mesh = _field(3, numbers.tobytes())
    listed = [
        _field(2, b"\x08" + _varint(place) + b"\x15" + struct.pack("<f", weight))
        for place, weight in weights.items()
    ]
    return _field(1, mesh) + b"".join(listed)


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    low, high = number & 127, number >> 7
    return bytes([low | 128]) + _varint(high) if high else bytes([low])


def seen(matrix: Array) -> Array:
    """The canonical face before the camera as landmarks of a picture: z in widths of it."""
    there = FACE @ matrix[:3, :3].T + matrix[:3, 3]
    high = 2 * math.tan(math.radians(63) / 2)
    wide = high * SIZE[0] / SIZE[1]
    depth = -there[:, 2]
    flat = there[:, :2] / depth[:, np.newaxis] / [wide, -high] + 0.5
    # Landmarks tell depth in the scale that x has at the face's middle, from any start.
    return np.column_stack([flat, (depth - depth.mean()) / depth.mean() / wide])


def turned(x: float, y: float, z: float) -> Array:
    c, s = np.cos([x, y, z]), np.sin([x, y, z])
    about_x = np.array([[1, 0, 0], [0, c[0], -s[0]], [0, s[0], c[0]]])
    about_y = np.array([[c[1], 0, s[1]], [0, 1, 0], [-s[1], 0, c[1]]])
    about_z = np.array([[c[2], -s[2], 0], [s[2], c[2], 0], [0, 0, 1]])
    return np.asarray(about_z @ about_y @ about_x)


@pytest.mark.parametrize("turn", [(0.0, 0.0, 0.0), (0.3, -0.4, 0.2), (-0.2, 0.6, 3.0)])
def test_a_face_before_the_camera(turn: tuple[float, float, float]) -> None:
    wanted = np.eye(4)
    wanted[:3, :3] = turned(*turn)
    wanted[:3, 3] = 3, -2, -400
    landmarks = np.concatenate([seen(wanted), np.full((10, 3), 9.0)])  # irises do not count
    matrix = CanonicalFace.read(metadata()).matrix(landmarks, SIZE)
    assert matrix is not None
    np.testing.assert_allclose(matrix[:3, :3], wanted[:3, :3], atol=0.02)
    np.testing.assert_allclose(matrix[:3, 3], wanted[:3, 3], rtol=0.02, atol=0.2)
    assert np.linalg.det(matrix[:3, :3]) == pytest.approx(1, rel=1e-3)
    assert matrix[3].tolist() == [0, 0, 0, 1]


def test_a_face_that_is_too_small_has_none() -> None:
    face = CanonicalFace.read(metadata())
    assert face.matrix(np.full((468, 3), 0.5), SIZE) is None
    assert face.matrix(np.full((468, 3), np.nan), SIZE) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x0a\xff",
        metadata(FACE[:0]),
        metadata(np.full((3, 3), np.nan)),
        metadata(weights={}),
        metadata(weights={468: 1.0}),
        metadata(weights={0: -1.0}),
        metadata(weights={0: math.inf}),
        _field(1, _field(3, b"123")),
        _field(1, _field(3, bytes(16))),
    ],
)
def test_damaged_faces(content: bytes) -> None:
    with pytest.raises(MalformedBundle):
        CanonicalFace.read(content)


def bundle(**files: bytes) -> bytes:
    mesh = np.random.default_rng(2).uniform(40, 150, (1, 1, 1, 1434))
    landmarks = network(192, [mesh, np.full((1, 1, 1, 1), 5.0)])
    named = {"face_detector.tflite": FACES, "face_landmarks_detector.tflite": landmarks}
    return task({**named, **files})


def test_matrices_of_the_task() -> None:
    content = bundle(**{METADATA: metadata()})
    options = vision.FaceLandmarkerOptions(base(content))
    plain = vision.FaceLandmarker.create_from_options(options).detect(IMAGE)
    assert plain.facial_transformation_matrixes == []
    options.output_facial_transformation_matrixes = True
    found = vision.FaceLandmarker.create_from_options(options).detect(IMAGE)
    assert found.face_landmarks == plain.face_landmarks
    (matrix,) = found.facial_transformation_matrixes
    points = np.array([[each.x, each.y, each.z] for each in found.face_landmarks[0]])
    wanted = CanonicalFace.read(metadata()).matrix(points, (IMAGE.shape[1], IMAGE.shape[0]))
    assert wanted is not None
    np.testing.assert_allclose(matrix, wanted, rtol=1e-6)
    options.base_options = base(bundle())
    with pytest.raises(MissingEntry, match=METADATA):
        vision.FaceLandmarker.create_from_options(options)


def test_mutated_faces() -> None:
    content, rng, read = metadata(), random.Random(21), 0
    landmarks = np.random.default_rng(0).uniform(size=(478, 3))
    for _ in range(1000):
        changed = bytearray(content)
        for _ in range(rng.randint(1, 4)):
            changed[rng.randrange(len(changed))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF])
        if rng.random() < 0.2:
            del changed[rng.randrange(len(changed)) :]
        try:
            matrix = CanonicalFace.read(bytes(changed)).matrix(landmarks, SIZE)
        except MalformedBundle:
            continue
        assert matrix is None or np.isfinite(matrix).all()
        read += 1
    assert 0 < read < 1000
