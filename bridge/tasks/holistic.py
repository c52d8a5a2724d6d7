"""The body of one person, with its hands and its face: what `HolisticLandmarker` and the older
solution share.

The body says where hands and the face are looked for. A hand or a face is followed from the picture
before as long as that region fits the one that the body says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.tasks.body import Body
from tflite_ort.tasks.network import Network, networks
from tflite_ort.tasks.options import BaseOptions
from tflite_ort.tasks.points import PoseLandmark
from tflite_ort.tasks.rects import (
    Rect,
    Size,
    box_rect,
    centred_rect,
    extent,
    face_rect,
    hand_rect,
    wrist_rect,
)
from tflite_ort.tasks.vision_task import Frame

Array = npt.NDArray[Any]
Outputs = Mapping[str, Array]

_WRIST_VISIBILITY = 0.1
# The points of a body that are of its face, and its eyes.
_FACE, _EYES = slice(0, 11), (PoseLandmark.RIGHT_EYE, PoseLandmark.LEFT_EYE)
_HANDS = {
    side: [PoseLandmark[f"{side}_{point}"] for point in ("WRIST", "PINKY", "INDEX")]
    for side in ("LEFT", "RIGHT")
}


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a followed region may differ from the one that the body says.

    Args:
        turn: in degrees.
        shift, scale: in parts of the region's sides.
        margin: how much larger the region is made, of which all points have to be inside.
    """

    turn: float
    shift: float
    scale: float
    margin: float

    def hold(self, before: Rect, points: Array, said: Rect, size: Size) -> bool:
        """Whether the region and the points of the picture before fit."""
        sides = np.array([said.width, said.height]) * size
        turned = math.remainder(before.rotation - said.rotation, 2 * math.pi)
        others = np.array([before.width, before.height]) * size
        middle = np.array([[before.x, before.y]])
        far = np.abs(_along(middle, said, size))[0]
        inside = np.abs(_along(points[:, :2], said, size)) < sides * (1 + self.margin) / 2
        return bool(
            math.degrees(abs(turned)) <= self.turn
            and (far <= sides * self.shift).all()
            and (np.abs(others - sides) <= sides * self.scale).all()
            and inside.all()
        )


def _along(points: Array, rect: Rect, size: Size) -> Array:
    """How far points are from the middle of a rectangle along its sides, in pixels."""
    across = (points - np.array([rect.x, rect.y])) * size
    cosine, sine = math.cos(rect.rotation), math.sin(rect.rotation)
    turned: Array = across @ np.array([[cosine, -sine], [sine, cosine]])
    return turned


_HAND_LIMITS, _FACE_LIMITS = Limits(40, 0.2, 0.4, -0.1), Limits(15, 0.1, 0.3, -0.2)


@dataclass
class _Part:
    """A hand or a face, which is followed.

    Args:
        network: of its landmarks.
        sure: how sure it has to be.
        around: the region around landmarks.
        follows: pictures follow each other; otherwise each stands for itself.
    """

    network: Network
    sure: float
    limits: Limits
    around: Callable[[Array, Size], Rect]
    follows: bool
    last: Array | None = field(default=None, init=False)

    def find(self, frame: Frame, said: Rect | None) -> Outputs | None:
        """What the network says; None where the body says no region, or nothing is there."""
        points, self.last = self.last, None
        if said is None or not said.usable:
            return None
        rect = said
        if points is not None:
            before = self.around(points, frame.size)
            rect = before if self.limits.hold(before, points, said, frame.size) else said
        outputs = self.network(frame.pixels, roi=rect)
        if not outputs["score"] > self.sure:
            return None
        if self.follows:
            self.last = outputs["landmarks"]
        return outputs


@dataclass(frozen=True, slots=True)
class Confidences:
    """How sure networks have to be of a face and a hand, and how much two faces may overlap."""

    detection: float = 0.5
    overlap: float = 0.3
    face: float = 0.5
    hand: float = 0.5


