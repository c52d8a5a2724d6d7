"""How a landmark network follows a detector: the region of a picture that it looks at.

The numbers are those of MediaPipe's graphs. A region is a square around what was found, turned so
that a line between two keypoints is upright.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Region:
    """A region.

    Args:
        detector: the kind of network that finds it.
        start, end: the keypoints of the line.
        upright: the angle of the line, in radians counter-clockwise from the x axis, at which the
            region is not turned.
        scale: how much larger it is made.
        shift_y: by how many of its heights it is moved down first.
        circle: it is the square around the circle with its middle in `start` that goes through
            `end`; otherwise it is the square of the box's longer side.
    """

    detector: str
    start: int
    end: int
    upright: float
    scale: float
    shift_y: float = 0.0
    circle: bool = False


# By the kind of the landmark network. For hands MediaPipe's graph says 90 where radians are meant,
# and hands are found with regions that are turned accordingly.
REGIONS = {
    "hand landmarks": Region("palm detector", 0, 2, 90.0, 2.6, -0.5),
    "face landmarks": Region("face detector", 0, 1, 0.0, 1.5),
    "pose landmarks": Region("pose detector", 0, 1, math.pi / 2, 1.25, circle=True),
}
