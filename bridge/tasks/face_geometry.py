"""Where a face is before the camera: a matrix that turns a canonical face to the one in a picture.

The canonical face is in the bundle. Its points are matched with those of the picture by an
orthogonal Procrustes analysis with weights and a scale (Akca, "Generalized Procrustes analysis",
2003): first with the points as they are in the picture, then with points that the camera would see
there. Lengths are in centimetres; x is to the right, y up and z to the camera, which is at 0. The
camera and the order of these steps are those of MediaPipe's graph.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.schema import MalformedBundle
from tflite_ort.schema.file.wire import Message
from tflite_ort.tasks.rects import Size

Array = npt.NDArray[Any]

METADATA = "geometry_pipeline_metadata_landmarks.binarypb"

_VIEW = math.radians(63.0)  # vertical
_NEAR = 1.0
_NUMBERS = 5  # of a point: x, y, z, and two of its texture
_MOST_POINTS = 1 << 16
# A face whose points are all so near their mean, in 0..1 of the picture, has no matrix.
_SMALLEST = 1e-3
_LEAST = 1e-9
_TO_RIGHT_HAND = np.array([1.0, 1.0, -1.0])


@dataclass(frozen=True, slots=True)
class CanonicalFace:
    """The face that others are compared with.

    Args:
        points: [N, 3].
        weights: [N], how much each point counts.
    """

    points: Array
    weights: Array

    @classmethod
    def read(cls, content: bytes) -> CanonicalFace:
        """The face in the metadata of a bundle.

        Raises:
            MalformedBundle: there is none, or one that nothing can be compared with.
        """
        metadata = Message(content)
        with np.errstate(invalid="ignore"):  # signalling NaN
            numbers = metadata.message(1).floats(3).astype(np.float64)
        if not 0 < len(numbers) <= _MOST_POINTS * _NUMBERS or len(numbers) % _NUMBERS:
            raise MalformedBundle(f"a canonical face of {len(numbers)} numbers")
        points = numbers.reshape(-1, _NUMBERS)[:, :3]
        weights = np.zeros(len(points))
        for place, weight in metadata.messages(2, lambda each: (each.integer(1), each.float(2))):
            if not 0 <= place < len(points):
                raise MalformedBundle(f"a weight of point {place} of {len(points)}")
            weights[place] = weight
        sound = np.isfinite(points).all() and (weights >= 0).all() and np.isfinite(weights).all()
        if not sound or weights.sum() <= _LEAST:
            raise MalformedBundle("a canonical face whose points or weights are no such")
        return cls(points, weights)

    def matrix(self, landmarks: Array, size: Size) -> Array | None:
        """The matrix, float64 [4, 4], that turns this face to the one of `landmarks`.

        Args:
            landmarks: [M, 3] with M at least N, in 0..1 of a picture; the first N count.
            size: of the picture.

        Returns:
            None for a face that is too small to tell.
        """
        seen = landmarks[: len(self.points)].astype(np.float64)
        away = seen[:, :2] - seen[:, :2].mean(axis=0)
        if not np.hypot(*away.T).max() > _SMALLEST:
            return None
        high = 2 * _NEAR * math.tan(_VIEW / 2)
        wide = high * size[0] / size[1]
        # On the plane that is `_NEAR` before the camera.
        flat = (seen * [1, -1, 1] + [-0.5, 0.5, 0]) * [wide, high, wide]
        scale = self._scale(flat * _TO_RIGHT_HAND)
        again = self._scale(_seen_by_camera(flat, scale)) if scale else None
        if not scale or not again:
            return None
        return self._fitted(_seen_by_camera(flat, scale * again))

    def _scale(self, points: Array) -> float | None:
        matrix = self._fitted(points)
        return None if matrix is None else float(np.linalg.norm(matrix[:3, 0]))

    def _fitted(self, targets: Array) -> Array | None:
        """The rotation with scale and shift that brings the points nearest to `targets`."""
        weights = self.weights[:, np.newaxis]
        total = weights.sum()
        centre = (self.points * weights).sum(axis=0) / total
        centred = self.points - centre
        design = targets.T @ (centred * weights)
        if not np.linalg.norm(design) > _LEAST:
            return None
        left, _, right = np.linalg.svd(design)
        left[:, 2] *= np.sign(np.linalg.det(left) * np.linalg.det(right))  # no reflection
        rotation = left @ right
        size = (centred * self.points * weights).sum()
        match = ((centred @ rotation.T) * targets * weights).sum()
        if not size > _LEAST or not match / size > _LEAST:
            return None
        result = np.eye(4)
        result[:3, :3] = rotation * (match / size)
        left_over = targets - self.points @ result[:3, :3].T
        result[:3, 3] = (left_over * weights).sum(axis=0) / total
        return result


def _seen_by_camera(flat: Array, scale: float) -> Array:
    """Points before the camera that it sees at `flat`, given how large the face is."""
    depth = (flat[:, 2] - flat[:, 2].mean() + _NEAR) / scale
    points = np.column_stack([flat[:, :2] * (depth / _NEAR)[:, np.newaxis], depth])
    right_handed: Array = points * _TO_RIGHT_HAND
    return right_handed