@dataclass(frozen=True, slots=True)
class Person:
    """What the networks say of a person; None of what is not seen."""

    body: Outputs
    face: Outputs | None
    hands: Mapping[str, Outputs | None]


class Holistic:
    """Finds one person, and follows it.

    Args:
        body: finds and follows the body.
        base: the bundle with the networks for hands and the face.
        follows: pictures follow each other; otherwise each stands for itself.
        older: do as the older solution: the region of a face is moved up, and is a square.
    """

    def __init__(
        self,
        body: Body,
        base: BaseOptions,
        sure: Confidences,
        *,
        follows: bool,
        older: bool = False,
    ) -> None:
        self._body, self._sure = body, sure
        self._shift = -0.1 if older else 0.0
        self._faces, face, self._hand_region, hand = networks(
            base,
            {
                "face_detector": "face detector",
                "face_landmarks_detector": "face landmarks",
                "hand_roi_refinement": "hand region",
                "hand_landmarks_detector": "hand landmarks",
            },
        )

        def around_face(points: Array, size: Size) -> Rect:
            return face_rect(points, size).scaled(size, 1.5, square=older)

        def around_hand(points: Array, size: Size) -> Rect:
            return hand_rect(points, size).scaled(size, 2.0, shift_y=-0.1, square=True)

        self._face = _Part(face, sure.face, _FACE_LIMITS, around_face, follows)
        self._hands = {
            side: _Part(hand, sure.hand, _HAND_LIMITS, around_hand, follows) for side in _HANDS
        }

    def find(self, frame: Frame, calm: bool) -> Person | None:
        """The person in a picture.

        Args:
            calm: smooth the landmarks of the body.
        """
        people = self._body.people(frame, calm)
        body = people[0] if people else None
        hands = {
            side: part.find(frame, None if body is None else self._hand_rect(frame, body, side))
            for side, part in self._hands.items()
        }
        face = self._face.find(frame, None if body is None else self._face_rect(frame, body))
        return None if body is None else Person(body, face, hands)

    def forget(self) -> None:
        """Forget the pictures before."""
        self._body.forget()
        for part in (self._face, *self._hands.values()):
            part.last = None

    def _hand_rect(self, frame: Frame, body: Outputs, side: str) -> Rect | None:
        """Where a hand is, by the body and then by what is seen there."""
        wrist, pinky, index = _HANDS[side]
        if not body["visibility"][wrist] > _WRIST_VISIBILITY:
            return None
        points = body["landmarks"][:, :2]
        coarse = wrist_rect(points[wrist], points[pinky], points[index], frame.size)
        coarse = coarse.scaled(frame.size, 2.7, shift_y=-0.1, square=True)
        if not coarse.usable:
            return None
        middle, below = self._hand_region(frame.pixels, roi=coarse)["points"]
        rect = centred_rect(middle, below, frame.size, -math.pi / 2)
        return rect.scaled(frame.size, 1.0, shift_y=-0.1, square=True)

    def _face_rect(self, frame: Frame, body: Outputs) -> Rect | None:
        """Where the face is, by the body and then by the detector."""
        points = body["landmarks"][:, :2]
        right, left = (points[eye] for eye in _EYES)
        box = np.concatenate(extent(points[_FACE]))
        coarse = box_rect(box, right, left, frame.size, 0.0).scaled(frame.size, 3.0, square=True)
        if not coarse.usable:
            return None
        found = self._faces(
            frame.pixels,
            roi=coarse,
            min_score=float(self._sure.detection),
            min_suppression_threshold=float(self._sure.overlap),
        )["keypoints"]
        if not len(found):
            return None
        eyes = found[0]
        rect = box_rect(np.concatenate(extent(eyes)), eyes[0], eyes[1], frame.size, 0.0)
        return rect.scaled(frame.size, 2.0, shift_y=self._shift, square=True)
